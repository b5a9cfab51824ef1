//! The operations on a cell by a thread that has only its pid.
use super::{ProcessCell, related::Related};
use crate::{
    CancelReason, ExitReason, Info, Pid, Process, SendError, Signal,
    address::Receive,
    any_cell::{AnyCell, BoxedMessage},
    event::Urgent,
    watcher::Watcher,
};
use std::{any::Any, sync::Arc};

impl<P: Process> ProcessCell<P> {
    /// Removes one monitor of the target, which has ended: each monitor gets an exit of its own.
    fn unmonitor_once(&self, target: Pid) {
        if let Related::Some(lists) = &mut *self.related.lock() {
            let place = lists.monitored.iter().position(|pid| *pid == target);
            place.map(|place| lists.monitored.swap_remove(place));
        }
    }
}

impl<P: Process> AnyCell for ProcessCell<P> {
    fn revive(self: Arc<Self>) {
        self.restart();
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn send_any(&self, message: &mut dyn Any) -> Result<(), SendError<()>> {
        let Some(place) = message.downcast_mut::<Option<P::Message>>() else {
            return Err(SendError::NotFound(()));
        };
        let message = place.take().ok_or(SendError::NotFound(()))?;
        self.send(message)
            .map_err(|refused| refused.map(|message| *place = Some(message)))
    }

    fn send_boxed(&self, message: BoxedMessage) -> Result<(), SendError<BoxedMessage>> {
        let message = message
            .downcast::<P::Message>()
            .map_err(SendError::NotFound)?;
        let sent = self.send(*message);
        sent.map_err(|refused| refused.map(|message| Box::new(message) as BoxedMessage))
    }

    fn receiver(self: Arc<Self>) -> Box<dyn Any> {
        let receiver: Arc<dyn Receive<P::Message>> = self;
        Box::new(receiver)
    }

    fn signal(&self, signal: Signal) -> Result<(), Signal> {
        let urgent = match signal {
            Signal::Kill => {
                self.kill(ExitReason::Killed, false);
                return Ok(());
            }
            Signal::Monitor { by } => {
                let watched = self.watch(Watcher::Process(by));
                return watched.map_err(|_| Signal::Monitor { by });
            }
            Signal::Demonitor { by } => {
                self.with_relations(|lists| {
                    let is_by = |w: &Watcher| matches!(w, Watcher::Process(pid) if *pid == by);
                    lists.watchers.retain(|watcher| !is_by(watcher));
                });
                return Ok(());
            }
            Signal::Link { with } => {
                let linked = self.with_relations(|lists| {
                    if !lists.links.contains(&with) {
                        lists.links.push(with);
                    }
                });
                return linked.ok_or(Signal::Link { with });
            }
            // These two are for the node of the process, and reach no cell: see `links.rs`.
            Signal::Watch { .. } | Signal::Unwatch { .. } => return Err(signal),
            Signal::Unlink { with } => {
                self.with_relations(|lists| lists.links.retain(|pid| *pid != with));
                return Ok(());
            }
            Signal::Exit {
                pid,
                reason,
                linked,
            } => {
                if linked {
                    self.with_relations(|lists| lists.links.retain(|other| *other != pid));
                    if !self.traps_exits {
                        if reason.is_abnormal() {
                            self.kill(reason, false);
                        }
                        return Ok(());
                    }
                } else {
                    self.unmonitor_once(pid);
                }
                Urgent::Exit { pid, reason }
            }
            Signal::Cancel(reason) => Urgent::Cancel {
                reason,
                // Only the supervisor restarts the process. So a cancel by the supervisor carries
                // the incarnation that the supervisor wants to stop.
                incarnation: self.core.state.incarnation(),
            },
        };
        match self.core.signal(urgent) {
            Ok(token) => {
                self.submit(token);
                Ok(())
            }
            Err(Urgent::Exit { pid, reason }) => Err(Signal::Exit {
                pid,
                reason,
                linked: false,
            }),
            Err(_) => Err(Signal::Cancel(CancelReason::Requested)),
        }
    }

    fn kill(&self, reason: ExitReason, is_final: bool) {
        // One lock covers the bit and the reason, as in `restart`. So if the bit is set, `killed`
        // is the reason of this kill or of an earlier one.
        let token = self.with_relations(|lists| {
            lists.killed.get_or_insert(reason);
            self.core.kill(is_final)
        });
        self.submit(token.flatten());
    }

    fn ends_for_good(&self) -> bool {
        self.core.state.ends_for_good()
    }

    fn watch(&self, watcher: Watcher) -> Result<(), Watcher> {
        let mut watcher = Some(watcher);
        let abandoned = self.with_relations(|lists| {
            let abandoned = lists.take_abandoned();
            lists.watchers.extend(watcher.take());
            abandoned
        });
        drop(abandoned);
        watcher.map_or(Ok(()), Err)
    }

    fn monitors(&self, target: Pid) -> bool {
        self.with_relations(|lists| lists.monitored.push(target))
            .is_some()
    }

    fn unmonitor(&self, target: Pid) {
        if let Related::Some(lists) = &mut *self.related.lock() {
            lists.monitored.retain(|pid| *pid != target);
        }
    }

    fn name(&self, name: String, is_group: bool) -> bool {
        let added = self.with_relations(|lists| {
            // A kill sets the bit under the same lock.
            if is_group && self.core.state.is_final() {
                return false;
            }
            let list = if is_group {
                &mut lists.groups
            } else {
                &mut lists.names
            };
            list.push(name);
            true
        });
        added == Some(true)
    }

    fn unname(&self, name: &str) {
        self.with_relations(|lists| lists.names.retain(|other| other != name));
    }

    fn leave(&self, group: &str) {
        self.with_relations(|lists| lists.groups.retain(|name| name != group));
    }

    fn groups(&self) -> Vec<String> {
        match &*self.related.lock() {
            Related::Some(lists) => lists.groups.clone(),
            _ => Vec::new(),
        }
    }

    fn supervisor(&self) -> Option<Pid> {
        match &*self.related.lock() {
            Related::Some(lists) => lists.supervisor,
            _ => None,
        }
    }

    fn info(&self) -> Info {
        let mut info = Info {
            pid: self.pid,
            phase: self.core.state.phase(),
            kind: std::any::type_name::<P>(),
            names: Vec::new(),
            groups: Vec::new(),
            links: Vec::new(),
            supervisor: None,
            messages: self.core.messages.len(),
            restarts: self.core.state.incarnation(),
        };
        if let Related::Some(lists) = &*self.related.lock() {
            info.names.clone_from(&lists.names);
            info.groups.clone_from(&lists.groups);
            info.links.clone_from(&lists.links);
            info.supervisor = lists.supervisor;
        }
        info
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;
    use crate::cell::models;

    /// Fails if a send without a message counts as sent, or if a message of another type is taken.
    #[test]
    fn send_of_nothing_or_of_another_type_is_refused() {
        let handle = crate::shared::models::without_threads();
        let cell = models::spawn(&handle, None);
        let mut other = Some("text");
        for message in [&mut None::<()> as &mut dyn Any, &mut other] {
            assert_eq!(cell.send_any(message), Err(SendError::NotFound(())));
        }
        let mut message = Some(());
        assert_eq!(cell.send_any(&mut message), Ok(()));
        assert_eq!((message, other), (None, Some("text")));
        cell.abandon();
    }
}
