#![doc = include_str!("../README.md")]

mod driver;
mod park;
mod role;
pub mod time;

pub use driver::{Driver, Entered};
pub use park::{WorkerPark, WorkerUnpark};
