//! The process that takes the names and memberships of processes that end.
use crate::peer::Peers;
use process_scheduler::{
    Context, Event, EventsOf, Handle, InitError, Input, NoCommand, OutputOf, Pid, Process,
    SpawnError, Step, StepOf,
};
use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

/// A message is a process to monitor.
struct Registrar {
    peers: Weak<Peers>,
    own: Option<(Handle, Pid)>,
    watched: HashSet<Pid>,
}

/// Starts the registrar of a node.
pub(crate) fn start(handle: &Handle, peers: &Arc<Peers>) -> Result<(), SpawnError> {
    let registrar = handle.spawn(Registrar {
        peers: Arc::downgrade(peers),
        own: None,
        watched: HashSet::new(),
    })?;
    drop(peers.registrar.set(registrar));
    Ok(())
}

impl Process for Registrar {
    type Message = Pid;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(&mut self, cx: &Context<'_, Pid>, _: &str, _: Input) -> Result<(), InitError> {
        self.own = Some((cx.handle().clone(), cx.pid()));
        Ok(())
    }

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match (event, self.peers.upgrade(), &self.own) {
                (Event::Message(pid), Some(_), Some((handle, own))) => {
                    if self.watched.insert(pid) {
                        handle.monitor(*own, pid);
                    }
                }
                (Event::Exit { pid, .. }, Some(peers), _) => {
                    self.watched.remove(&pid);
                    peers.directory.forget_process(&*peers, pid);
                }
                // The scheduler ends, or the cluster. Messages about further processes may wait.
                (_, Some(peers), _) => {
                    peers.directory.forget_own(&*peers);
                    return Step::Done;
                }
                _ => return Step::Done,
            }
        }
        Step::Idle
    }
}
