#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod cluster;
mod codec;
mod directory;
mod engine;
mod frame;
mod identity;
mod memory;
mod peer;
mod place;
mod relay;
mod session;
mod wire;

pub use builder::{Builder, JoinError};
pub use cluster::{Cluster, ClusterMetrics, NodeChange, Published};
pub use codec::Message;
pub use directory::RegisterError;
pub use engine::{Engine, PeerId, Sink, Unsent};
pub use memory::{MemoryEngine, MemoryNetwork};
pub use session::NodeLoss;
pub use wire::{DecodeError, Decoder, Encoder};
