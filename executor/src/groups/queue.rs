//! A worker's queue in a runtime with groups: main's queue, and the worker's turns.
//!
//! The rules are those of [`groups`](super). `sharing` is false while the worker runs only main's
//! tasks. Then the worker's lists are empty, the field `requeued` is empty, and each operation is
//! that of main's queue.
use super::{
    Groups,
    inbox::Inbox,
    turns::{State, Stolen, Turns},
};
use crate::worker::{
    queue::Plain,
    scheduler::{Scheduler, Task},
};
use queue_global::{Injector, Lock};
use sched_group::Pick;
use std::{cell::Cell, sync::Arc};
use task_header::Node;
use worker_queue::{Batch, Next, QueueHooks, RunQueue, SlotContent, Stealer};

/// After this many tasks of main in a row, while no other group had work here, the worker stops
/// sharing. Until then the time that main has run is kept in the fair queue.
const ALONE: u32 = 256;

/// A worker's queue.
pub(crate) struct GroupQueue {
    /// Main's tasks.
    pub(super) own: Plain,
    pub(super) sharing: Cell<bool>,
    /// The scheduler of main's tasks. `None` while the worker shares, and always `None` if the
    /// worker has an inbox: there a wake first looks where the task's home is.
    pub(super) plain: Cell<Option<Scheduler>>,
    /// The group that has the turn (rule 3 of [`turns`](super::turns)).
    turn: Cell<Scheduler>,
    /// Whether the worker runs code of no task, between two polls.
    is_outside: Cell<bool>,
    /// The task of another group than main that has just run, and is to run again (rule 9 of
    /// [`groups`](super)).
    requeued: Cell<Option<Task>>,
    main: Scheduler,
    /// How many tasks this queue has taken from outside, without those that its calls have
    /// returned or counted. The core adds them to its counter.
    taken: Cell<usize>,
    /// How many of main's tasks ran in a row while no other group had work here.
    alone: Cell<u32>,
    /// The first victim of the next search.
    victim: Cell<usize>,
    worker: usize,
    turns: Arc<Turns>,
    /// The tasks that other threads have sent here. `None` if the workers steal.
    pub(super) inbox: Option<Arc<Inbox>>,
    groups: Arc<Groups>,
}

/// The part of a worker's queue that the other workers see.
pub(crate) struct GroupStealer {
    ring: Stealer<Node<Scheduler>>,
    /// If the groups' setting `sharded` is on, thieves find nothing here.
    groups: Arc<Groups>,
    worker: usize,
}

impl GroupStealer {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.settings.sharded || self.ring.is_empty() && self.queued() == 0
    }

    /// The number of tasks in the worker's ring, lists and inbox. May take the inbox's locks. For
    /// metrics and reports.
    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.queued() + self.inbox().map_or(0, Inbox::count)
    }

    /// Returns whether the worker has tasks, even if no other worker may steal them.
    pub(crate) fn has_tasks(&self) -> bool {
        let is_empty = self.ring.is_empty() && self.ring.slot_is_empty() && self.queued() == 0;
        !is_empty || self.has_mail()
    }

    /// Returns whether tasks wait in the worker's inbox.
    pub(crate) fn has_mail(&self) -> bool {
        self.inbox().is_some_and(|inbox| !inbox.is_empty())
    }

    fn inbox(&self) -> Option<&Inbox> {
        self.groups.inboxes.get(self.worker).map(|inbox| &**inbox)
    }

    /// The number of tasks in the worker's queue, with the one in its LIFO slot.
    pub(crate) fn waiting(&self) -> usize {
        self.len() + usize::from(!self.ring.slot_is_empty())
    }

    /// The number of tasks in the worker's lists.
    fn queued(&self) -> usize {
        if self.groups.is_used() {
            self.turns().queued()
        } else {
            0
        }
    }

    fn turns(&self) -> &Turns {
        &self.groups.workers[self.worker]
    }

    pub(crate) fn slot_is_empty(&self) -> bool {
        self.groups.settings.sharded || self.ring.slot_is_empty()
    }

    pub(crate) fn look(&self) -> Option<SlotContent> {
        if self.groups.settings.sharded {
            None
        } else {
            self.ring.look()
        }
    }

    pub(crate) fn steal_slot(&self, seen: SlotContent) -> Option<Task> {
        self.ring.steal_slot(seen)
    }
}

