//! The relay of a cluster: parcels become frames.
use crate::{
    frame::{MESSAGE, ORDERED, SIGNAL},
    peer::Peers,
    signals,
    wire::Encoder,
};
use process_scheduler::{Parcel, Pid, Relay, SendError, Signal};
use std::{
    any::Any,
    sync::Weak,
    task::{Poll, Waker},
};

/// The bytes of a message's frame in front of its content: the process, and the tag.
const HEAD: usize = ORDERED + 8 + 2;

pub(crate) struct ClusterRelay(pub(crate) Weak<Peers>);

impl Relay for ClusterRelay {
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        let Some(peers) = self.0.upgrade() else {
            return Err(SendError::NodeDown(parcel));
        };
        match parcel {
            Parcel::Message(message) => {
                let sent = send(&peers, to, message);
                sent.map_err(|refused| refused.map(Parcel::Message))
            }
            Parcel::Signal(signal) => match signal_to(&peers, to, &signal) {
                Ok(()) => Ok(()),
                Err(refused) => Err(refused.map(|()| Parcel::Signal(signal))),
            },
            parcel => Err(SendError::NotCarried(parcel)),
        }
    }

    fn poll_ready(&self, node: u32, waker: &Waker) -> Poll<()> {
        match self.0.upgrade().and_then(|peers| peers.node(node)) {
            Some(peer) => peer.poll_ready(waker),
            None => Poll::Ready(()),
        }
    }
}

type BoxAny = Box<dyn Any + Send>;

fn send(peers: &Peers, to: Pid, message: BoxAny) -> Result<(), SendError<BoxAny>> {
    let Some(peer) = peers.node(to.node()) else {
        return Err(SendError::NodeDown(message));
    };
    let codecs = &peers.settings.codecs;
    let Some((tag, length)) = codecs.tag_of(&*message) else {
        return Err(SendError::NotCarried(message));
    };
    let mut message = Some(message);
    let sent = peer.send_if_room(to.node(), MESSAGE, |tags, limit| {
        if length.saturating_add(HEAD) > limit {
            return Err(());
        }
        let Some(theirs) = tags.get(usize::from(tag)).copied().flatten() else {
            return Err(());
        };
        let mut out = Encoder::new(&peers.identities);
        // The slot and the generation.
        out.u64(to.to_bits() as u64);
        out.u16(theirs);
        let message = message.take().expect("it is made once");
        codecs.encode(tag, message, &mut out);
        if out.bytes.len() + ORDERED > limit {
            // The message has become bytes, so it cannot be handed back.
            peers.counters.dead_letter();
            return Err(());
        }
        Ok((out.bytes, out.pending))
    });
    match sent {
        Ok(Ok(())) => Ok(()),
        // The other node has no such codec, or the message is too large. One that turned out to be
        // too large is gone.
        Ok(Err(())) => message.map_or(Ok(()), |message| Err(SendError::NotCarried(message))),
        Err(refused) => {
            let message = message.expect("a message that was not made stays");
            Err(refused.map(|()| message))
        }
    }
}

/// Sends a signal to a process of another node.
pub(crate) fn signal_to(peers: &Peers, to: Pid, signal: &Signal) -> Result<(), SendError<()>> {
    let Some(peer) = peers.node(to.node()) else {
        return Err(SendError::NodeDown(()));
    };
    let mut out = Encoder::new(&peers.identities);
    out.u64(to.to_bits() as u64);
    if !signals::write(signal, &mut out) {
        return Err(SendError::NotCarried(()));
    }
    // Signals are few beside messages, so they need no room: a link that found none would end.
    match peer.send_always(to.node(), SIGNAL, &out.bytes) {
        true => Ok(()),
        false => Err(SendError::NodeDown(())),
    }
}
