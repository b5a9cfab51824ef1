//! Frames that come from a peer: what each kind does.
use super::{LEAVES, NOTED, Peer, Peers, lock};
use crate::{
    behaviours::{Arguments, Outcome},
    decode_error::DecodeError,
    frame::{ANSWER, Header, Hello, LEAVING, MESSAGE, NAME, PUBLISH, SIGNAL, SPAWN},
    session::Taken,
    signals,
    spawn_on::relate,
    wire::{AnswerTo, Decoder, Encoder},
};
use process_scheduler::{ExitReason, Parcel, Pid, Signal};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
};

impl Peer {
    /// Takes a hello that has come.
    pub(super) fn take_hello(
        &self,
        peers: &Peers,
        header: Header,
        rest: &[u8],
    ) -> Result<(), DecodeError> {
        let hello = Hello::read(rest)?;
        // A node that has the incarnation of this one, or this one itself, is none.
        if header.incarnation == peers.identities.own() {
            return Err(DecodeError::Invalid);
        }
        let admit = || (peers.settings.admit)(&hello.name);
        if !catch_unwind(AssertUnwindSafe(admit)).unwrap_or(false) {
            peers.counters.refused();
            return Ok(());
        }
        let _in_order = lock(&self.order);
        if peers.has_better(self, header.incarnation) {
            return Ok(());
        }
        let mut changes = Vec::new();
        {
            let mut state = lock(&self.state);
            if state.is_over {
                return Ok(());
            }
            let session = &mut state.session;
            session.take_hello(header, hello, peers.now(), &mut changes);
        }
        self.apply(peers, &changes);
        Ok(())
    }