/// The worker's next action, as its turns decide it.
enum Action {
    /// Runs this task, of another group than main.
    Run(Task),
    /// Takes a task of main's queue.
    Main,
    /// Nothing is queued.
    Idle,
}

impl GroupQueue {
    pub(crate) fn new(own: Plain, groups: &Arc<Groups>, worker: usize) -> Self {
        let main = Scheduler::in_group(&groups.main);
        let inbox = groups.inboxes.get(worker).cloned();
        Self {
            own,
            sharing: Cell::new(false),
            plain: Cell::new(inbox.is_none().then_some(main)),
            turn: Cell::new(main),
            is_outside: Cell::new(false),
            requeued: Cell::new(None),
            main,
            taken: Cell::new(0),
            alone: Cell::new(0),
            victim: Cell::new(worker + 1),
            worker,
            turns: groups.workers[worker].clone(),
            inbox,
            groups: groups.clone(),
        }
    }

    /// The group whose task the worker runs, or main if the worker runs code of no task.
    pub(crate) fn turn(&self) -> Scheduler {
        match self.is_outside.get() {
            true => self.main,
            false => self.turn.get(),
        }
    }

    /// Runs user code between two polls. The code is in main's group, whichever group has the turn.
    pub(super) fn outside_of_turns<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Cell<bool>, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let _restore = Restore(&self.is_outside, self.is_outside.replace(true));
        f()
    }

    /// Enters the group whose task the worker runs, for a task that the running task spawns. Enters
    /// main if that group is gone because its last task has just ended.
    #[inline]
    pub(crate) fn inherit(&self) -> Scheduler {
        if self.sharing.get() {
            self.inherit_turn()
        } else {
            self.main
        }
    }

    #[cold]
    fn inherit_turn(&self) -> Scheduler {
        let turn = self.turn();
        // SAFETY: rule 3 of `turns`.
        let entered = unsafe { turn.group().as_ref() }.enter();
        if entered { turn } else { self.main }
    }

    /// Runs `f` on the turns. The worker shares from now on. Before `f` runs, the requeued task is
    /// pushed into the list of its group.
    fn share<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let requeued = self.requeued.take();
        self.turns.with(|state| {
            if !self.sharing.replace(true) {
                self.plain.set(None);
                state.begin();
            }
            if let Some(task) = requeued {
                state.push(task);
            }
            f(state)
        })
    }

    /// Queues a task while the worker shares, or a task of another group than main.
    #[cold]
    #[inline(never)]
    fn push(&self, task: Task, next: bool, hooks: &impl QueueHooks<Node<Scheduler>>) {
        if !task.scheduler().is_main() {
            self.share(|state| state.push(task));
            hooks.notify();
        } else if next && self.turn.get() == self.main {
            self.own.push_next(task, hooks);
        } else {
            self.own.push_back(task, hooks); // Rule 2.
        }
    }

    #[cold]
    #[inline(never)]
    fn requeue_by_shares(&self, task: Task, hooks: &impl QueueHooks<Node<Scheduler>>) {
        if !task.scheduler().is_main() {
            self.publish_requeued(hooks);
            self.requeued.set(Some(task));
        } else if self.turn.get() == self.main {
            self.own.requeue(task, hooks);
        } else {
            self.own.push_back(task, hooks);
        }
    }

    /// Pushes the requeued task into the list of its group, where thieves find it.
    #[inline]
    pub(super) fn publish_requeued(&self, hooks: &impl QueueHooks<Node<Scheduler>>) {
        if self.has_requeued() {
            self.push_requeued(hooks);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_requeued(&self, hooks: &impl QueueHooks<Node<Scheduler>>) {
        let lists_were_empty = self.turns.queued() == 0;
        self.share(|_| {});
        if lists_were_empty && !self.own.is_empty() {
            hooks.notify(); // Rule 3.
        }
    }

    #[inline]
    fn has_requeued(&self) -> bool {
        let requeued = self.requeued.take();
        let has_one = requeued.is_some();
        self.requeued.set(requeued);
        has_one
    }

    /// Chooses the next task of a worker that shares.
    #[cold]
    #[inline(never)]
    fn next_by_shares(&self, hooks: &impl QueueHooks<Node<Scheduler>>) -> Option<Next<Task>> {
        loop {
            // As `Groups::has_injected`, but without `is_used`: a worker that shares has groups.
            if !self.groups.injector.is_empty() || self.has_mail() {
                let mut taken = self.take_injected(hooks); // Rule 8.
                // A full ring would overflow, into the inbox again.
                if self.own.spare_capacity() > 1 {
                    taken += self.keep(self.take_mail(hooks), hooks);
                }
                self.note_taken(taken);
            }
            let has_main = !self.own.is_empty();
            let requeued = self.requeued.take();
            let (action, was_alone, has_removed) = self.turns.with(|state| {
                state.refresh(&self.groups);
                let was_alone = requeued.is_some() && state.queued == 0;
                let action = self.choose(state, has_main, requeued);
                (action, was_alone, !state.removed.is_empty())
            });
            let before = self.turn.replace(match &action {
                Action::Run(task) => *task.scheduler(),
                Action::Main | Action::Idle => self.main,
            });
            if has_removed {
                self.drop_removed();
            }
            match action {
                Action::Run(task) => {
                    if before == self.main {
                        self.leave_main(hooks);
                    }
                    return Some(Next {
                        item: task,
                        from_slot: false,
                    });
                }
                Action::Main => {
                    if was_alone {
                        hooks.notify(); // Rule 3.
                    }
                    if let Some(next) = self.own.next(hooks) {
                        return Some(next);
                    }
                    // Thieves have taken main's tasks, so choose again.
                }
                Action::Idle => {
                    if self.turns.queued() > 0 {
                        continue; // The lists hold tasks after all, so choose again.
                    }
                    self.sharing.set(false);
                    self.plain.set(self.inbox.is_none().then_some(self.main));
                    return self.own.next(hooks);
                }
            }
        }
    }

    /// Drops the groups that are gone, without the lock. None of them has the turn any more.
    #[cold]
    fn drop_removed(&self) {
        let removed = self.turns.with(|state| std::mem::take(&mut state.removed));
        drop(removed);
    }

    /// Queues the requeued task. Continues the turn, or gives the turn to the next group. Returns
    /// the worker's next action.
    #[inline]
    fn choose(&self, state: &mut State, has_main: bool, requeued: Option<Task>) -> Action {
        if has_main {
            let _ = state.fair.activate(state.main);
        }
        let turn = state.fair.current();
        let switched = turn.and_then(|_| state.fair.switch());
        // The group of the requeued task is active until here, even if its list is empty.
        if let Some(task) = requeued {
            let exchanged = match (turn, switched) {
                (Some(_), None) => state.exchange(task),
                _ => Err(task),
            };
            match exchanged {
                Ok(task) => {
                    self.alone.set(0);
                    return Action::Run(task);
                }
                Err(task) => state.push(task),
            }
        }
        let mut pick = match (turn, switched) {
            (_, Some(pick)) => pick,
            (Some(key), None) => Pick::Run(key),
            (None, None) => state.fair.pick(),
        };
        loop {
            let Pick::Run(key) = pick else {
                return Action::Idle; // No group has a cap, so none is throttled.
            };
            if key == state.main {
                if has_main && self.may_stay(state) {
                    return Action::Main;
                }
            } else if let Some(task) = state.pop(key) {
                self.alone.set(0);
                return Action::Run(task);
            }
            pick = state.fair.pick_another();
        }
    }

    /// Whether the worker goes on sharing. It stops once main has been alone for some time.
    #[inline]
    fn may_stay(&self, state: &State) -> bool {
        if state.fair.active() > 1 {
            self.alone.set(0);
            return true;
        }
        let alone = self.alone.get() + 1;
        self.alone.set(alone % ALONE);
        alone < ALONE
    }

    #[cold]
    #[inline(never)]
    fn turn_is_over(&self) -> bool {
        self.turns.with(|state| state.fair.should_switch())
    }

    /// Rule 2: the slot's task and main's requeued task go to the ring.
    #[cold]
    fn leave_main(&self, hooks: &impl QueueHooks<Node<Scheduler>>) {
        if !self.own.is_empty() {
            self.own.open_slot(hooks);
            self.own.leave(hooks);
            hooks.notify();
        }
    }

    /// Notes tasks that this queue has taken from outside.
    fn note_taken(&self, tasks: usize) {
        self.taken.set(self.taken.get() + tasks);
    }

    /// Takes the number of tasks that this queue has noted since the last call.
    #[inline]
    pub(super) fn take_noted(&self) -> usize {
        self.taken.take()
    }

    /// Whether tasks wait in the worker's inbox.
    #[inline]
    pub(super) fn has_mail(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty())
    }

    /// Moves tasks from the groups' injector, and those of groups from the worker's inbox, to the
    /// lists. Returns how many.
    #[cold]
    fn take_injected(&self, hooks: &impl QueueHooks<Node<Scheduler>>) -> usize {
        let mut tasks = self.groups.take_share();
        if let Some(inbox) = &self.inbox {
            tasks.append(&mut inbox.groups.pop_n(Groups::MOST));
        }
        let moved = tasks.len();
        if moved > 0 {
            self.share(|state| {
                while let Some(task) = tasks.pop_front() {
                    state.push(task);
                }
            });
            hooks.notify();
        }
        moved
    }

    /// Takes main's tasks from the worker's inbox, as many as the ring has room for: one to run
    /// now, and the others, which this function moves to the ring.
    fn take_mail(&self, hooks: &impl QueueHooks<Node<Scheduler>>) -> Option<Batch<Task>> {
        self.own.take_share(&self.inbox.as_ref()?.main, 1, hooks)
    }

    /// Queues the first task of a share: the others are queued already. Returns how many tasks the
    /// share had.
    fn keep(&self, share: Option<Batch<Task>>, hooks: &impl QueueHooks<Node<Scheduler>>) -> usize {
        let Some(Batch { first, moved }) = share else {
            return 0;
        };
        self.own.push_back(first, hooks);
        1 + moved
    }

    #[cold]
    #[inline(never)]
    fn take_share_by_shares<L: Lock>(
        &self,
        injector: &Injector<Node<Scheduler>, L>,
        workers: usize,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Batch<Task>> {
        debug_assert!(!self.has_requeued(), "rule 9");
        let mut taken = self.take_injected(hooks);
        let mail = self.take_mail(hooks);
        let share = self.own.take_share(injector, workers, hooks);
        if !self.sharing.get() && (mail.is_none() || share.is_none()) {
            return mail.or(share);
        }
        taken += self.keep(mail, hooks) + self.keep(share, hooks);
        let moved = taken.checked_sub(1)?;
        let first = self.next(hooks)?.item;
        Some(Batch { first, moved })
    }

    #[cold]
    fn take_one_by_shares<L: Lock>(
        &self,
        injector: &Injector<Node<Scheduler>, L>,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Task> {
        debug_assert!(!self.has_requeued(), "rule 9");
        let mut taken = self.take_injected(hooks) + self.keep(self.take_mail(hooks), hooks);
        if taken == 0 && !self.sharing.get() {
            return self.own.take_one(injector, hooks);
        }
        if let Some(task) = injector.pop() {
            self.own.push_back(task, hooks);
            taken += 1;
        }
        // The caller counts one.
        self.note_taken(taken.checked_sub(1)?);
        Some(self.next(hooks)?.item)
    }

    /// Looks at each other worker once, until one has tasks. Steals from that worker's lists or
    /// ring: the tasks of the group that needs help most ([`State::steal`]).
    #[cold]
    fn steal_by_shares<R>(
        &self,
        others: &[R],
        stealer: impl Fn(&R) -> &GroupStealer,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Batch<Task>> {
        let start = self.victim.get() % others.len();
        self.victim.set(start + 1);
        let (before, from) = others.split_at(start);
        let mut others = from.iter().chain(before);
        others.find_map(|other| self.steal_from(stealer(other), hooks))
    }

    fn steal_from(
        &self,
        victim: &GroupStealer,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Batch<Task>> {
        let steal = |ring_is_empty| match victim.queued() {
            0 => Stolen::Nothing,
            _ => victim.turns().with(|state| state.steal(ring_is_empty)),
        };
        let mut stolen = steal(false);
        if !matches!(stolen, Stolen::Tasks(_)) {
            if let Some(batch) = self.own.steal_from(&victim.ring) {
                return Some(batch);
            }
            stolen = steal(true);
        }
        let Stolen::Tasks(mut tasks) = stolen else {
            return None;
        };
        let moved = tasks.len() - 1;
        self.share(|state| {
            while let Some(task) = tasks.pop_front() {
                state.push(task);
            }
        });
        let first = self.next_by_shares(hooks)?.item;
        Some(Batch { first, moved })
    }
}

impl RunQueue<Node<Scheduler>> for GroupQueue {
    type Stealer = GroupStealer;

    fn stealer(&self) -> GroupStealer {
        GroupStealer {
            ring: self.own.stealer(),
            groups: self.groups.clone(),
            worker: self.worker,
        }
    }

    #[inline(always)]
    fn next(&self, hooks: &impl QueueHooks<Node<Scheduler>>) -> Option<Next<Task>> {
        if self.sharing.get() {
            return self.next_by_shares(hooks);
        }
        self.own.next(hooks)
    }

    #[inline(always)]
    fn push_next(&self, task: Task, hooks: &impl QueueHooks<Node<Scheduler>>) {
        if self.sharing.get() || !task.scheduler().is_main() {
            return self.push(task, true, hooks);
        }
        self.own.push_next(task, hooks);
    }

    #[inline(always)]
    fn push_back(&self, task: Task, hooks: &impl QueueHooks<Node<Scheduler>>) {
        if self.sharing.get() || !task.scheduler().is_main() {
            return self.push(task, false, hooks);
        }
        self.own.push_back(task, hooks);
    }

    #[inline(always)]
    fn requeue(&self, task: Task, hooks: &impl QueueHooks<Node<Scheduler>>) {
        if self.sharing.get() {
            return self.requeue_by_shares(task, hooks);
        }
        self.own.requeue(task, hooks);
    }

    fn take_share<L: Lock>(
        &self,
        injector: &Injector<Node<Scheduler>, L>,
        workers: usize,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Batch<Task>> {
        if self.groups.is_used() {
            return self.take_share_by_shares(injector, workers, hooks);
        }
        self.own.take_share(injector, workers, hooks)
    }

    fn take_one<L: Lock>(
        &self,
        injector: &Injector<Node<Scheduler>, L>,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Task> {
        if self.groups.is_used() {
            return self.take_one_by_shares(injector, hooks);
        }
        self.own.take_one(injector, hooks)
    }

    fn steal<R>(
        &self,
        others: &[R],
        stealer: impl Fn(&R) -> &GroupStealer,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Batch<Task>> {
        if self.groups.settings.sharded {
            return None;
        }
        if self.groups.is_used() {
            return self.steal_by_shares(others, stealer, hooks);
        }
        self.own.steal(others, |other| &stealer(other).ring)
    }

    fn take_any(&self) -> Option<Task> {
        let mains_or_requeued = self.requeued.take().or_else(|| self.own.take_any());
        mains_or_requeued.or_else(|| match self.sharing.get() {
            true => self.turns.with(State::pop_any),
            false => None,
        })
    }

    #[inline]
    fn is_empty(&self) -> bool {
        let shares = self.sharing.get();
        self.own.is_empty() && !(shares && (self.has_requeued() || self.turns.queued() > 0))
    }

    fn leave(&self, hooks: &impl QueueHooks<Node<Scheduler>>) {
        self.own.leave(hooks);
        if self.sharing.get() {
            self.publish_requeued(hooks);
            if self.turns.queued() > 0 {
                hooks.notify();
            }
        }
    }

    #[inline]
    fn slot_is_empty(&self) -> bool {
        self.own.slot_is_empty()
    }

    #[inline]
    fn take_slot(&self) -> Option<Task> {
        self.own.take_slot()
    }

    fn between_items<R>(&self, f: impl FnOnce() -> R) -> R {
        self.outside_of_turns(|| self.own.between_items(f))
    }

    fn requeue_slot(&self, hooks: &impl QueueHooks<Node<Scheduler>>) {
        self.own.requeue_slot(hooks);
    }

    fn open_slot(&self, hooks: &impl QueueHooks<Node<Scheduler>>) {
        self.own.open_slot(hooks);
    }

    #[inline(always)]
    fn slice_over(&self) -> bool {
        self.sharing.get() && self.turn_is_over()
    }
}
