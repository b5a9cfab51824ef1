#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod async_buf_read;
mod async_read;
mod async_seek;
#[cfg(target_os = "linux")]
mod async_splice;
mod async_write;
mod buf_reader;
mod buf_stream;
mod buf_writer;
mod chain;
mod coop;
mod copy;
mod copy_bidirectional;
mod copy_buf;
mod duplex;
mod empty;
mod ext;
mod interest;
mod join;
mod lines;
#[cfg(all(test, not(any(selvedge_loom, selvedge_count))))]
mod many_threads {
    mod models;
}
mod pass;
mod pipe;
mod read;
mod read_buf;
mod ready;
mod repeat;
mod seek;
mod segments;
mod simplex;
mod sink;
mod split;
mod take;
#[cfg(test)]
mod testing;
mod transfer;
#[cfg(doctest)]
mod variance;
mod write;

pub use async_buf_read::AsyncBufRead;
pub use async_read::AsyncRead;
pub use async_seek::AsyncSeek;
#[cfg(target_os = "linux")]
pub use async_splice::AsyncSplice;
pub use async_write::AsyncWrite;
pub use buf_reader::BufReader;
pub use buf_stream::BufStream;
pub use buf_writer::BufWriter;
pub use chain::Chain;
pub use copy::copy;
pub use copy_bidirectional::{copy_bidirectional, copy_bidirectional_with_sizes};
pub use copy_buf::copy_buf;
pub use duplex::{DuplexStream, duplex};
pub use empty::{Empty, empty};
pub use ext::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
pub use interest::Interest;
pub use join::{Join, join};
pub use lines::Lines;
pub use read_buf::ReadBuf;
pub use ready::Ready;
pub use repeat::{Repeat, repeat};
pub use segments::Split;
pub use simplex::{SimplexStream, simplex};
pub use sink::{Sink, sink};
pub use split::{ReadHalf, WriteHalf, split};
#[doc(no_inline)]
pub use std::io::{Error, ErrorKind, Result, SeekFrom};
pub use take::Take;
