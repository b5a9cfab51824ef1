//! The futures that write.
mod all;
mod finish;
mod number;
mod once;

pub(crate) use all::write_zero;
pub use all::{WriteAll, WriteAllBuf};
pub use finish::{Flush, Shutdown};
pub use number::WriteNumber;
pub use once::{Write, WriteBuf, WriteVectored};
