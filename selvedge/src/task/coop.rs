//! The budget of a task's polls, under tokio's names. All of it comes from the crate `coop-budget`.
//!
//! ```
//! use selvedge::task::coop;
//! use std::task::{Context, Poll, ready};
//!
//! /// An operation that takes part in the budget.
//! fn poll_pop(queue: &mut Vec<u32>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
//!     let charge: coop::RestoreOnPending = ready!(coop::poll_proceed(cx));
//!     charge.made_progress();
//!     Poll::Ready(queue.pop())
//! }
//!
//! let runtime = selvedge::Runtime::new()?;
//! runtime.block_on(async {
//!     let mut queue = vec![7];
//!     assert_eq!(std::future::poll_fn(|cx| poll_pop(&mut queue, cx)).await, Some(7));
//!     assert!(coop::has_budget_remaining());
//!     coop::consume_budget().await;
//!     coop::yield_if_needed().await; // Does nothing, as there is budget left.
//!     let free: coop::Unconstrained<_> = coop::unconstrained(async { 7 });
//!     assert_eq!(free.await, 7);
//!     let charged: coop::Coop<_> = coop::cooperative(async { 8 });
//!     assert_eq!(charged.await, 8);
//! });
//! # Ok::<(), std::io::Error>(())
//! ```
pub use super::yield_if_needed;
pub use coop_budget::{
    Cooperative as Coop, Progress as RestoreOnPending, Unconstrained, consume as consume_budget,
    cooperative, has_remaining as has_budget_remaining, poll_proceed, unconstrained,
};
