//! `syscall`: a task makes a call that is usually short, and keeps its worker unless it is long.
//!
//! | a worker's core is | it belongs to |
//! |---|---|
//! | *running* | the one thread that runs the worker |
//! | *in the cell* ([`Handoff`](sched_monitor::Handoff)) | no thread: the caller may take it back, or the monitor may retake it |
//! | *lent*, or on offer | no thread: see [`block_in_place`](crate::block_in_place()) |
//!
//! 1. Before the call the thread stores its core in the worker's cell. After the call it takes the
//!    core back by one exchange. No other thread takes part if the call is short.
//! 2. If the call takes long, the monitor retakes the core and offers it to the threads of the
//!    pool, as the caller of `block_in_place` does. So a thread that comes back to an empty cell
//!    takes the core from that offer, if no other thread has accepted it yet.
//! 3. If another thread has accepted the core, the thread of the call ends the poll without a core:
//!    rule 3 of `block_in_place`. The polled task, if it is to run again, goes to the injector.
//!    Then the thread is one of the pool: it takes the next core on offer, or waits for a job.
//! 4. A call within a call, or within `block_in_place`, finds no core and only runs its closure.
//! 5. During the call another thread may have accepted the core, and may have begun a call of its
//!    own with that core. So the first thread may find the core of the other call in the worker's
//!    cell or on offer, when its own call ends. It then offers the core again, and goes on by
//!    rule 3 ([`call`](crate::blocking::call)).
//! 6. The closure runs in the scopes and in the budget of the poll: to leave them would cost more
//!    than the call. So the closure may not block on a future.
//! 7. Without a monitor the worker is handed over at once, by `block_in_place`.
use crate::{
    blocking::{
        block_in_place::block_in_place,
        call::{self, Call},
    },
    events::ClockHold,
    groups::Inherited,
    observe::trace,
    worker::{context, shared::Remote},
};
use std::ptr::NonNull;

/// Runs a closure that makes a system call which is usually short. If the call takes long, another
/// thread runs the worker's other tasks.
///
/// This is [`block_in_place`](crate::block_in_place()) for calls that rarely block: reads of cached
/// files, writes to a terminal, locks that are held briefly. To begin a call costs a store, and to
/// end it an exchange. The worker is handed over only if the call takes long: after about 1 ms if
/// tasks wait for it, and after 10 ms otherwise. The runtime's monitor checks for this. For calls
/// that usually take longer, use `block_in_place`, or [`spawn_blocking`](crate::spawn_blocking).
///
/// The task itself waits meanwhile. So do the futures that run beside the call in the same task.
/// The closure must not call [`block_on`](crate::Handle::block_on), which panics in this closure:
/// use `block_in_place` for a closure that calls `block_on`.
///
/// Outside of a runtime, in `block_on`, in another `syscall`, and in a closure that may block
/// anyway, there is no worker to hand over: this function only runs the closure. Without a
/// [monitor](crate::Builder::monitor), and on a driven worker, this function acts as
/// `block_in_place`, because the worker cannot be handed over later.
///
/// A panic of the closure is a panic of the task.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
/// let read = runtime.spawn(async { selvedge_executor::syscall(|| std::fs::read("/dev/null")) });
/// assert_eq!(runtime.block_on(read).unwrap()?, []);
/// assert_eq!(runtime.snapshot().syscalls, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// In a [`LocalSet`](crate::LocalSet) or [`LocalRuntime`](crate::LocalRuntime): no other thread can
/// run their tasks.
#[track_caller]
pub fn syscall<R>(f: impl FnOnce() -> R) -> R {
    let Some(core) = context::take_core_for_call() else {
        return block_in_place(f);
    };
    let remote = NonNull::from(&*core.remote);
    let call = Call::default();
    call.begin(&core);
    let exit = Exit {
        remote,
        call: call.id(),
        polled: core.counters().polled(),
        lender: trace::lend(&core),
        inherited: Inherited::of_turn(&core),
        hold: Some(core.shared.events.hold_clock()),
    };
    core.counters().syscalls.add(1);
    // SAFETY: as in the drop of `exit`.
    unsafe { remote.as_ref() }.call.enter(core);
    let result = f();
    drop(exit);
    result
}

/// Takes the core back when it is dropped, or ends the poll without one.
struct Exit {
    remote: NonNull<Remote>,
    call: usize,
    /// The number that the monitor is shown as the polled task.
    polled: usize,
    lender: trace::Lender,
    /// The group of the task that makes the call. The rest of the poll keeps that group.
    inherited: Inherited,
    hold: Option<ClockHold>,
}

impl Drop for Exit {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the thread's loop (`threads::drive`) has a counted reference to the runtime until
        // this poll is over, and the runtime owns its workers' `Remote`s.
        let remote = unsafe { self.remote.as_ref() };
        match remote
            .call
            .exit()
            .and_then(|core| call::take_back_or_offer(core, self.call))
        {
            Some(core) => {
                trace::take_back(&core, self.lender);
                context::put_core_after_call(core);
            }
            None => self.exit_retaken(remote),
        }
    }
}

impl Exit {
    #[cold]
    #[inline(never)]
    fn exit_retaken(&mut self, remote: &Remote) {
        let offered = remote.lent.take();
        if let Some(core) = offered.and_then(|core| call::take_back_or_offer(core, self.call)) {
            core.counters().restore_polled(self.polled);
            core.busy_time.begin();
            trace::take_back(&core, self.lender);
            // The monitor has retaken the core during the call, so the estimate of ticks is stale.
            core.looks.interval.forget();
            context::put_core(core);
        } else {
            self.inherited.keep();
            context::keep_clock(self.hold.take());
        }
    }
}
