//! `select!`, with tokio's syntax and meaning, and the code that it expands to.
//!
//! The crate `selvedge-macros` expands the branches.
#![doc(hidden)]

use std::{
    cell::Cell,
    task::{Context, Poll},
};

#[doc(hidden)]
pub use selvedge_macros::select as branches;

/// Returns whether the task has used its budget up. If so, the task has been woken by now.
///
/// Without this check, a `select!` whose branches all charge the budget would poll each branch,
/// only for each to be refused.
#[doc(hidden)]
#[inline]
pub fn must_yield(cx: &mut Context<'_>) -> bool {
    match coop_budget::poll_proceed(cx) {
        Poll::Ready(progress) => {
            progress.cancel();
            false
        }
        Poll::Pending => true,
    }
}

/// Returns a random number below `count`: the branch that is polled first.
#[doc(hidden)]
#[inline]
pub fn first_of(count: usize) -> usize {
    sync_shim::simulated_thread_local! {
        static STATE: Cell<u64> = Cell::new(sync_shim::random::number() | 1);
    }
    // In the destructors of thread-locals any order will do.
    STATE
        .try_with(|state| {
            // Xorshift, by Marsaglia. The state is never 0, as it does not begin at 0.
            let mut next = state.get();
            next ^= next << 13;
            next ^= next >> 7;
            next ^= next << 17;
            state.set(next);
            // Scales the upper half, the better one, without a division.
            (((next >> 32) * count as u64) >> 32) as usize
        })
        .unwrap_or(0)
}

/// Panics, as no branch is left and there is no `else`.
#[doc(hidden)]
#[cold]
#[track_caller]
pub fn all_disabled() -> ! {
    panic!("all branches of a select! are disabled, and it has no `else`")
}

/// Awaits several futures at once, and runs the handler of the future that is ready first. As
/// tokio's.
///
/// ```
/// use std::time::Duration;
///
/// # #[cfg(feature = "net")] {
/// let runtime = selvedge::Runtime::new()?;
/// let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
/// runtime.spawn_detached(async move { sender.send(7).await.unwrap() });
/// let got = runtime.block_on(async {
///     selvedge::select! {
///         Some(n) = receiver.recv() => Ok(n),
///         () = selvedge::time::sleep(Duration::from_secs(60)) => Err("too late"),
///         else => Err("closed"),
///     }
/// });
/// assert_eq!(got, Ok(7));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Branches
/// There are 1 to 64 branches `pattern = future, if condition => handler`; `, if condition` may be
/// left out. `else => handler` may follow the last branch.
///
/// 1. All conditions are evaluated. A branch whose condition is false is *disabled*.
/// 2. All expressions of futures are evaluated, also those of disabled branches.
/// 3. The futures of the branches that are not disabled are polled in turn, in the current task.
/// 4. If a future is ready, and its output matches the branch's pattern, all futures are dropped,
///    and the branch's handler runs. The macro returns what the handler returns. If the output does
///    not match, the output is dropped, and the branch is disabled.
/// 5. Once all branches are disabled, the handler of `else` runs.
///
/// A handler is ordinary code of the caller: it may await, return or break. A handler that is a
/// block needs no comma after it.
///
/// ```
/// use selvedge::select;
///
/// async fn numbers(mut left: u32) -> u32 {
///     let mut sum = 0;
///     loop {
///         select! {
///             biased;
///             n = async { left }, if left > 0 => {
///                 sum += n;
///                 left -= 1;
///             }
///             else => return sum,
///         }
///     }
/// }
///
/// let runtime = selvedge::Runtime::new()?;
/// assert_eq!(runtime.block_on(numbers(4)), 10);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Fairness
/// Each poll begins with a random branch, so that a branch that is always ready does not starve the
/// others. With `biased;` each poll begins with the first branch, and no random number is made.
///
/// # Cancellation
/// The futures that lose are dropped. To keep a future for the next round, pin it outside of the
/// macro and pass `&mut future`, with a condition that says whether it is still to be polled.
///
/// # Budget
/// If the task's [budget](crate::Budget) is used up, no branch is polled, and the task yields.
///
/// # Cost
/// Nothing is allocated. A poll costs a check of the budget and a random number (not if `biased`)
/// beside the polls of the branches.
///
/// # Panics
/// If all branches are disabled and there is no `else`.
#[macro_export]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
macro_rules! select {
    ($($branches:tt)*) => {
        $crate::select::branches! { $crate; $($branches)* }
    };
}
