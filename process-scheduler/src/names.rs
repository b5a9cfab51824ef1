//! Names and groups of processes.
//!
//! A name is kept in two places: in the scheduler's table of names, and in a list in the cell of
//! the process that has the name. A group is kept in the table of groups, and in a list in the cell
//! of each member. A thread changes both places while it holds the lock of the table, so the two
//! places agree for all threads that take this lock. `whereis` does not take the lock of the table
//! of names: it may find the table before a change of which the process's list shows the result
//! already, or the other way round. Only a process that ends proceeds in steps: it drops its lists
//! and refuses further names and groups, then removes itself from the tables, and then from the
//! registry (`registry.rs`). So no table has a process that is not in the registry.
//!
//! A process is *killed for good* if [`Handle::kill_for_good`] or the shutdown has killed it: then
//! no supervisor restarts it. A supervisor that stops or ends kills its children for good. A
//! process *has ended* only if nothing can restart it: a stopped process, which its supervisor may
//! restart, has not ended. A process is *doomed* if it was killed for good or has ended, or if this
//! is true of a supervisor above it. A doomed process may still be in a queue, or in a step that
//! perhaps never returns. Nevertheless another process may take over the name of a doomed process,
//! because a restarted supervisor must be able to start new children with the names of the old
//! ones.
//!
//! 1. A doomed process stays doomed. So a thread checks without the lock of the table whether the
//!    process that has a name is doomed. Under the lock, the thread then takes the name over only
//!    if the same process still has it.
//! 2. Before a thread takes over the name of a doomed process, it ensures that this process is
//!    killed for good or has ended. If the process is doomed only because of a supervisor above it,
//!    the thread kills the process for good, and also the supervisors between the process and that
//!    supervisor. So a process whose name was taken over makes at most one more step: the step that
//!    a worker has begun or is about to begin.
//! 3. A supervisor that stops kills all its children for good, and only then gives away its token,
//!    the right to run a process (`state.rs`). The thread that restarts the supervisor takes this
//!    token, so it sees those kills. So the restarted supervisor can take over the names of its old
//!    children, and of all processes below them.
//! 4. A process that ends removes its name from the table only if the table still has the name with
//!    this process's pid. So it does not remove a name that another process has taken over.
//! 5. A process that `kill_for_good` has killed leaves its groups and joins no others, because it
//!    would never handle their messages. The kill sets the bit `FINAL` of the process's state under
//!    the lock of the cell's lists. Under the same lock `join` checks the bit and adds the group to
//!    the list. If the kill comes first, `join` sees the bit and adds nothing. If `join` comes
//!    first, the killing thread finds the group in the list, and takes the process out of the
//!    group. For that it needs the lock of the table, which `join` holds until both places have the
//!    group.
use crate::{Address, ExitReason, Handle, Pid, any_cell::AnyCell, group::ProcessGroup};
use std::{collections::HashMap, sync::Arc};

impl Handle {
    /// Gives a process a name. Returns false if the name is taken, by this process or by another
    /// one, or if this node has no such process.
    ///
    /// This call may take the name over from a process that was *killed for good*, even while a
    /// step of that process still runs. A supervisor that ends kills its children for good. A
    /// shutdown kills for good all processes that are left at its deadline.
    ///
    /// This call may also take the name over from a process below one that was killed for good.
    /// Then the call kills that process for good, too. A process that only [`kill`](Self::kill) has
    /// killed keeps its name while a supervisor may restart it.
    ///
    /// # Cost
    /// - If the name is free: three locks.
    /// - If the name is taken: two locks, and two more for each process that is checked. These are
    ///   the process that has the name, and the supervisors above it, up to the first one that was
    ///   killed for good.
    /// - For a takeover also: four locks, three for each process that the call kills, and three for
    ///   each group of such a process.
    ///
    /// ```
    /// let scheduler = process_scheduler::Scheduler::new();
    /// let [a, b] = [(); 2].map(|()| scheduler.spawn_fn(|_: u8, _| ()).unwrap());
    /// assert!(scheduler.register("primary", a.pid()));
    /// assert!(!scheduler.register("primary", b.pid()));
    /// assert!(scheduler.named::<u8>("primary").is_some());
    /// assert!(scheduler.unregister("primary"));
    /// assert!(scheduler.register("primary", b.pid()));
    /// ```
    pub fn register(&self, name: &str, pid: Pid) -> bool {
        let Some(cell) = self.registry().get(pid) else {
            return false;
        };
        let mut doomed: Option<(Pid, Option<Arc<dyn AnyCell>>)> = None;
        loop {
            let mut names = self.shared.names.lock();
            let holder = names.get(name);
            let earlier = doomed.as_ref().filter(|(pid, _)| Some(*pid) == holder);
            if let (Some(holder), None) = (holder, earlier) {
                drop(names);
                if holder == pid || !self.kill_if_doomed(holder) {
                    return false;
                }
                doomed = Some((holder, self.registry().get(holder)));
                continue;
            }
            let added = cell.name(name.to_owned(), false);
            if added {
                names.insert(name, pid);
                if let Some((_, Some(earlier))) = earlier {
                    earlier.unname(name);
                }
            }
            return added;
        }
    }

