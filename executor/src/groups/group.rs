//! A group: its name, its shares, and the count that decides whether it may be destroyed.
//!
//! | bits of `uses` | meaning |
//! |---|---|
//! | bit 0, `GONE` | the group is destroyed |
//! | the others | count of *uses*: tasks that have not ended, and children that are not destroyed |
//!
//! 1. A spawn *enters* the group before it makes the task: it adds a use, and takes the use back if
//!    it finds the group gone. A task *leaves* when its future is gone.
//! 2. `destroy` sets `GONE` by a compare-exchange from 0. So if a spawn and a `destroy` race, the
//!    first one wins: the spawn makes the group busy, or finds it gone.
//! 3. A use that was added to a group that is gone is taken back, and changes nothing: `GONE` is
//!    never cleared.
use crate::worker::identity::RuntimePtr;
use sched_group::Shares;
use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};
use sync_shim::{
    atomic::{
        AtomicU32, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
    sync::Mutex,
};

const GONE: usize = 1;
const USE: usize = 2;

/// A group of tasks of one runtime.
pub(crate) struct Group {
    pub(super) is_main: bool,
    /// The group's place in the table. A later group may have the same place.
    pub(super) index: usize,
    pub(super) depth: usize,
    pub(super) parent: Option<Arc<Group>>,
    pub(super) latency: Option<Duration>,
    runtime: OnceLock<RuntimePtr>,
    shares: AtomicU32,
    uses: AtomicUsize,
    pub(super) name: Mutex<String>,
    /// The group's values of `GroupLocal`s. The key is the address of the `GroupLocal`.
    pub(super) values: Mutex<BTreeMap<usize, Arc<dyn Any + Send + Sync>>>,
}

impl Group {
    pub(super) fn new(
        name: &str,
        shares: Shares,
        parent: Option<Arc<Self>>,
        index: usize,
        is_main: bool,
    ) -> Self {
        Self {
            is_main,
            index,
            depth: parent.as_ref().map_or(0, |parent| parent.depth + 1),
            parent,
            latency: None,
            runtime: OnceLock::new(),
            shares: AtomicU32::new(shares.get()),
            uses: AtomicUsize::new(0),
            name: Mutex::new(name.to_owned()),
            values: Mutex::new(BTreeMap::new()),
        }
    }

    /// A main group without a runtime.
    #[cfg(all(test, not(selvedge_shuttle)))]
    pub(crate) fn of_nobody() -> Self {
        Self::new(
            "nobody",
            Shares::new(1).expect("it is not 0"),
            None,
            0,
            true,
        )
    }

    pub(crate) fn name(&self) -> String {
        self.name.lock().clone()
    }

    /// Gives the group the address of its runtime. Called once, before the group's first task.
    pub(super) fn bind(&self, runtime: RuntimePtr) {
        let first = self.runtime.set(runtime).is_ok();
        debug_assert!(first, "a group belongs to one runtime");
    }

    /// The runtime that the group belongs to. The caller may dereference the pointer only while it
    /// knows that the runtime exists. A `Notified` of the group, for example, keeps the runtime.
    pub(crate) fn runtime(&self) -> RuntimePtr {
        *self
            .runtime
            .get()
            .expect("it is bound before its first task")
    }

    pub(super) fn shares(&self) -> Shares {
        // Ordering: Relaxed; a worker reads the shares after an Acquire load of
        // `Groups::version`, which each change increases.
        let number = self.shares.load(Relaxed);
        Shares::new(number).expect("it comes from `Shares`")
    }

    pub(super) fn set_shares(&self, shares: Shares) {
        // Ordering: Relaxed, `Groups::changed` publishes the new shares.
        self.shares.store(shares.get(), Relaxed);
    }

    /// Adds a task or a child. Returns false if the group is gone (rule 1). Main counts nothing.
    pub(crate) fn enter(&self) -> bool {
        if self.is_main {
            return true;
        }
        // Ordering: Relaxed, as the modification order of `uses` decides whether this addition or
        // `destroy` comes first (rule 2).
        let before = self.uses.fetch_add(USE, Relaxed);
        if before & GONE != 0 {
            // Ordering: Relaxed, as above.
            self.uses.fetch_sub(USE, Relaxed);
            return false;
        }
        true
    }

    /// Removes a task or a child that has entered.
    pub(crate) fn leave(&self) {
        if !self.is_main {
            self.leave_counted();
        }
    }

    fn leave_counted(&self) {
        // Ordering: Release pairs with `destroy`: the destroying thread sees what the task wrote.
        let before = self.uses.fetch_sub(USE, Release);
        debug_assert!(before >= USE, "it has entered");
    }

    /// Marks the group as gone. Returns false if it has tasks or children, or is gone already.
    pub(super) fn destroy(&self) -> bool {
        // Ordering: Acquire pairs with `leave`; Relaxed at failure, which does nothing.
        !self.is_main
            && self
                .uses
                .compare_exchange(0, GONE, Acquire, Relaxed)
                .is_ok()
    }

    pub(super) fn is_gone(&self) -> bool {
        // Ordering: Relaxed; a worker reads the bit after an Acquire load of `Groups::version`, and
        // `GroupLocal` reads the bit under the lock of the values.
        self.uses.load(Relaxed) & GONE != 0
    }

    /// The number of tasks and children.
    pub(super) fn uses(&self) -> usize {
        // Ordering: Relaxed, as the number is only shown.
        self.uses.load(Relaxed) / USE
    }
}

impl Drop for Group {
    /// Drops the ancestors that nothing else keeps. This is a loop, because a recursive drop of a
    /// long line of ancestors may overflow the stack.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|mut parent| parent.parent.take());
        }
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A copy, as the formatter is user code, which must not run under the lock.
        f.debug_struct("Group")
            .field("name", &self.name())
            .field("shares", &self.shares())
            .field("uses", &self.uses())
            .finish_non_exhaustive()
    }
}
