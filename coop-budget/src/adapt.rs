//! [`Cooperative`](crate::Cooperative) streams, sinks, readers and writers, a feature each:
//! resources that know no budget take part.
#[cfg(feature = "futures-core")]
mod futures_core;
#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "futures-sink")]
mod futures_sink;
#[cfg(feature = "tokio")]
mod tokio;
