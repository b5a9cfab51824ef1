//! `block_in_place`: a task blocks its thread while another thread runs its worker's other tasks.
//!
//! | a worker's core is | it belongs to |
//! |---|---|
//! | *running* | the one thread that runs the worker |
//! | *lent*, or on offer | no thread: the lender may take it back, or another thread may accept it |
//!
//! 1. Before the closure the thread offers its core. It also requests that a thread of the pool
//!    accept the core, unless such a request is on its way already. The pool's cap does not bound
//!    the threads that accept cores.
//! 2. After the closure the thread takes the core back, if the core is still on offer. The thread
//!    then goes on as before.
//! 3. If the core is no longer on offer, the thread ends the poll without a core:
//!    1. Tasks that the thread wakes or spawns go to the injector. So does the polled task if it is
//!       to run again.
//!    2. If the polled task waits, and is in no worker's list yet, the thread queues the task once
//!       more, so that a worker lists it. If the polled task has ended, and is in a list, it goes
//!       to the release stack of that list.
//!    3. For the rest of the poll the thread keeps the budget and the time slice of the worker that
//!       it was. So a nudge of that worker may make one operation of this thread yield; the worker
//!       then misses the nudge.
//! 4. After the poll the thread is a thread of the pool.
//! 5. No thread runs the tasks of a core on offer. During the closure another thread may have
//!    accepted the core, and may have offered it again because a task of that thread blocks, too.
//!    Then the thread of the closure leaves the core on offer, and goes on by rule 3
//!    ([`call`](crate::blocking::call)).
//! 6. The closure has an unlimited budget. The closure may wait on this thread for a future. Under
//!    a limited budget that future would never proceed once the budget is exhausted.
use crate::{
    blocking::{
        self,
        call::{self, Call},
    },
    events::ClockHold,
    groups::Inherited,
    observe::trace,
    scope::{self, HoldsUp, In},
    worker::{
        context::{self, TakenCore},
        shared::Shared,
    },
};
use sync_shim::sync::Arc;

/// Runs a blocking closure inside a task, while another thread runs the worker's other tasks.
///
/// The task itself waits for the closure. So do the futures that run beside the closure in the same
/// task (by `join!`, say). Prefer [`spawn_blocking`](crate::spawn_blocking) if the closure can be
/// `'static`.
///
/// To give the worker away and take it back costs two read-modify-writes, beside those of a
/// reference count. It also costs a lock and the wake of a thread, unless a thread is on its way
/// already. If the closure ends before that thread takes the worker over, the task keeps the
/// worker. The threads that take workers over do not count for
/// [`blocking_threads`](crate::Builder::blocking_threads). There is one such thread for each task
/// that blocks in place, and at most one on its way for each worker.
///
/// Outside of a runtime, in `block_on`, and in a closure that may block anyway, there is no worker
/// to give away: this function only runs the closure. A hook, and the drop of a future at its
/// runtime's end, do not give their worker away. Nor does a driven worker's task. In these cases
/// the worker's other tasks wait, unless other workers steal them. The other workers may steal the
/// task in the LIFO slot at once.
///
/// A panic of the closure is a panic of the task.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
/// let read = runtime.spawn(async {
///     let (sender, receiver) = std::sync::mpsc::channel();
///     selvedge_executor::spawn_detached(async move { sender.send(7).unwrap() });
///     // With one worker, the other task runs only because the worker is given away.
///     selvedge_executor::block_in_place(|| receiver.recv().unwrap())
/// });
/// assert_eq!(runtime.block_on(read).unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// In a [`LocalSet`](crate::LocalSet) or [`LocalRuntime`](crate::LocalRuntime): no other thread can
/// run their tasks.
#[track_caller]
pub fn block_in_place<R>(f: impl FnOnce() -> R) -> R {
    assert!(
        scope::holds_up() != HoldsUp::LocalSet,
        "block_in_place was called in a LocalSet or LocalRuntime, whose tasks no other thread can \
         run: use spawn_blocking instead"
    );
    let f = || scope::within(In::BlockInPlace, || coop_budget::Scope::unlimited().run(f));
    // Without its core the thread has no turn. So it keeps the turn's group, even if the core is
    // pinned.
    let inherited = Inherited::of_thread();
    let taken = context::take_core();
    let Some(TakenCore::Lendable(core)) = taken else {
        return f(); // The drop of `taken` then puts a pinned core back.
    };
    let (shared, index) = (core.shared.clone(), core.index);
    let hold = Some(shared.events.hold_clock());
    let call = Call::default();
    call.begin(&core);
    core.busy_time.end(core.counters());
    let polled = core.counters().polled();
    core.counters().begin_block_in_place();
    let lender = trace::lend(&core);
    blocking::offer(&shared, core);
    let _return = TakeBack {
        shared,
        index,
        call: call.id(),
        polled,
        lender,
        inherited,
        hold,
    };
    f()
}

/// Does the same as [`block_in_place`], with tokio's condition.
///
/// # Panics
/// As [`block_in_place`], and also where the closure would block the only thread of a runtime.
#[doc(hidden)]
#[track_caller]
pub fn block_in_place_beside_workers<R>(f: impl FnOnce() -> R) -> R {
    assert!(
        !scope::holds_up_only_thread(),
        "block_in_place was called in a runtime of one thread, whose tasks no other thread can \
         run: use spawn_blocking, or a runtime with worker threads"
    );
    block_in_place(f)
}

/// Takes an offered core back when it is dropped, or ends the poll without one.
struct TakeBack {
    shared: Arc<Shared>,
    index: usize,
    call: usize,
    /// The number that the monitor was shown as the polled task.
    polled: usize,
    lender: trace::Lender,
    /// The group of the task that blocks. The rest of the poll keeps that group.
    inherited: Inherited,
    hold: Option<ClockHold>,
}

impl Drop for TakeBack {
    fn drop(&mut self) {
        let offered = self.shared.remotes[self.index].lent.take();
        if let Some(core) = offered.and_then(|core| call::take_back_or_offer(core, self.call)) {
            core.counters().restore_polled(self.polled);
            core.busy_time.begin();
            trace::take_back(&core, self.lender);
            context::put_core(core);
        } else {
            // Rule 3.
            self.inherited.keep();
            context::keep_clock(self.hold.take());
        }
    }
}
