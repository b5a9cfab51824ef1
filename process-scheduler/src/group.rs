//! A group of processes: its members in the order in which they have joined.
//!
//! A member has a *ticket*, a number that only grows. One map finds the members in the order of
//! their tickets, another one finds the ticket of a member. So a join or a leave takes
//! amortised time that grows with the logarithm of the number of members.
use crate::Pid;
use std::collections::{BTreeMap, HashMap, hash_map::Entry};

#[derive(Default)]
pub(crate) struct ProcessGroup {
    next: u64,
    tickets: HashMap<Pid, u64>,
    members: BTreeMap<u64, Pid>,
}

impl ProcessGroup {
    pub(crate) fn contains(&self, pid: Pid) -> bool {
        self.tickets.contains_key(&pid)
    }

    /// Adds a process behind the other members, unless it is a member.
    pub(crate) fn add(&mut self, pid: Pid) {
        if let Entry::Vacant(place) = self.tickets.entry(pid) {
            place.insert(self.next);
            self.members.insert(self.next, pid);
            self.next += 1;
        }
    }

    pub(crate) fn remove(&mut self, pid: Pid) {
        if let Some(ticket) = self.tickets.remove(&pid) {
            self.members.remove(&ticket);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    /// Returns the members in the order in which they have joined.
    pub(crate) fn members(&self) -> Vec<Pid> {
        self.members.values().copied().collect()
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;
    use proptest::{
        collection::vec,
        prelude::{any, prop_assert_eq, proptest},
    };

    fn pid(slot: u32) -> Pid {
        Pid {
            slot,
            ..Pid::none(0)
        }
    }

    proptest! {
        /// Compares a group with a plain list of its members.
        ///
        /// Fails if a group has a member twice, forgets one, or changes the order of the others.
        #[test]
        fn group_has_its_members_in_the_order_of_their_joins(
            changes in vec((any::<bool>(), 0_u32..8), 0..100),
        ) {
            let (mut group, mut list) = (ProcessGroup::default(), Vec::new());
            for (joins, slot) in changes {
                let pid = pid(slot);
                prop_assert_eq!(group.contains(pid), list.contains(&pid));
                if !joins {
                    group.remove(pid);
                    list.retain(|member| *member != pid);
                } else {
                    group.add(pid);
                    if !list.contains(&pid) {
                        list.push(pid);
                    }
                }
                prop_assert_eq!(group.members(), list.clone());
                prop_assert_eq!(group.is_empty(), list.is_empty());
            }
        }
    }
}
