//! [`Cooperative`](crate::Cooperative) streams, sinks, readers and writers, for resources that know
//! no budget. Each set of traits is a feature.
#[cfg(feature = "futures-core")]
mod futures_core;
#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "futures-sink")]
mod futures_sink;
#[cfg(feature = "tokio")]
mod tokio;
