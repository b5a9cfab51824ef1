//! The list of live tasks of one owner, without a lock.
//!
//! A task is linked by the owner that polls it, just before its first `Pending` is published, and
//! the list holds a reference to it (`LISTED`) from that same read-modify-write on: that is what
//! lets a wake by reference submit the task without counting. A task that completes in its first
//! poll touches no list.
//!
//! 1. Links are touched by the owner alone, through `&mut`.
//! 2. A task leaves the list only after `COMPLETE`, when it can never be queued again.
//! 3. A task that completes elsewhere is pushed on the owner's release stack by the thread that
//!    completed it, once; its queue link is free by then and serves the stack. The owner unlinks
//!    it, gives up `LISTED`, and frees the cell if that was the last reference.
//! 4. The release stack outlives every task that names it: a list that is dropped with tasks in it leaks it.
//! 5. Closing sets a tag in the stack's head with a read-modify-write, so every later push sees
//!    it and wakes the owner, and every earlier push is found by the owner's next drain. The waker
//!    is cloned before the push: after it the owner may be gone.
use crate::{
    cell::{Links as Neighbours, TaskPtr, header, trailer},
    notified::Notified,
    raw,
    state::Duty,
};
use core::{fmt, marker::PhantomData, ptr, ptr::NonNull, task::Waker};
use sync_shim::{
    alloc::{Layout, alloc, dealloc},
    atomic::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        Retire,
    },
};

/// The release stack of one owner.
pub(crate) struct Releases {
    /// The newest task, its lowest bit the tag of rule 5.
    head: AtomicPtr<crate::cell::Header>,
    owner: Waker,
}

const CLOSING: usize = 1;

