#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

// Without this the first error would be an import that is not found.
#[cfg(not(any(unix, windows)))]
compile_error!("`selvedge-top` needs sockets, which `selvedge` has only on Unix and Windows");

mod access;
mod body;
mod builder;
mod cycles;
mod error;
mod events;
mod files;
mod json;
#[cfg(any(feature = "groups", feature = "processes"))]
mod names;
mod pace;
#[cfg(feature = "processes")]
mod processes;
mod prometheus;
mod query;
mod routes;
mod server;
mod site;
mod stalls;
mod tasks;
mod tick;

// The feature of this crate captures the stacks: no code of the page calls it.
#[cfg(feature = "backtrace")]
use sched_monitor as _;

pub use builder::{Builder, serve};
pub use error::ServeError;
pub use server::Page;
pub use stalls::Stalls;
