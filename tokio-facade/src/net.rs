//! Sockets, as in tokio.
#[cfg(feature = "net")]
pub use selvedge::net::*;
