#![doc = include_str!("../README.md")]

mod traced;

pub use traced::{Kind, Traced, Unnamed, enabled, trace};
