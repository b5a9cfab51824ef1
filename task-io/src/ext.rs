//! The traits whose methods return futures.
mod buf_read;
mod read;
mod seek;
mod write;

pub use buf_read::AsyncBufReadExt;
pub use read::AsyncReadExt;
pub use seek::AsyncSeekExt;
pub use write::AsyncWriteExt;
