#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod async_buf_read;
mod async_read;
mod async_seek;
mod async_write;
mod interest;
mod read_buf;
mod ready;

pub use async_buf_read::AsyncBufRead;
pub use async_read::AsyncRead;
pub use async_seek::AsyncSeek;
pub use async_write::AsyncWrite;
pub use interest::Interest;
pub use read_buf::ReadBuf;
pub use ready::Ready;
#[doc(no_inline)]
pub use std::io::{Error, ErrorKind, Result, SeekFrom};
