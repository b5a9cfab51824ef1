//! The stack over which the tasks of an owner come back to it: rules 3 to 6 of
//! [`list`](crate::list).
use crate::{
    cell::{Header, TaskPtr, header},
    exposed::{expose, task_at},
    panics,
};
use core::{cell::Cell, ptr, ptr::NonNull, task::Waker};
use sync_shim::{
    alloc::{Layout, alloc, dealloc},
    atomic::{
        AtomicPtr,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
};

/// The stack of one owner.
pub(crate) struct Releases {
    /// The newest task, its lowest bit the tag of rule 5.
    head: AtomicPtr<Header>,
    owner: Waker,
}

const WAKE: usize = 1;

impl Releases {
    /// An empty stack. `watched`: the owner is woken when something comes onto it.
    pub(crate) fn allocate(owner: Waker, watched: bool) -> NonNull<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout has a size.
        let block = unsafe { alloc(layout) }.cast::<Self>();
        let Some(releases) = NonNull::new(block) else {
            ::alloc::alloc::handle_alloc_error(layout)
        };
        let head = ptr::null_mut::<Header>().map_addr(|_| usize::from(watched));
        let value = Self {
            head: AtomicPtr::new(head),
            owner,
        };
        // SAFETY: the block is fresh and of this layout.
        unsafe { releases.write(value) };
        releases
    }

    /// Frees a stack.
    ///
    /// # Safety
    /// [`allocate`](Self::allocate) gave it, and nobody uses it any more.
    pub(crate) unsafe fn free(this: NonNull<Self>) {
        let releases = this.as_ptr();
        // SAFETY: the caller's alone.
        unsafe { &mut *releases }.head.retire();
        // SAFETY: initialised, dropped once.
        unsafe { releases.drop_in_place() };
        // SAFETY: `allocate` got the block with this layout.
        unsafe { dealloc(releases.cast(), Layout::new::<Self>()) };
    }

    /// Gives a task to its owner. One read-modify-write, and the owner's wake if it waits for one.
    /// Contains its waker's panics.
    ///
    /// # Safety
    /// The task is in the owner's list, which `this` belongs to. It is complete and pushed for the
    /// first time since, or the caller holds its one `Notified`, which this consumes.
    ///
    /// By pointer: once the task is pushed the owner may free `this`, while a reference would have
    /// to be good until the end.
    pub(crate) unsafe fn push(this: NonNull<Self>, task: TaskPtr) {
        // SAFETY: passed on; the first one is the last unless it did not push.
        if unsafe { Self::try_push(this, task, None) } {
            return;
        }
        let owner = Cell::new(None);
        let clone = || {
            // SAFETY: LISTED, which the task holds until it is pushed, keeps `this`.
            let waker = unsafe { &(*this.as_ptr()).owner };
            owner.set(Some(waker.clone()));
        };
        // Also where the panic of a clone goes on.
        panics::contain_then(clone, || {
            // SAFETY: as above.
            unsafe { Self::try_push(this, task, Some(owner.take())) };
        });
    }

    /// Pushes, unless the owner wants to be woken and nobody has tried to clone its waker.
    ///
    /// # Safety
    /// As for [`push`](Self::push), if it does.
    #[inline]
    unsafe fn try_push(this: NonNull<Self>, task: TaskPtr, owner: Option<Option<Waker>>) -> bool {
        // SAFETY: LISTED, which the task holds until it is pushed, keeps `this`.
        let stack = unsafe { &(*this.as_ptr()).head };
        // Ordering: Relaxed, the exchange below confirms what was read.
        let mut head = stack.load(Relaxed);
        let wake = loop {
            let wanted = head.addr() & WAKE != 0;
            if wanted && owner.is_none() {
                return false;
            }
            let wake = wanted && matches!(owner, Some(Some(_)));
            let next = NonNull::new(head.map_addr(|a| a & !WAKE));
            // SAFETY: LISTED keeps the task alive until the owner has taken it.
            let header = unsafe { header(task) };
            // SAFETY: the task is never queued again, or this holds its `Notified`: its link is
            // this thread's.
            header.queue_next.with_mut(|link| unsafe { *link = next });
            let tag = usize::from(wanted && !wake);
            expose(task);
            let new = task.as_ptr().map_addr(|a| a | tag);
            // Ordering: Release publishes the link, and what this thread did to the task, to
            // `take`.
            match stack.compare_exchange_weak(head, new, Release, Relaxed) {
                Ok(_) => break wake,
                Err(now) => head = now,
            }
        };
        if let Some(Some(owner)) = owner {
            panics::contain(|| if wake { owner.wake() } else { drop(owner) });
        }
        true
    }

    /// Takes all. One read-modify-write if there is anything.
    pub(crate) fn take(&self, watched: bool) -> Option<TaskPtr> {
        if self.is_empty() {
            return None;
        }
        let empty = ptr::null_mut::<Header>().map_addr(|_| usize::from(watched));
        // Ordering: Acquire pairs with `push`.
        NonNull::new(self.head.swap(empty, Acquire).map_addr(|a| a & !WAKE))
    }

    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed, a look; what is missed is found by the next one, and where the owner
        // wants to be woken the pusher does so after its push.
        self.head.load(Relaxed).map_addr(|a| a & !WAKE).is_null()
    }

    /// From now on the owner is woken by a push. By the owner, once.
    pub(crate) fn watch(&self) {
        // Ordering: Relaxed, the exchange below confirms what was read.
        let mut head = self.head.load(Relaxed);
        loop {
            let tagged = head.map_addr(|a| a | WAKE);
            // Ordering: Relaxed, a read-modify-write keeps the pushes so far and their links for
            // `take` (a release sequence). The owner's next look is at the same word.
            match self
                .head
                .compare_exchange_weak(head, tagged, Relaxed, Relaxed)
            {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
    }
}

/// Clears a task's queue link, and gives what it was.
///
/// # Safety
/// LISTED keeps the task alive, and its link is the caller's.
pub(crate) unsafe fn unlink(task: TaskPtr) -> Option<TaskPtr> {
    // SAFETY: passed on.
    let header = unsafe { header(task) };
    // SAFETY: passed on.
    header.queue_next.with_mut(|link| unsafe { (*link).take() })
}

/// The one after `task` in what [`List::take`] gave. Its link is only an address (rule 6).
///
/// # Safety
/// The caller has taken the task, and not given it on yet.
pub(crate) unsafe fn next_taken(task: TaskPtr) -> Option<TaskPtr> {
    // SAFETY: the links of what was taken are the caller's.
    let next = unsafe { unlink(task) }?;
    // SAFETY: on the stack, so that its push exposed it.
    Some(unsafe { task_at(next.addr()) })
}