impl Releases {
    /// Gives a completed task back to its owner. One read-modify-write.
    ///
    /// # Safety
    /// The task is complete, in the owner's list, which `this` belongs to, and pushed only once.
    ///
    /// By pointer: once the task is pushed the owner may free `this`, while a reference would have to be good until the end.
    pub(crate) unsafe fn push(this: NonNull<Self>, task: TaskPtr) {
        // SAFETY: LISTED, which the task holds until it is pushed, keeps `this`.
        let stack = unsafe { &(*this.as_ptr()).head };
        // Ordering: Relaxed, the exchange below confirms what was read.
        let mut head = stack.load(Relaxed);
        let mut owner = None;
        loop {
            let closing = head.addr() & CLOSING;
            if closing != 0 && owner.is_none() {
                // SAFETY: as above.
                owner = Some(unsafe { &(*this.as_ptr()).owner }.clone());
            }
            let next = NonNull::new(head.map_addr(|a| a & !CLOSING));
            // SAFETY: LISTED keeps the task alive until the owner drains it.
            let header = unsafe { header(task) };
            // SAFETY: the task is never queued again, so its link is this thread's.
            header.queue_next.with_mut(|link| unsafe { *link = next });
            let new = task.as_ptr().map_addr(|a| a | closing);
            // Ordering: Release publishes the link and the completion to `drain`.
            match stack.compare_exchange_weak(head, new, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    /// Takes all. One read-modify-write if there is anything.
    fn take(&self, closing: bool) -> Option<TaskPtr> {
        // Ordering: Relaxed, a look; what is missed is found by the next drain, and once closing
        // the pusher wakes the owner.
        if self.head.load(Relaxed).map_addr(|a| a & !CLOSING).is_null() {
            return None;
        }
        let empty = ptr::null_mut::<crate::cell::Header>().map_addr(|_| usize::from(closing));
        // Ordering: Acquire pairs with `push`.
        NonNull::new(self.head.swap(empty, Acquire).map_addr(|a| a & !CLOSING))
    }
}

/// The list itself, untyped.
pub(crate) struct Links {
    first: Option<TaskPtr>,
    len: usize,
    closing: bool,
    releases: NonNull<Releases>,
}

impl Links {
    fn new(owner: Waker) -> Self {
        let layout = Layout::new::<Releases>();
        // SAFETY: the layout has a size.
        let block = unsafe { alloc(layout) }.cast::<Releases>();
        let Some(releases) = NonNull::new(block) else {
            ::alloc::alloc::handle_alloc_error(layout)
        };
        let value = Releases {
            head: AtomicPtr::new(ptr::null_mut()),
            owner,
        };
        // SAFETY: the block is fresh and of this layout.
        unsafe { releases.write(value) };
        Self {
            first: None,
            len: 0,
            closing: false,
            releases,
        }
    }

    fn releases(&self) -> &Releases {
        // SAFETY: freed only in `drop`, and only borrowed shared until then.
        unsafe { self.releases.as_ref() }
    }

    pub(crate) fn owns(&self, owner: *const Releases) -> bool {
        ptr::eq(self.releases.as_ptr(), owner)
    }

    /// Puts a task in.
    ///
    /// # Safety
    /// The calling thread runs the task, which is in no list, and sets LISTED next.
    pub(crate) unsafe fn link(&mut self, task: TaskPtr) {
        let owner = self.releases.as_ptr().cast_const();
        // SAFETY: the run keeps the task alive.
        let header = unsafe { header(task) };
        // SAFETY: not LISTED, so the running thread alone looks at it.
        header.owner.with_mut(|slot| unsafe { *slot = owner });
        let next = self.first.replace(task);
        self.len += 1;
        // SAFETY: the run keeps the task alive; its links are the owner's (rule 1).
        unsafe { set(task, |links| *links = Neighbours { prev: None, next }) };
        if let Some(next) = next {
            // SAFETY: a listed task is live.
            unsafe { set(next, |links| links.prev = Some(task)) };
        }
    }

    /// Takes a task out.
    ///
    /// # Safety
    /// The task is in this list.
    pub(crate) unsafe fn unlink(&mut self, task: TaskPtr) {
        let mut at = Neighbours::default();
        // SAFETY: a listed task is live.
        unsafe { set(task, |links| at = core::mem::take(links)) };
        match at.prev {
            // SAFETY: as above.
            Some(prev) => unsafe { set(prev, |links| links.next = at.next) },
            None => self.first = at.next,
        }
        if let Some(next) = at.next {
            // SAFETY: as above.
            unsafe { set(next, |links| links.prev = at.prev) };
        }
        self.len -= 1;
    }

    fn drain(&mut self) {
        let mut next = self.releases().take(self.closing);
        while let Some(task) = next {
            // SAFETY: LISTED keeps the task alive until the release below.
            let header = unsafe { header(task) };
            // SAFETY: pushed tasks' links are the stack's, which this thread has taken whole.
            next = header.queue_next.with_mut(|link| unsafe { (*link).take() });
            // SAFETY: only tasks of this list are pushed (rule 3).
            unsafe { self.unlink(task) };
            if let Duty::Dealloc = header.state.release_listed() {
                // SAFETY: no reference is left.
                unsafe { raw::dealloc(task) };
            }
        }
    }

    fn close(&mut self) {
        if core::mem::replace(&mut self.closing, true) {
            return;
        }
        let releases = self.releases();
        // Ordering: Relaxed, the exchange below confirms what was read.
        let mut head = releases.head.load(Relaxed);
        loop {
            let tagged = head.map_addr(|a| a | CLOSING);
            // Ordering: AcqRel keeps the pushes so far and their links for `drain` (a release
            // sequence), and orders the close before the owner's next look.
            match releases
                .head
                .compare_exchange_weak(head, tagged, AcqRel, Relaxed)
            {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.drain();
        if self.len != 0 {
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

/// Edits the links of a task.
///
/// # Safety
/// The task is live and the caller is its owner, with no other borrow of its links.
unsafe fn set(task: TaskPtr, edit: impl FnOnce(&mut Neighbours)) {
    // SAFETY: the caller says that the task is live.
    let trailer = unsafe { trailer(task) };
    // SAFETY: the caller is the owner (rule 1).
    trailer.links.with_mut(|links| edit(unsafe { &mut *links }));
}

/// The live tasks of one owner: a worker's core, a local executor.
///
/// Every operation takes `&mut self`: there is one owner, and nobody else walks the list.
pub struct Owned<S> {
    pub(crate) links: Links,
    scheduler: PhantomData<fn() -> S>,
}

// SAFETY: the links point to tasks, which only the owner reaches through this; it may move between
// threads, as a run of a task may.
unsafe impl<S> Send for Owned<S> {}

impl<S: crate::Schedule> Owned<S> {
    /// An empty list. `owner` is woken when a task of a closing list ends elsewhere.
    pub fn new(owner: Waker) -> Self {
        Self {
            links: Links::new(owner),
            scheduler: PhantomData,
        }
    }

    /// Tasks in the list, those that ended elsewhere and were not drained yet among them.
    pub fn len(&self) -> usize {
        self.links.len
    }

    /// Whether no task is in the list.
    pub fn is_empty(&self) -> bool {
        self.links.len == 0
    }

    /// Lets go of tasks that ended elsewhere. A load if there is none, else one read-modify-write,
    /// and one a task.
    pub fn drain(&mut self) {
        self.links.drain();
    }

    /// Whether tasks that ended elsewhere wait for [`drain`](Self::drain). A hint.
    pub fn has_releases(&self) -> bool {
        // Ordering: Relaxed, a hint.
        !self
            .links
            .releases()
            .head
            .load(Relaxed)
            .map_addr(|a| a & !CLOSING)
            .is_null()
    }

    /// Closes the list: from now on the owner is woken when a task of the list ends elsewhere.
    /// Tasks may still be linked.
    pub fn close(&mut self) {
        self.links.close();
    }

    /// Aborts every task of the list and drops here the futures of those that are idle.
    ///
    /// The others are queued or run somewhere: they end where they turn up, and the list is empty
    /// only after that. One read-modify-write a task.
    pub fn cancel_all(&mut self) {
        let mut next = self.links.first;
        while let Some(task) = next {
            // SAFETY: a listed task is live.
            unsafe { set(task, |links| next = links.next) };
            // SAFETY: as above.
            if let Duty::Submit = unsafe { header(task) }.state.abort() {
                // SAFETY: this thread holds the one `Notified`, of a task in this list.
                unsafe { raw::cancel(task, Some(&mut self.links)) };
            }
        }
    }
}

impl<S: crate::Schedule> Owned<S> {
    /// Runs a task once, in this list. See [`Notified::run`].
    pub fn run(&mut self, task: Notified<S>) -> crate::Ran<S> {
        task.run_in(Some(&mut self.links))
    }

    /// Drops the future of a queued task in place of running it.
    pub fn cancel(&mut self, task: Notified<S>) {
        // SAFETY: a `Notified` is the one of its task, and is consumed.
        unsafe { raw::cancel(task.into_raw(), Some(&mut self.links)) };
    }
}

impl<S> fmt::Debug for Owned<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned")
            .field("len", &self.links.len)
            .finish_non_exhaustive()
    }
}
