#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod budget;
mod preempt;
#[cfg(feature = "std")]
mod scope;
#[cfg(feature = "std")]
mod wrap;

pub use budget::Budget;
pub use preempt::Preempt;
#[cfg(feature = "std")]
pub use scope::{
    OnExhausted, Progress, has_remaining, poll_proceed, poll_proceed_n, remaining, with_budget,
    with_budget_and,
};
#[cfg(feature = "std")]
pub use wrap::{Consume, Cooperative, Unconstrained, consume, cooperative, unconstrained};

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std"))]
mod tests;
