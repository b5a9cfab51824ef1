//! `selvedge` by tokio's name, for tokio's own tests: the renames that a user writes by hand.
//!
//! `cargo xtask tokio-tests` compiles this file as the library `tokio` of a scratch package. The
//! modules `sync` and `io` are those of tokio itself, as `docs/from-tokio.md` advises.
pub use selvedge::*;
pub use tokio_itself::sync;

pub mod io {
    pub use selvedge::net::{Interest, Ready};
    pub use tokio_itself::io::*;

    pub mod unix {
        pub use selvedge::net::{
            AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
        };
    }
}

pub mod time {
    pub use selvedge::time::*;

    pub mod error {
        pub use selvedge::time::Elapsed;
    }
}

/// The private items of tokio that its tests of metrics use.
pub mod macros {
    pub mod support {
        pub use std::future::poll_fn;
    }
}
