//! The typed ways to a process: messages, completions and wakes.
//!
//! A sender pushes a message into the lane, then sets the bit of messages if its message is the
//! first in the lane (rule 2 of `core.rs`), and then queues the token if the bit has ended the
//! process's wait.
use super::ProcessCell;
use crate::{
    CommandError, Pid, Process, SendError,
    address::Receive,
    event::Urgent,
    handler::Complete,
    lane::{SenderKey, Taken},
    shared::Shared,
    state::MESSAGE,
    worker,
};
use queue_global::mpsc::Pushed;
use std::{
    sync::Arc,
    task::{Poll, Wake, Waker, ready},
};

impl<P: Process> Receive<P::Message> for ProcessCell<P> {
    fn send(&self, message: P::Message) -> Result<(), SendError<P::Message>> {
        let (pushed, dropped) = self.core.messages.push(message)?;
        if pushed == Pushed::First {
            if let Some(token) = self.core.notify(MESSAGE) {
                worker::submit(&self.handle.shared, token);
            }
        }
        if let Some(dropped) = dropped {
            self.dead_letter(dropped);
        }
        Ok(())
    }

    fn poll_send(
        &self,
        message: &mut Option<P::Message>,
        key: &mut Option<SenderKey>,
        waker: &Waker,
    ) -> Poll<Result<(), SendError<P::Message>>> {
        let (pushed, dropped) = ready!(self.core.messages.poll_push(message, key, waker))?;
        if pushed == Pushed::First {
            self.submit(self.core.notify(MESSAGE));
        }
        if let Some(dropped) = dropped {
            self.dead_letter(dropped);
        }
        Poll::Ready(Ok(()))
    }

    fn forget_send(&self, key: SenderKey) {
        self.core.messages.forget(key);
    }

    fn take_mail(&self, into: &mut Taken<P::Message>) {
        self.core.messages.take(into);
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }
}

impl<P: Process> Complete<P::Output, P::Error> for ProcessCell<P> {
    fn complete(
        &self,
        tag: u64,
        incarnation: u32,
        result: Result<P::Output, CommandError<P::Error>>,
    ) -> Result<(), Result<P::Output, CommandError<P::Error>>> {
        if self.core.state.incarnation() != incarnation {
            return Err(result);
        }
        let urgent = Urgent::Complete {
            tag,
            incarnation,
            result,
        };
        match self.core.signal(urgent) {
            Ok(token) => {
                self.submit(token);
                Ok(())
            }
            Err(Urgent::Complete { result, .. }) => Err(result),
            Err(_) => unreachable!("it was given a completion"),
        }
    }
}

impl<P: Process> Wake for ProcessCell<P> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.submit(self.core.wake());
    }
}
