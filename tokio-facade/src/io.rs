//! Traits, utilities and descriptors of reading and writing, as in tokio.
#[cfg(feature = "io-std")]
#[doc(inline)]
pub use selvedge::fs::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
#[doc(inline)]
pub use selvedge::io::*;
#[doc(inline)]
pub use task_io::*;
