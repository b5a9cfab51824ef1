//! The process that takes the names and memberships of processes that end.
//!
//! 1. A registration is in the directory before the registrar gets a message about its process. The
//!    registrar monitors the process. One that has ended meanwhile gives an exit at once.
//! 2. A registrar that ends, as anybody may kill it, starts the next one. `Peers` names the new
//!    registrar before that one looks through the directory. So a registration whose message went
//!    to the old one is found by this look.
//! 3. If no next one can start, there is none, and all names and memberships are taken out after
//!    that. A registration that finds no registrar takes itself back.
use crate::{directory::Watch, peer::Peers};
use process_scheduler::{
    Context, Event, EventsOf, Handle, InitError, Input, NoCommand, OutputOf, Pid, Process,
    SpawnError, Step, StepOf,
};
use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

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
    peers.set_registrar(Some(registrar.clone()));
    let _ = registrar.try_send(Watch::All);
    // The end of the cluster has perhaps looked for a registrar before that.
    if peers.is_over() {
        handle.cancel(registrar.pid());
    }
    Ok(())
}

impl Registrar {
    fn watch(&mut self, pid: Pid) {
        let Some((handle, own)) = &self.own else {
            return;
        };
        if self.watched.insert(pid) {
            handle.monitor(*own, pid);
        }
    }
}

impl Process for Registrar {
    type Message = Watch;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(&mut self, cx: &Context<'_, Watch>, _: &str, _: Input) -> Result<(), InitError> {
        self.own = Some((cx.handle().clone(), cx.pid()));
        Ok(())
    }

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            let Some(peers) = self.peers.upgrade() else {
                return Step::Done;
            };
            match event {
                Event::Message(Watch::Process(pid)) => self.watch(pid),
                Event::Message(Watch::All) => {
                    let own = peers.directory.own_processes(&*peers);
                    own.into_iter().for_each(|pid| self.watch(pid));
                }
                Event::Exit { pid, .. } => {
                    self.watched.remove(&pid);
                    peers.directory.forget_process(&*peers, pid);
                }
                // The scheduler ends, or the cluster, or somebody cancels the registrar.
                _ => return Step::Done,
            }
        }
        Step::Idle
    }

    fn close(&mut self) {
        let (Some(peers), Some((handle, _))) = (self.peers.upgrade(), &self.own) else {
            return;
        };
        // Rules 2 and 3.
        if peers.is_over() || start(handle, &peers).is_err() {
            peers.set_registrar(None);
            peers.directory.forget_own(&*peers);
        }
    }
}
