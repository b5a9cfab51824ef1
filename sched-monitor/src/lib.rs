#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cause;
mod doorbell;
mod handoff;
mod monitor;
mod remote;
mod retake;
mod slices;
mod stack;
mod stalls;

pub use cause::{Cause, Times, thread_id};
pub use doorbell::Doorbell;
pub use handoff::Handoff;
pub use monitor::{Duty, Monitor, Observed, Pause, Round, Sample, State, Workers};
pub use remote::Remote;
pub use retake::Retake;
pub use slices::EndSlices;
pub use stack::{Frame, Stack};
pub use stalls::{Stall, Stalls, Subject};

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
#[cfg(doctest)]
mod variance;
