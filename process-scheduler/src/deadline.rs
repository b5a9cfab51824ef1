//! A deadline of a task: an entry of the timer (`timer.rs`), which the task's polls arm.
//!
//! 1. A worker keeps the last entry that it would disarm. The next deadline that is made on this
//!    worker takes the entry over, if the entry comes no later. If both are of the same task, the
//!    entry wakes the task too early, and the task then arms another entry. Otherwise the new
//!    deadline arms an entry of its own. So a process that makes one call after another arms the
//!    timer once, and takes no lock. A kept entry keeps the memory of its task up to a minute.
//! 2. A clone and a drop of a waker are user code, which may panic. So a deadline forgets an entry
//!    before it disarms the entry, and does neither if the clone of the next waker panics. A
//!    deadline that is dropped guards the drops of wakers: its owner drops other values beside it.
use crate::{
    guard::{WakerId, drop_guarded},
    shared::Shared,
    timer::{Alert, Armed},
};
use std::{
    cell::RefCell,
    fmt,
    future::Future,
    mem,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// A worker keeps only entries of deadlines that were at most this far away when they were made
/// (rule 1).
const KEEP_WITHIN: Duration = Duration::from_secs(60);

/// The entry that a worker keeps (rule 1).
enum KeptEntry {
    /// This thread is no worker.
    NotKept,
    None,
    Some(Arc<Shared>, Armed),
}

sync_shim::simulated_thread_local! {
    static KEPT: RefCell<KeptEntry> = const { RefCell::new(KeptEntry::NotKept) };
}

/// Sets whether this thread keeps entries from now on. Disarms an entry that the thread kept,
/// outside of the borrow, because the drop of the entry's waker may run user code.
pub(crate) fn keep_entries(keeps: bool) {
    let now = if keeps {
        KeptEntry::None
    } else {
        KeptEntry::NotKept
    };
    if let KeptEntry::Some(shared, armed) = KEPT.replace(now) {
        disarm_guarded(&shared, &armed);
    }
}

/// Disarms an entry for an owner that is dropped, or for nobody (rule 2).
fn disarm_guarded(shared: &Shared, armed: &Armed) {
    shared
        .timer
        .disarm(armed)
        .into_iter()
        .for_each(drop_guarded);
}

/// Takes the kept entry, if it is of this scheduler and comes no later than `at`. The comparison is
/// of instants, since the tick of `at` would cost a division.
fn take_kept(shared: &Arc<Shared>, at: Instant) -> Option<(Arc<Shared>, Armed)> {
    let taken = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let fits = match &*kept {
            KeptEntry::Some(own, armed) => Arc::ptr_eq(own, shared) && armed.at <= at,
            _ => false,
        };
        match fits.then(|| mem::replace(&mut *kept, KeptEntry::None)) {
            Some(KeptEntry::Some(shared, armed)) => Some((shared, armed)),
            _ => None,
        }
    });
    taken.ok().flatten()
}

/// Keeps an entry if this thread keeps entries, and disarms it otherwise. Disarms the entry that
/// was kept before.
fn keep_or_disarm(shared: Arc<Shared>, armed: Armed) {
    let mut entry = Some((shared, armed));
    let before = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if matches!(*kept, KeptEntry::NotKept) {
            return KeptEntry::NotKept;
        }
        match entry.take() {
            Some((shared, armed)) => mem::replace(&mut *kept, KeptEntry::Some(shared, armed)),
            None => KeptEntry::NotKept,
        }
    });
    if let Ok(KeptEntry::Some(shared, armed)) = before {
        disarm_guarded(&shared, &armed);
    }
    if let Some((shared, armed)) = entry {
        disarm_guarded(&shared, &armed);
    }
}

/// A deadline, which is armed by its first poll.
pub(crate) struct Deadline {
    /// `None` once the deadline's drop has begun.
    shared: Option<Arc<Shared>>,
    /// `None` if the deadline is beyond the clock's range: it never comes.
    pub(crate) at: Option<Instant>,
    armed: Option<Armed>,
    may_be_kept: bool,
}

// A deadline uses only the timer and the wakers of the shared state. A panic of a waker's clone or
// drop leaves both, and the deadline, whole (rule 2).
impl UnwindSafe for Deadline {}
impl RefUnwindSafe for Deadline {}

impl Deadline {
    pub(crate) fn new(shared: &Arc<Shared>, within: Duration) -> Self {
        let at = sync_shim::time::now().checked_add(within);
        let kept = at.and_then(|at| take_kept(shared, at));
        let (shared, armed) = match kept {
            Some((shared, armed)) => (shared, Some(armed)),
            None => (shared.clone(), None),
        };
        Self {
            shared: Some(shared),
            at,
            armed,
            may_be_kept: within <= KEEP_WITHIN,
        }
    }

    /// Returns whether the deadline has passed. If it has not, the task is woken when it has.
    ///
    /// A first poll without a kept entry does not read the clock: it arms the timer, which fires at
    /// once if the deadline is due.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> bool {
        let (Some(at), Some(shared)) = (self.at, &self.shared) else {
            return false;
        };
        if let Some(armed) = &self.armed {
            let may_have_fired = shared.timer.may_have_fired(armed);
            if !may_have_fired && armed.waker == WakerId::of(cx.waker()) {
                return false;
            }
            if at <= sync_shim::time::now() {
                return true;
            }
        }
        // Rule 2: the clone first, and `armed` is `None` before the drop of the old waker.
        let waker = cx.waker().clone();
        if let Some(armed) = self.armed.take() {
            drop(shared.timer.disarm(&armed));
        }
        // A timer that has stopped would not wake the task, so the deadline counts as passed.
        let Some((armed, alert)) = shared.timer.arm(at, waker) else {
            return true;
        };
        self.armed = Some(armed);
        match alert {
            Alert::Nobody => {}
            Alert::Keeper(worker) => shared.wake_worker(worker),
            Alert::Sleeper => shared.notify(),
        }
        false
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let (Some(shared), Some(armed)) = (self.shared.take(), self.armed.take()) {
            if shared.timer.may_have_fired(&armed) {
                // The worker that fires the entry drops its waker.
                return;
            }
            if self.may_be_kept {
                keep_or_disarm(shared, armed);
            } else {
                disarm_guarded(&shared, &armed);
            }
        }
    }
}

/// The future of [`Handle::sleep`](crate::Handle::sleep).
#[must_use = "nothing sleeps until the future is awaited"]
pub struct Sleep(pub(crate) Deadline);

impl Unpin for Sleep {}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.poll(cx) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleep")
    }
}
