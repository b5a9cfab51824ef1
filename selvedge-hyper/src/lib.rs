#![doc = include_str!("../README.md")]
mod connection;
mod connections;
mod executor;
mod io;
mod listener;
mod serve;
mod timer;

pub use executor::SelvedgeExecutor;
pub use io::SelvedgeIo;
pub use listener::Listener;
pub use serve::{Serve, serve, serve_with};
pub use timer::SelvedgeTimer;
