#![doc = include_str!("../README.md")]

// Without this the first error would be an import that is not found.
#[cfg(not(any(unix, windows)))]
compile_error!("`selvedge-hyper` needs sockets, which `selvedge` has only on Unix and Windows");

#[cfg(feature = "client")]
mod attempts;
#[cfg(feature = "client")]
mod client;
mod connection;
mod connections;
mod executor;
#[cfg(feature = "http2")]
mod idle;
mod io;
mod listener;
mod panicked;
#[cfg(feature = "http2")]
mod requests;
mod serve;
mod timer;
mod write_limit;

#[cfg(feature = "client")]
pub use attempts::Attempts;
#[cfg(feature = "client")]
pub use client::{ConnectError, Connecting, Connector, client, client_builder};
pub use executor::SelvedgeExecutor;
pub use io::SelvedgeIo;
pub use listener::Listener;
pub use serve::{Serve, serve, serve_with};
pub use timer::SelvedgeTimer;
pub use write_limit::{LimitWrites, WriteLimit, WriteTimedOut};
