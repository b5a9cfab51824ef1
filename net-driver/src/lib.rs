#![doc = include_str!("../README.md")]

mod driver;
mod over;
mod park;
mod role;
pub mod time;

pub use driver::{Driver, Entered};
pub use over::{OverPark, WorkerTimers};
pub use park::{WorkerPark, WorkerUnpark};
