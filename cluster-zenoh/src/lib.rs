#![doc = include_str!("../README.md")]

mod builder;
mod engine;
#[cfg(target_os = "linux")]
mod linger;
mod links;
mod packet;

pub use builder::{ConfigError, RUNTIME, ZenohBuilder};
pub use engine::{Zenoh, ZenohMetrics};