    /// Takes a frame that has come, and is no hello.
    pub(super) fn take(
        self: &Arc<Self>,
        peers: &Peers,
        header: Header,
        rest: &[u8],
    ) -> Result<(), DecodeError> {
        let _in_order = lock(&self.order);
        let mut changes = Vec::new();
        let (taken, has_room, session, is_noted) = {
            let mut state = lock(&self.state);
            if state.is_over {
                return Ok(());
            }
            let session = state.session.number();
            let taken = state.session.take(header, rest, peers.now(), &mut changes);
            if state.session.owes_acknowledgement() {
                let alive = state.session.alive();
                self.queue(&mut state, alive);
            }
            let has_room = !state.wakers.is_empty() && state.session.has_room();
            (taken, has_room, session, state.number.is_some())
        };
        self.apply(peers, &changes);
        if has_room {
            self.wake_senders();
        }
        // Another peer reaches the node, or the cluster ends.
        if !is_noted && self.number().is_none() {
            return taken.map(drop);
        }
        let Taken::Frame {
            kind,
            sequence,
            body,
        } = taken?
        else {
            return Ok(());
        };
        let way: Weak<Self> = Arc::downgrade(self);
        let answer_to = AnswerTo {
            way,
            session,
            sequence,
        };
        let input = Decoder::new(body, answer_to, &peers.identities);
        // A panic of a decoder of the user is an invalid message.
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_body(peers, kind, input)));
        taken.unwrap_or(Err(DecodeError::Invalid))
    }

    fn take_body(
        &self,
        peers: &Peers,
        kind: u8,
        mut input: Decoder<'_>,
    ) -> Result<(), DecodeError> {
        match kind {
            MESSAGE => {
                let to = read_own(&mut input, peers)?;
                let tag = input.u16()?;
                let message = peers.settings.codecs.decode(tag, &mut input)?;
                input.end()?;
                if peers.handle.deliver(to, Parcel::Message(message)).is_err() {
                    peers.counters.dead_letter();
                }
            }
            SIGNAL => {
                let to = read_own(&mut input, peers)?;
                let signal = signals::read(&mut input)?;
                input.end()?;
                self.take_signal(peers, to, signal)?;
            }
            ANSWER => {
                let (sequence, place) = (input.u64()?, usize::from(input.u8()?));
                let place = {
                    let mut state = lock(&self.state);
                    let places = state.pending.get_mut(&sequence);
                    let ended = places.and_then(|places| {
                        let ended = places.get_mut(place)?.take();
                        Some((ended, places.iter().all(Option::is_none)))
                    });
                    if let Some((_, true)) = ended {
                        state.pending.remove(&sequence);
                    }
                    ended.and_then(|(ended, _)| ended)
                };
                let Some(place) = place else {
                    return Ok(());
                };
                match input.bool()? {
                    true => place.answer(input)?,
                    false => place.drop_call(),
                }
            }
            NAME => {
                let lost = peers.directory.take(peers, || self.number(), input)?;
                lost.into_iter().for_each(|lost| peers.report(lost));
            }
            PUBLISH => {
                let group = input.str()?;
                let tag = input.u16()?;
                let answer_to = input.answer_to();
                let bytes = input.rest();
                for member in peers.directory.own_members(peers, group) {
                    let mut input = Decoder::new(bytes, answer_to.clone(), &peers.identities);
                    let message = peers.settings.codecs.decode(tag, &mut input)?;
                    input.end()?;
                    if peers
                        .handle
                        .deliver(member, Parcel::Message(message))
                        .is_err()
                    {
                        peers.counters.dead_letter();
                    }
                }
            }
            SPAWN => self.take_spawn(peers, input)?,
            LEAVING => {
                let is_note = match input.u8()? {
                    LEAVES => false,
                    NOTED => true,
                    _ => return Err(DecodeError::Invalid),
                };
                input.end()?;
                match is_note {
                    true => lock(&self.state).has_noted = true,
                    false => {
                        let number = self.number();
                        number
                            .into_iter()
                            .for_each(|of| peers.directory.forget_node(of));
                        self.note_that_it_leaves();
                    }
                }
            }
            _ => return Err(DecodeError::Invalid),
        }
        Ok(())
    }

    fn take_spawn(&self, peers: &Peers, mut input: Decoder<'_>) -> Result<(), DecodeError> {
        let tag = input.str()?;
        let reply = input.reply::<Outcome>()?;
        let mut related = || {
            let pid = match input.bool()? {
                true => Some(input.pid()?),
                false => None,
            };
            // A node relates its own processes alone.
            match pid.is_none_or(|pid| self.number() == Some(pid.node())) {
                true => Ok(pid),
                false => Err(DecodeError::Invalid),
            }
        };
        let (linked_to, monitored_by) = (related()?, related()?);
        let name = self.name();
        let allow = || (peers.settings.allow_spawn)(&name, tag);
        if !catch_unwind(AssertUnwindSafe(allow)).unwrap_or(false) {
            peers.counters.refused();
            let _ = reply.send(Outcome::NotAuthorized);
            return Ok(());
        }
        let mut reply = Some(reply);
        let (behaviours, arguments) = (&peers.settings.behaviours, Arguments::Bytes(input));
        let outcome = behaviours.spawn(&peers.handle, tag, arguments, &mut |pid| {
            relate(peers, pid, linked_to, monitored_by);
            let reply = reply.take();
            reply.map(|reply| reply.send(Outcome::Spawned(pid)));
        });
        if let Some(reply) = reply {
            let _ = reply.send(outcome);
        }
        Ok(())
    }

    /// Returns the name of the other node, if the session is up.
    fn name(&self) -> String {
        let state = lock(&self.state);
        let other = state.session.other();
        other.map_or(String::new(), |other| other.hello.name.clone())
    }

    /// Returns whether the peer is to tell of the end of this process. The node of the process
    /// alone knows of it.
    ///
    /// # Errors
    /// If the exit is made up.
    fn owns(&self, peers: &Peers, to: Pid, pid: Pid, linked: bool) -> Result<bool, DecodeError> {
        if self.number() == Some(pid.node()) {
            return Ok(true);
        }
        if !linked || pid.node() == peers.identities.own_number() {
            return Err(DecodeError::Invalid);
        }
        // A node that links two processes of other nodes, and does not reach one of the two, says
        // so to the other one. This node asks the process's own node, by another link.
        let info = peers.handle.inspect(to);
        if info.is_some_and(|info| info.links.contains(&pid)) {
            peers.handle.link(to, pid);
        }
        Ok(false)
    }

    fn take_signal(&self, peers: &Peers, to: Pid, signal: Signal) -> Result<(), DecodeError> {
        if let Signal::Exit { pid, linked, .. } = signal {
            if !self.owns(peers, to, pid, linked)? {
                return Ok(());
            }
        }
        let name = self.name();
        let allow = || (peers.settings.allow)(&name, &signal);
        let is_answer = matches!(signal, Signal::Exit { .. });
        let is_allowed = is_answer || catch_unwind(AssertUnwindSafe(allow)).unwrap_or(false);
        if !is_allowed {
            peers.counters.refused();
        }
        let refused = match is_allowed {
            true => peers
                .handle
                .deliver(to, Parcel::Signal(signal.clone()))
                .is_err(),
            false => true,
        };
        let (by, linked) = match signal {
            Signal::Monitor { by } if refused => (by, false),
            Signal::Link { with } if refused => (with, true),
            _ => return Ok(()),
        };
        // A node that is not allowed to relate the two says nothing to a third node.
        let node = by.node();
        if !is_allowed && self.number() != Some(node) {
            return Ok(());
        }
        // The node of the other process has noted the relation: it is told that there is none.
        let mut out = Encoder::new(&peers.identities);
        out.u64(by.to_bits() as u64);
        let exit = Signal::Exit {
            pid: to,
            reason: ExitReason::NoProcess,
            linked,
        };
        signals::write(&exit, &mut out);
        if let Some(peer) = peers.node(node) {
            peer.send_always(node, SIGNAL, &out.bytes);
        }
        Ok(())
    }
}

/// Reads the slot and the generation of a process of this node.
fn read_own(input: &mut Decoder<'_>, peers: &Peers) -> Result<Pid, DecodeError> {
    let pid = Pid::from_bits(input.u64()?.into()).ok_or(DecodeError::Invalid)?;
    Ok(pid.with_node(peers.identities.own_number()))
}
