#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod behaviours;
mod builder;
mod change;
mod child;
mod cluster;
mod codec;
mod counters;
mod decode_error;
mod directory;
mod engine;
mod frame;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod identity;
mod memory;
mod peer;
mod place;
mod registrar;
mod relay;
mod session;
mod settings;
mod signals;
mod spawn_on;
mod values;
mod wire;

pub use builder::{Builder, JoinError};
pub use change::{NodeChange, NodeLoss};
pub use child::Home;
pub use cluster::{Cluster, Published};
pub use counters::ClusterMetrics;
pub use decode_error::DecodeError;
pub use directory::RegisterError;
pub use engine::{Engine, PeerId, Sink, Unsent};
#[cfg(fuzzing)]
#[doc(hidden)]
pub use fuzz::Fed;
pub use memory::{MemoryEngine, MemoryNetwork};
pub use place::place_among;
pub use spawn_on::{SpawnOn, SpawnOnError, Spawning};
pub use wire::{Decoder, Encoder, Message};
