//! The stack over which an owner's tasks return to it: rules 3 to 6 of [`list`](crate::list).
use crate::{
    cell::{Header, TaskPtr},
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
    /// The newest task; the lowest bit is the tag of rule 5.
    head: AtomicPtr<Header>,
    owner: Waker,
    /// The key of the list. Never written again.
    pub(crate) key: usize,
}

const WAKE: usize = 1;

impl Releases {
    /// Makes an empty stack. If `watched` is true, the first push wakes the owner.
    pub(crate) fn allocate(owner: Waker, key: usize, watched: bool) -> NonNull<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc(layout) }.cast::<Self>();
        let Some(releases) = NonNull::new(block) else {
            ::alloc::alloc::handle_alloc_error(layout)
        };
        let head = ptr::null_mut::<Header>().map_addr(|_| usize::from(watched));
        let value = Self {
            head: AtomicPtr::new(head),
            owner,
            key,
        };
        // SAFETY: the block is fresh and of this layout.
        unsafe { releases.write(value) };
        releases
    }

    /// Frees a stack. Contains a panic in the drop of the owner's waker.
    ///
    /// # Safety
    /// [`allocate`](Self::allocate) returned the stack, and no thread uses it any more.
    pub(crate) unsafe fn free(this: NonNull<Self>) {
        let releases = this.as_ptr();
        // SAFETY: the stack is the caller's alone.
        unsafe { &mut *releases }.head.retire();
        panics::contain_then(
            // SAFETY: the stack is initialised, and dropped once.
            || unsafe { releases.drop_in_place() },
            // SAFETY: `allocate` got the block with this layout.
            || unsafe { dealloc(releases.cast(), Layout::new::<Self>()) },
        );
    }

    /// Sends a task to its owner, and wakes the owner if the tag is set. Costs one
    /// read-modify-write, besides the wake. Contains the panics of the owner's waker.
    ///
    /// # Safety
    /// `this` is the stack of the owner in whose list the task is. Either the task is complete and
    /// has not been pushed since, or the caller holds its one `Notified`, which the call consumes.
    ///
    /// `this` is a pointer, not a reference: once the task is pushed, the owner may free the stack,
    /// and a reference would have to stay valid until the function returns.
    pub(crate) unsafe fn push(this: NonNull<Self>, task: TaskPtr) {
        // SAFETY: the caller promises this. The second call below is made only if this one did not
        // push.
        if unsafe { Self::try_push(this, task, None) } {
            return;
        }
        let owner = Cell::new(None);
        let clone = || {
            // SAFETY: the task holds LISTED until it is pushed, and LISTED keeps `this` alive.
            let waker = unsafe { &(*this.as_ptr()).owner };
            owner.set(Some(waker.clone()));
        };
        // Pushes even if nothing can be caught and the clone's panic unwinds.
        panics::contain_then(clone, || {
            // SAFETY: as above.
            unsafe { Self::try_push(this, task, Some(owner.take())) };
        });
    }

    /// Pushes, unless the owner wants to be woken and `push` has not tried to clone its waker yet.
    /// Returns whether it pushed. `owner` is `None` before the try, and `Some(None)` if the clone
    /// panicked.
    ///
    /// # Safety
    /// As for [`push`](Self::push), if it pushes.
    #[inline]
    unsafe fn try_push(this: NonNull<Self>, task: TaskPtr, owner: Option<Option<Waker>>) -> bool {
        // SAFETY: the task holds LISTED until it is pushed, and LISTED keeps `this` alive.
        let stack = unsafe { &(*this.as_ptr()).head };
        // Ordering: Relaxed; the exchange below confirms the value.
        let mut head = stack.load(Relaxed);
        let wake = loop {
            let wanted = head.addr() & WAKE != 0;
            if wanted && owner.is_none() {
                return false;
            }
            let wake = wanted && matches!(owner, Some(Some(_)));
            let next = NonNull::new(head.map_addr(|a| a & !WAKE));
            // SAFETY: LISTED keeps the task alive until the owner has taken it.
            let header = unsafe { task.as_ref() };
            // SAFETY: the task is never queued again, or this thread holds its `Notified`; either
            // way its link is this thread's.
            header.queue_next.with_mut(|link| unsafe { *link = next });
            let tag = usize::from(wanted && !wake);
            expose(task);
            let new = task.as_ptr().map_addr(|a| a | tag);
            // Ordering: Release publishes to `take` the link and what this thread did to the task.
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

    /// Takes all tasks. Costs one read-modify-write if there are any.
    pub(crate) fn take(&self, watched: bool) -> Option<TaskPtr> {
        if self.is_empty() {
            return None;
        }
        let empty = ptr::null_mut::<Header>().map_addr(|_| usize::from(watched));
        // Ordering: Acquire pairs with the Release of `try_push`.
        NonNull::new(self.head.swap(empty, Acquire).map_addr(|a| a & !WAKE))
    }

    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed; a missed push is found by the next look, and if the owner wants to be
        // woken, the releaser wakes it after the push.
        self.head.load(Relaxed).map_addr(|a| a & !WAKE).is_null()
    }

    /// Makes the next push wake the owner. The owner calls this once.
    pub(crate) fn watch(&self) {
        // Ordering: Relaxed; the exchange below confirms the value.
        let mut head = self.head.load(Relaxed);
        loop {
            let tagged = head.map_addr(|a| a | WAKE);
            // Ordering: Relaxed; a read-modify-write continues the release sequence of the pushes
            // so far, so `take` still acquires their links. The owner's next look is at the same
            // word.
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

/// Clears a task's queue link, and returns its old value.
///
/// # Safety
/// LISTED keeps the task alive, and the link is the caller's.
pub(crate) unsafe fn unlink(task: TaskPtr) -> Option<TaskPtr> {
    // SAFETY: the caller promises this.
    let header = unsafe { task.as_ref() };
    // SAFETY: the caller promises this.
    header.queue_next.with_mut(|link| unsafe { (*link).take() })
}

/// Returns the task after `task` in the chain that [`List::take`] returned. The link of `task` is
/// only an address (rule 6).
///
/// # Safety
/// The caller has taken the task, and not passed it on yet.
pub(crate) unsafe fn next_taken(task: TaskPtr) -> Option<TaskPtr> {
    // SAFETY: the links of taken tasks are the caller's.
    let next = unsafe { unlink(task) }?;
    // SAFETY: the task was on the stack, so its push exposed it.
    Some(unsafe { task_at(next.addr()) })
}
