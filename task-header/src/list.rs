//! The list of one owner's tasks, and the stack on which others give tasks back to it.
//!
//! 1. The list is touched by the owner alone, which has it exclusively or on its own thread. It is a [table](crate::table).
//! 2. A task leaves the list only after `COMPLETE`, when it can never be queued again.
//! 3. A task that completes elsewhere is pushed on the owner's stack by the thread that completed it, once; its queue link is free
//!    by then and serves the stack. The owner takes it out, gives up `LISTED`, and frees the cell if that was the last reference.
//!    A task of one thread that is queued is pushed by whoever holds its one `Notified`, in whose place it is then on the stack.
//! 4. The stack outlives every task that names it: a list that is dropped with tasks in it leaks it.
//! 5. A tag in the stack's head says that the owner wants to be woken. It is set by the owner with a read-modify-write: a push before that
//!    is found by the owner's next look, which comes after; a push that follows sees the tag, takes it away and wakes. The owner sets it
//!    again as it empties the stack, so that it is there whenever the stack is empty. The waker is cloned before the push: after it the owner may be gone.
//!    A push whose clone panicked can't wake and leaves the tag to the next one.
//! 6. A link may name a task that was freed after the pusher's look, and another was put in its place and pushed: the exchange then expects the right address
//!    by an old pointer. So nobody's pointer goes with a link: a push exposes its task's provenance, and the owner makes pointers from addresses.
//!    Only links of the stack are such. Links that the owner writes itself are the tasks' pointers.
use crate::{
    cell::{self, TaskPtr, header},
    exposed::{expose, task_at},
    panics,
    state::{Duty, State},
    table::{self, Table},
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
    head: AtomicPtr<crate::cell::Header>,
    owner: Waker,
}

const WAKE: usize = 1;

impl Releases {
    /// Gives a task to its owner. One read-modify-write, and the owner's wake if it waits for one. Contains its waker's panics.
    ///
    /// # Safety
    /// The task is in the owner's list, which `this` belongs to. It is complete and pushed for the first time since, or the caller holds its one `Notified`, which this consumes.
    ///
    /// By pointer: once the task is pushed the owner may free `this`, while a reference would have to be good until the end.
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
            // SAFETY: the task is never queued again, or this holds its `Notified`: its link is this thread's.
            header.queue_next.with_mut(|link| unsafe { *link = next });
            let tag = usize::from(wanted && !wake);
            expose(task);
            let new = task.as_ptr().map_addr(|a| a | tag);
            // Ordering: Release publishes the link, and what this thread did to the task, to `take`.
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
    fn take(&self, watched: bool) -> Option<TaskPtr> {
        if self.is_empty() {
            return None;
        }
        let empty = ptr::null_mut::<crate::cell::Header>().map_addr(|_| usize::from(watched));
        // Ordering: Acquire pairs with `push`.
        NonNull::new(self.head.swap(empty, Acquire).map_addr(|a| a & !WAKE))
    }

    fn is_empty(&self) -> bool {
        // Ordering: Relaxed, a look; what is missed is found by the next one, and where the owner wants to be woken the
        // pusher does so after its push.
        self.head.load(Relaxed).map_addr(|a| a & !WAKE).is_null()
    }
}

/// The list itself, untyped.
pub(crate) struct List {
    tasks: Table,
    watched: bool,
    /// The stack, which outlives the tasks of the list (rule 4).
    pub(crate) releases: NonNull<Releases>,
}

impl List {
    /// An empty list. `watched`: the owner is woken when something comes onto the stack.
    pub(crate) fn new(owner: Waker, watched: bool) -> Self {
        let layout = Layout::new::<Releases>();
        // SAFETY: the layout has a size.
        let block = unsafe { alloc(layout) }.cast::<Releases>();
        let Some(releases) = NonNull::new(block) else {
            ::alloc::alloc::handle_alloc_error(layout)
        };
        let head = ptr::null_mut::<crate::cell::Header>().map_addr(|_| usize::from(watched));
        let value = Releases {
            head: AtomicPtr::new(head),
            owner,
        };
        // SAFETY: the block is fresh and of this layout.
        unsafe { releases.write(value) };
        Self {
            tasks: Table::new(),
            watched,
            releases,
        }
    }

