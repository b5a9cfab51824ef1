//! Paths that tokio's own tests use.
pub mod support {
    pub use std::future::poll_fn;
}
