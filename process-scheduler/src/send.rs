//! Messages by pid, to processes of this node and of others.
use crate::{
    Address, Handle, Parcel, Pid, SendError, Signal,
    address::Receive,
    lane::{SenderKey, Taken},
    shared::Shared,
};
use std::{
    sync::Arc,
    task::{Poll, Waker},
};

impl Handle {
    /// Returns the address of a process by its pid. `None` if there is no such process, or if it
    /// takes messages of another type. The address of a process on another node is not checked.
    pub fn address<M: Send + 'static>(&self, pid: Pid) -> Option<Address<M>> {
        if pid.node != self.node() {
            let handle = self.clone();
            return Some(Address::new(Arc::new(RemoteReceiver { pid, handle })));
        }
        let receiver = self.registry().get(pid)?.receiver();
        let receiver = receiver.downcast::<Arc<dyn Receive<M>>>().ok()?;
        Some(Address::new(*receiver))
    }

    /// Sends a message by pid, and never waits. An [`Address`] saves the look-up.
    ///
    /// # Errors
    /// [`SendError::NotFound`] if there is no such process, or it takes messages of another type.
    /// [`SendError::Closed`] if the process ends meanwhile. [`SendError::Full`] if its mailbox is
    /// full.
    ///
    /// For a process on another node, the call returns the error of the
    /// [`Relay`](crate::Relay::deliver).
    pub fn try_send<M: Send + 'static>(&self, to: Pid, message: M) -> Result<(), SendError<M>> {
        if to.node != self.node() {
            return self.try_send_by_relay(to, message);
        }
        let Some(cell) = self.registry().get(to) else {
            return Err(SendError::NotFound(message));
        };
        let mut message = Some(message);
        let sent = cell.send_any(&mut message);
        sent.map_err(|refused| refused.map(|()| message.expect("a refused message stays")))
    }

    // A local send keeps no registers for this call.
    #[cold]
    #[inline(never)]
    fn try_send_by_relay<M: Send + 'static>(
        &self,
        to: Pid,
        message: M,
    ) -> Result<(), SendError<M>> {
        match self.send_by_relay(to, message) {
            Err(SendError::NoRoom(message)) => Err(SendError::Full(message)),
            sent => sent,
        }
    }

    fn send_by_relay<M: Send + 'static>(&self, to: Pid, message: M) -> Result<(), SendError<M>> {
        let Some(relay) = self.relay() else {
            return Err(SendError::NotFound(message));
        };
        let Err(refused) = relay.deliver(to, Parcel::Message(Box::new(message))) else {
            return Ok(());
        };
        let kind = refused.kind();
        match refused.into_inner() {
            Parcel::Message(message) => match message.downcast() {
                Ok(message) => Err(kind.map(|()| *message)),
                // A relay that hands back something else has lost the message.
                Err(_) => Ok(()),
            },
            Parcel::Signal(_) => Ok(()),
        }
    }

    /// Takes a parcel that comes from another node. A [`Relay`](crate::Relay) calls this.
    ///
    /// This call may call the relay of this scheduler again before it returns: hold no lock that
    /// this relay takes.
    ///
    /// ```
    /// use process_scheduler::{Parcel, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// let counter = scheduler.spawn_fn(|_: u32, _| ()).unwrap();
    /// scheduler.deliver(counter.pid(), Parcel::Message(Box::new(7_u32))).unwrap();
    /// assert!(scheduler.deliver(counter.pid(), Parcel::Message(Box::new("text"))).is_err());
    /// ```
    ///
    /// # Errors
    /// Those of [`try_send`](Self::try_send) for a message. A signal is refused only if there is no
    /// such process here. An exit of a process that is neither linked nor monitored here is
    /// dropped.
    pub fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        match parcel {
            // An exit that nobody here waits for: it comes too late, or is made up.
            Parcel::Signal(Signal::Exit { pid, linked, .. })
                if pid.node != self.node() && !self.awaits_exit(to, pid, linked) =>
            {
                Ok(())
            }
            Parcel::Signal(signal) => {
                let sent = self.signal_here(to, signal);
                sent.map_err(|signal| SendError::NotFound(Parcel::Signal(signal)))
            }
            Parcel::Message(message) => {
                let sent = match self.registry().get(to) {
                    Some(cell) => cell.send_boxed(message),
                    None => Err(SendError::NotFound(message)),
                };
                sent.map_err(|refused| refused.map(Parcel::Message))
            }
        }
    }
}

/// How often a poll tries to send in a row.
const MOST_TRIES: u32 = 16;

/// A process on another node, as the receiver of an address.
struct RemoteReceiver {
    pid: Pid,
    handle: Handle,
}

impl<M: Send + 'static> Receive<M> for RemoteReceiver {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.handle.try_send(self.pid, message)
    }

    fn poll_send(
        &self,
        message: &mut Option<M>,
        _: &mut Option<SenderKey>,
        waker: &Waker,
    ) -> Poll<Result<(), SendError<M>>> {
        // Another sender may be faster, again and again.
        for _ in 0..MOST_TRIES {
            let relay = self.handle.relay();
            let ready = relay.map(|relay| relay.poll_ready(self.pid.node, waker));
            if ready.is_some_and(|ready| ready.is_pending()) {
                return Poll::Pending;
            }
            let Some(taken) = message.take() else {
                return Poll::Pending;
            };
            match self.handle.send_by_relay(self.pid, taken) {
                Err(SendError::NoRoom(refused)) => *message = Some(refused),
                sent => return Poll::Ready(sent),
            }
        }
        waker.wake_by_ref();
        Poll::Pending
    }

    fn forget_send(&self, _: SenderKey) {}

    fn take_mail(&self, _: &mut Taken<M>) {}

    fn pid(&self) -> Pid {
        self.pid
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }
}
