//! A task that blocks where it is, while another thread goes on as its worker.
//!
//! 1. The core is offered to whoever takes it, and a thread of the pool is asked to, unless one is on its way already: beyond the pool's cap.
//! 2. When the closure is done, the thread takes the core back if it is still on offer, and goes on as before.
//! 3. Else it ends the poll without a core: wakes and spawns go to the injector, and so does the task if it is to run again. One that
//!    waits and is in no list yet is queued once more, so that a worker lists it; one that is done and is in a list goes over that list's release stack.
//!    The budget is the thread's, and so stays with the poll, as does what nudges the worker that it was: one operation may be refused for that, and the nudge is lost. The closure has none: what it waits for on this thread would be refused for ever once that is used up.
//! 4. After that the thread is one of the pool's.
//! 5. A core on offer runs nothing. Which task is in its poll, and whether that gives way, is kept by the thread that blocks: the core that it takes back may have been another's meanwhile, whose task blocks, too.
use crate::{
    blocking,
    context::{self, Off},
    scope::{self, HoldsUp, In},
    shared::Shared,
};
use sync_shim::sync::Arc;
use task_header::Id;

/// Runs a closure that blocks, in the middle of a task, and lets another thread be the worker meanwhile.
///
/// The task itself waits: what runs beside it in the same task (by `join!`, say) is held up. Prefer
/// [`spawn_blocking`](crate::spawn_blocking) where the closure can be `'static`. To give the worker away and take it back costs two read-modify-writes
/// beside those of a reference, and a lock and the wake of a thread if none is on its way already; a closure that is done before that thread is up to it keeps the worker. The threads that take workers over
/// are beyond [`blocking_threads`](crate::Builder::blocking_threads): one for each task that blocks in place, and one that is on its way for each worker.
///
/// Where nothing is to be given away it just runs the closure: outside of a runtime, in `block_on`, in a closure that may block anyway. In a hook, in a
/// future that is dropped because its runtime ends, and in a worker that is driven by hand, only the LIFO slot is opened for the others.
/// A panic of the closure is the task's.
///
/// ```
/// let runtime = selvedge::Builder::new().workers(1).build()?;
/// let read = runtime.spawn(async {
///     let (sender, receiver) = std::sync::mpsc::channel();
///     selvedge::spawn_detached(async move { sender.send(7).unwrap() });
///     // With one worker, the other task runs only because that is given away.
///     selvedge::block_in_place(|| receiver.recv().unwrap())
/// });
/// assert_eq!(runtime.block_on(read).unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// In a [`LocalSet`](crate::LocalSet) or [`LocalRuntime`](crate::LocalRuntime), whose tasks no other thread can run.
#[track_caller]
pub fn block_in_place<R>(f: impl FnOnce() -> R) -> R {
    assert!(
        scope::holds_up() != HoldsUp::LocalSet,
        "block_in_place was called in a LocalSet or LocalRuntime, whose tasks no other thread can \
         run: use spawn_blocking instead, by the `Handle` of a runtime"
    );
    let f = || scope::within(In::BlockInPlace, || coop_budget::Scope::unlimited().run(f));
    let off = context::take_off();
    let Some(Off::Whole(core)) = off else {
        return f(); // After which a core that is held is this thread's again.
    };
    let (shared, index) = (core.shared.clone(), core.index);
    let running = core.running.take();
    core.clock_out();
    blocking::offer(&shared, core);
    let _given = Given {
        shared,
        index,
        running,
    };
    f()
}

/// While a closure runs whose thread has given its core away.
struct Given {
    shared: Arc<Shared>,
    index: usize,
    /// The task that blocks, unless it had asked to go behind the others. The core that comes back may be one that another task has offered since.
    running: Option<Id>,
}

impl Drop for Given {
    fn drop(&mut self) {
        // Else rule 3.
        if let Some(core) = self.shared.remotes[self.index].lent.take() {
            core.running.set(self.running);
            core.clock_in();
            context::give_back(core);
        } else {
            context::lose(self.running.is_none());
        }
    }
}