    fn releases(&self) -> &Releases {
        // SAFETY: freed only in `drop`, and only borrowed shared until then.
        unsafe { self.releases.as_ref() }
    }

    pub(crate) fn first(&self) -> Option<TaskPtr> {
        self.tasks.first()
    }

    /// The task after this one, as [`first`](Self::first) begins.
    ///
    /// # Safety
    /// The task is in this list.
    pub(crate) unsafe fn after(&self, task: TaskPtr) -> Option<TaskPtr> {
        // SAFETY: a listed task is live.
        let place = unsafe { cell::place(task) };
        // SAFETY: passed on.
        unsafe { self.tasks.after(place) }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether something is on the stack. A hint.
    pub(crate) fn has_releases(&self) -> bool {
        !self.releases().is_empty()
    }

    /// Puts a task in.
    ///
    /// # Safety
    /// The calling thread runs the task, which is in no list, and sets LISTED next; or the task is new, and nobody else has it.
    pub(crate) unsafe fn insert(&mut self, task: TaskPtr) {
        // SAFETY: always this stack, which outlives the tasks (rule 4).
        let place = unsafe { self.tasks.insert(task, self.releases) };
        // SAFETY: the run keeps the task alive, or it is the caller's.
        let header = unsafe { header(task) };
        // SAFETY: this thread alone looks at it so far.
        header.place.with_mut(|slot| unsafe { *slot = Some(place) });
    }

    /// Takes a task out.
    ///
    /// # Safety
    /// The task is in this list.
    pub(crate) unsafe fn remove(&mut self, task: TaskPtr) {
        // SAFETY: a listed task is live.
        let place = unsafe { cell::place(task) };
        // SAFETY: in this list, and so not removed yet.
        unsafe { self.tasks.remove(place) };
    }

    /// Takes what others have pushed, the newest first.
    pub(crate) fn take(&mut self) -> Option<TaskPtr> {
        self.releases().take(self.watched)
    }

    /// Takes a complete task out for good.
    ///
    /// # Safety
    /// The task is complete, in this list, and on no stack.
    pub(crate) unsafe fn release(&mut self, task: TaskPtr) -> Duty {
        // SAFETY: passed on.
        unsafe { self.remove(task) };
        // SAFETY: LISTED keeps the task alive until this transition.
        unsafe { state(task) }.release_listed()
    }

    /// From now on the owner is woken by a push.
    pub(crate) fn watch(&mut self) {
        if core::mem::replace(&mut self.watched, true) {
            return;
        }
        let releases = self.releases();
        // Ordering: Relaxed, the exchange below confirms what was read.
        let mut head = releases.head.load(Relaxed);
        loop {
            let tagged = head.map_addr(|a| a | WAKE);
            // Ordering: Relaxed, a read-modify-write keeps the pushes so far and their links for `take` (a release
            // sequence). The owner's next look is at the same word.
            match releases
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

/// # Safety
/// As for [`header`].
unsafe fn state<'a>(task: TaskPtr) -> &'a State {
    // SAFETY: passed on.
    &unsafe { header(task) }.state
}

impl Drop for List {
    fn drop(&mut self) {
        if self.len() != 0 {
            return; // Rule 4.
        }
        let releases = self.releases.as_ptr();
        // SAFETY: no task is left that names it, and no handle of it but this.
        unsafe { &mut *releases }.head.retire();
        // SAFETY: initialised, dropped once.
        unsafe { releases.drop_in_place() };
        // SAFETY: `new` got the block with this layout.
        unsafe { dealloc(releases.cast(), Layout::new::<Releases>()) };
    }
}

/// The stack of a listed task's owner.
///
/// # Safety
/// LISTED is set, which the caller has acquired, and keeps.
pub(crate) unsafe fn releases(task: TaskPtr) -> NonNull<Releases> {
    // SAFETY: a listed task is live.
    let place = unsafe { cell::place(task) };
    // SAFETY: passed on.
    unsafe { table::releases(place) }
}
