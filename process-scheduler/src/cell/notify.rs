//! The typed ways to a process: messages, completions and wakes.
use super::Cell;
use crate::{
    CommandError, Pid, Process, SendError,
    address::Receive,
    event::Urgent,
    handler::Complete,
    lane::{Key, Refused, Taken},
    timer::Timer,
};
use std::{
    sync::Arc,
    task::{Poll, Wake, Waker},
};

impl<P: Process> Receive<P::Message> for Cell<P> {
    fn send(&self, message: P::Message) -> Result<(), SendError<P::Message>> {
        match self.core.send(message) {
            Ok(sent) => {
                self.submit(sent.submit);
                if let Some(dropped) = sent.dropped {
                    self.dead_letter(dropped);
                }
                Ok(())
            }
            Err(Refused::Closed(message)) => Err(SendError::Closed(message)),
            Err(Refused::Full(message)) => Err(SendError::Full(message)),
        }
    }

    fn poll_send(
        &self,
        message: &mut Option<P::Message>,
        key: &mut Option<Key>,
        waker: &Waker,
    ) -> Poll<Result<(), SendError<P::Message>>> {
        let sent = self.core.poll_send(message, key, waker);
        sent.map(|sent| match sent {
            Ok(sent) => {
                self.submit(sent.submit);
                sent.dropped.into_iter().for_each(|m| self.dead_letter(m));
                Ok(())
            }
            Err(Refused::Closed(message)) => Err(SendError::Closed(message)),
            Err(Refused::Full(message)) => Err(SendError::Full(message)),
        })
    }

    fn forget_send(&self, key: Key) {
        self.core.messages.forget(key);
    }

    fn take_mail(&self, into: &mut Taken<P::Message>) {
        self.core.messages.take(into);
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn timer(&self) -> &Timer {
        self.handle.timer()
    }
}

impl<P: Process> Complete<P::Output, P::Error> for Cell<P> {
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

impl<P: Process> Wake for Cell<P> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.submit(self.core.wake());
    }
}
