//! Names and groups.
//!
//! The table of names, or of groups, is changed together with the process, under the lock of the
//! table: so the two agree. At its end a process first refuses further names and groups, and then
//! takes its own out of the tables. So an ended process is in no table.
//!
//! A process is *killed for good* by [`Handle::kill_for_good`] or by the shutdown: then it is never
//! restarted. A supervisor that ends kills its children so. A process is *doomed* if it, or a
//! supervisor above it, was killed for good or has ended. A doomed process may still be in a queue
//! or in a step, which perhaps never returns. Its names may be taken over nevertheless: a restarted
//! supervisor must be able to start children with the names of the earlier ones.
//!
//! 1. A doomed process stays doomed. So a thread asks whether a process is doomed without the lock
//!    of the table, and then takes the name over under that lock if the same process still has it.
//! 2. A name is taken over only from a process that was killed for good or has ended. If the
//!    process is doomed because of a supervisor above it, the thread first kills it for good, and
//!    the supervisors in between. So at most one step of it runs beside the process that has the
//!    name now: the step that a worker had begun, or was about to begin.
//! 3. A supervisor restarts after its earlier incarnation has killed all its children for good, and
//!    the restart sees that: the two exchange tokens and signals. So a restarted supervisor finds
//!    no name taken by a child of its earlier incarnation, or by a process below such a child.
//! 4. The end of a process removes its name only if the table still has its pid there. So it leaves
//!    the name to a process that has taken it over.
//! 5. A process that is killed for good by `kill_for_good` leaves its groups, and joins no other:
//!    it would never handle their messages. The kill sets its bit under the lock of the process,
//!    and `join` looks at the bit under that lock. So of the two, the later one sees the other.
use crate::{Address, ExitReason, Handle, Pid, cell::AnyCell};
use std::{collections::HashMap, sync::Arc};

impl Handle {
    /// Gives a process a name. False if the name is taken, or the process is not here.
    ///
    /// A supervisor that ends kills its children for good, and so does the shutdown with all that
    /// are left at its deadline. The name of a process that was killed so may be taken over, also
    /// while a step of that process still runs, and also the name of any process below it, which is
    /// then killed for good too. [`kill`](Self::kill) alone frees no name, since a supervisor may
    /// restart the process.
    ///
    /// The cost is three locks if the name is free. If it is taken, it is two locks, and two more
    /// for the process that has the name and for each supervisor above it, up to the first that was
    /// killed for good. A takeover takes four more locks, and three for each process that it kills.
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
            let holder = names.get(name).copied();
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
                names.insert(name.to_owned(), pid);
                if let Some((_, Some(earlier))) = earlier {
                    earlier.unname(name);
                }
            }
            return added;
        }
    }

    /// Returns whether a process is doomed (rule 1). If so, the process is killed for good
    /// afterwards, as are the supervisors between it and the one that was (rule 2).
    fn kill_if_doomed(&self, pid: Pid) -> bool {
        let mut path = Vec::new();
        let mut above = Some(pid);
        loop {
            let Some(pid) = above else {
                return false;
            };
            // A process loses its names, and a supervisor kills its children, before it leaves the
            // registry.
            let Some(cell) = self.registry().get(pid) else {
                break;
            };
            // This comes before the look at the state: a process that has ended tells no
            // supervisor, and its state shows the end first.
            above = cell.supervisor();
            if cell.ends_for_good() {
                break;
            }
            path.push(pid);
        }
        // From above: a supervisor that was killed before its child does not restart it.
        for pid in path.into_iter().rev() {
            self.kill_for_good(pid, ExitReason::Killed);
        }
        true
    }

    /// Removes a registered name. False if no process has it.
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

    /// Returns the process with a name. It may be about to end: then messages to it become dead
    /// letters.
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.shared.names.lock().get(name).copied()
    }

    /// Returns the address of the process with a name, if it takes such messages.
    pub fn named<M: Send + 'static>(&self, name: &str) -> Option<Address<M>> {
        self.address(self.whereis(name)?)
    }

    pub(crate) fn unname(&self, name: &str, pid: Pid) {
        let mut names = self.shared.names.lock();
        if names.get(name) == Some(&pid) {
            names.remove(name);
        }
    }

    /// Adds a process to a group. False if it is not here, or was killed for good.
    ///
    /// A process leaves its groups when it ends, or earlier: when its supervisor ends and kills it
    /// for good.
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
        if groups.get(group).is_some_and(|pids| pids.contains(&pid)) {
            return true;
        }
        let added = cell.name(group.to_owned(), true);
        if added {
            groups.entry(group.to_owned()).or_default().push(pid);
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

    /// Returns the processes of a group.
    pub fn members(&self, group: &str) -> Vec<Pid> {
        let groups = self.shared.groups.lock();
        groups.get(group).cloned().unwrap_or_default()
    }

    /// Sends a copy of a message to each process of a group that takes such messages. Returns how
    /// many accepted it.
    pub fn publish<M: Clone + Send + 'static>(&self, group: &str, message: &M) -> usize {
        let members = self.members(group).into_iter();
        let sent = members.filter(|pid| self.try_send(*pid, message.clone()).is_ok());
        sent.count()
    }
}

fn remove_member(groups: &mut HashMap<String, Vec<Pid>>, group: &str, pid: Pid) {
    if let Some(members) = groups.get_mut(group) {
        members.retain(|member| *member != pid);
        if members.is_empty() {
            groups.remove(group);
        }
    }
}