    /// Returns whether a process is doomed (rule 1). Before it returns true, this function does the
    /// kills of rule 2.
    fn kill_if_doomed(&self, pid: Pid) -> bool {
        let mut path = Vec::new();
        let mut above = Some(pid);
        loop {
            let Some(pid) = above else {
                return false;
            };
            // If the registry does not have this process, the process has ended. So the processes
            // in `path`, which are below it, are doomed.
            let Some(cell) = self.registry().get(pid) else {
                break;
            };
            // The supervisor is read before the state. A process that ends first sets its state to
            // done, and then drops the pid of its supervisor. So if `supervisor` returns `None`
            // because the process has ended, `ends_for_good` returns true.
            above = cell.supervisor();
            if cell.ends_for_good() {
                break;
            }
            path.push(pid);
        }
        // From the highest supervisor down. If a child were killed first, its supervisor could go
        // on: it could count the child's end as a restart, and stop the child's siblings. A
        // supervisor that is killed first makes at most one more step. That step does no harm: the
        // supervisor and the siblings are doomed anyway.
        for pid in path.into_iter().rev() {
            self.kill_for_good(pid, ExitReason::Killed);
        }
        true
    }

    /// Removes a name. Returns false if no process has the name.
    pub fn unregister(&self, name: &str) -> bool {
        let cell;
        let mut names = self.shared.names.lock();
        let Some(pid) = names.remove(name) else {
            return false;
        };
        cell = self.registry().get(pid);
        cell.iter().for_each(|cell| cell.unname(name));
        true
    }

    /// Returns the pid of the process that has a name. The process may be about to end: then it
    /// refuses further messages, and those that it has not handled become dead letters.
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.shared.names.get(name)
    }

    /// Returns the address of the process that has a name. `None` if there is no such process, or
    /// if it takes messages of another type.
    pub fn named<M: Send + 'static>(&self, name: &str) -> Option<Address<M>> {
        self.address(self.whereis(name)?)
    }

    pub(crate) fn unname(&self, name: &str, pid: Pid) {
        let mut names = self.shared.names.lock();
        if names.get(name) == Some(pid) {
            names.remove(name);
        }
    }

    /// Adds a process to a group. Returns true also if the group has the process already. Otherwise
    /// returns false if this node has no such process, or if the process was killed for good.
    ///
    /// A process leaves its groups when it ends. It leaves them earlier if its supervisor stops and
    /// kills it for good, or if [`register`](Self::register) kills it for good.
    ///
    /// # Cost
    /// Three locks, and amortised time that grows with the logarithm of the number of members. A
    /// leave costs as much, and time that grows with the number of the process's groups.
    ///
    /// ```
    /// let scheduler = process_scheduler::Scheduler::new();
    /// let (sender, seen) = std::sync::mpsc::channel();
    /// for _ in 0..3 {
    ///     let sender = sender.clone();
    ///     let reader = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap()).unwrap();
    ///     assert!(scheduler.join("readers", reader.pid()));
    /// }
    /// assert_eq!(scheduler.publish("readers", &7_u32), 3);
    /// assert_eq!(seen.iter().take(3).sum::<u32>(), 21);
    /// let first = scheduler.members("readers")[0];
    /// scheduler.leave("readers", first);
    /// assert_eq!(scheduler.members("readers").len(), 2);
    /// ```
    pub fn join(&self, group: &str, pid: Pid) -> bool {
        let Some(cell) = self.registry().get(pid) else {
            return false;
        };
        let mut groups = self.shared.groups.lock();
        if groups.get(group).is_some_and(|group| group.contains(pid)) {
            return true;
        }
        let added = cell.name(group.to_owned(), true);
        if added {
            groups.entry(group.to_owned()).or_default().add(pid);
        }
        added
    }

    /// Takes a process out of a group.
    pub fn leave(&self, group: &str, pid: Pid) {
        let cell = self.registry().get(pid);
        let mut groups = self.shared.groups.lock();
        remove_member(&mut groups, group, pid);
        cell.iter().for_each(|cell| cell.leave(group));
    }

    pub(crate) fn ungroup(&self, group: &str, pid: Pid) {
        remove_member(&mut self.shared.groups.lock(), group, pid);
    }

    /// Returns the pids of the processes in a group, in the order in which they have joined.
    pub fn members(&self, group: &str) -> Vec<Pid> {
        let groups = self.shared.groups.lock();
        groups
            .get(group)
            .map(ProcessGroup::members)
            .unwrap_or_default()
    }

    /// Sends a copy of a message to each process in a group that takes messages of this type.
    /// Returns how many processes accepted their copy.
    pub fn publish<M: Clone + Send + 'static>(&self, group: &str, message: &M) -> usize {
        let members = self.members(group).into_iter();
        let sent = members.filter(|pid| self.try_send(*pid, message.clone()).is_ok());
        sent.count()
    }
}

fn remove_member(groups: &mut HashMap<String, ProcessGroup>, group: &str, pid: Pid) {
    if let Some(members) = groups.get_mut(group) {
        members.remove(pid);
        if members.is_empty() {
            groups.remove(group);
        }
    }
}
