#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "std")]
mod adapt;
mod budget;
#[cfg(feature = "std")]
mod holder;
mod preempt;
#[cfg(feature = "std")]
mod scope;
#[cfg(feature = "std")]
mod slices;
#[cfg(feature = "std")]
mod ticker;
#[cfg(feature = "std")]
mod waits_on;
#[cfg(feature = "std")]
mod watch;
#[cfg(feature = "std")]
mod wrap;

pub use budget::Budget;
#[cfg(feature = "std")]
pub use holder::{note_holders, notes_holders, poll_as, polled_task};
pub use preempt::Preempt;
#[cfg(feature = "std")]
pub use scope::{
    Exhausted, OnExhausted, Progress, Scope, Turns, has_remaining, may_block, need_preempt,
    poll_proceed, poll_proceed_n, remaining,
};
#[cfg(feature = "std")]
pub use slices::Slices;
#[cfg(feature = "std")]
pub use ticker::Ticker;
#[cfg(feature = "std")]
pub use waits_on::WaitsOn;
#[cfg(feature = "std")]
pub use watch::{Watched, Watching, note_wait, unwatched, waits_as, watch};
#[cfg(feature = "std")]
pub use wrap::{
    Consume, Cooperative, Scoped, SubBudget, Unconstrained, consume, cooperative, scope,
    sub_budget, unconstrained,
};

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std"))]
mod tests;
