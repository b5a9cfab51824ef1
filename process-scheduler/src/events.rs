//! The events of a step, as the process takes them from its lanes.
use crate::{
    Event, core::ProcessCore, event::Urgent, guard::drop_guarded, lane::Taken, pool::Kept,
    runnable::Runnable,
};
use queue_global::mpsc::Batch;
use std::{fmt, mem};

/// The signals and the messages that a process has taken from its lanes, and not yet handled.
pub(crate) struct Pending<M, O, E> {
    pub(crate) urgent: Batch<Urgent<O, E>, Kept>,
    pub(crate) messages: Taken<M>,
}

pub(crate) type CoreOf<M, O, E> = ProcessCore<M, Urgent<O, E>, Runnable>;

/// The events of a step: signals and completions first, then messages. See
/// [`Process::step`](crate::Process::step).
///
/// The call that returns the first message takes all messages out of the mailbox: by one
/// read-modify-write, or under the lock if the mailbox is bounded. The call that returns the first
/// signal takes all signals. The events that were taken together cost no further read-modify-write.
/// A step gets up to
/// [`Builder::messages`](crate::Builder::messages) messages; the others stay for the next step. No
/// message is taken out of the mailbox while messages of an earlier take are left.
///
/// ```
/// use process_scheduler::{EventsOf, NoCommand, OutputOf, Process, Step, StepOf};
///
/// /// Handles one event a step.
/// struct Slow;
///
/// impl Process for Slow {
///     type Message = u32;
///     type Cmd = NoCommand;
///     type Output = ();
///     type Error = ();
///     fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
///         match events.next() {
///             Some(_) => Step::Continue,
///             None => Step::Idle,
///         }
///     }
/// }
/// ```
pub struct Events<'a, M, O, E> {
    pub(crate) core: &'a CoreOf<M, O, E>,
    pub(crate) pending: &'a mut Pending<M, O, E>,
    pub(crate) incarnation: u32,
    pub(crate) messages_left: u32,
    pub(crate) delivered: u32,
    pub(crate) cancelled: &'a mut bool,
}

impl<M, O, E> Events<'_, M, O, E> {
    /// The slow path of [`next_urgent`](Self::next_urgent): there is a signal or a completion, which
    /// may be for an earlier incarnation.
    #[cold]
    fn next_urgent_slow(&mut self) -> Option<Event<M, O, E>> {
        loop {
            let urgent = match self.pending.urgent.next() {
                Some(urgent) => urgent,
                None if self.core.has_urgent() => {
                    self.pending.urgent = self.core.take_urgent();
                    continue;
                }
                None => return None,
            };
            if urgent
                .only_for()
                .is_some_and(|only| only != self.incarnation)
            {
                // The event is for an earlier incarnation, which a restart has replaced. A panic of
                // the event's drop is not a panic of this step.
                drop_guarded(urgent);
                continue;
            }
            return Some(match urgent {
                Urgent::Complete { tag, result, .. } => Event::YieldComplete { tag, result },
                Urgent::Cancel { reason, .. } => {
                    *self.cancelled = true;
                    Event::Cancel(reason)
                }
                Urgent::Exit { pid, reason } => Event::Exit { pid, reason },
            });
        }
    }

    /// Returns the next signal or completion.
    #[inline]
    pub(crate) fn next_urgent(&mut self) -> Option<Event<M, O, E>> {
        if self.pending.urgent.is_empty() && !self.core.has_urgent() {
            return None;
        }
        self.next_urgent_slow()
    }

    /// Takes all messages out of the mailbox, if no message of an earlier take is left.
    pub(crate) fn take_mail(&mut self) {
        if self.pending.messages.is_empty() {
            self.core.messages.take(&mut self.pending.messages);
        }
    }

    /// Lends the messages that were taken out of the mailbox.
    pub(crate) fn lend(&mut self) -> Lent<M> {
        Lent {
            messages: mem::take(&mut self.pending.messages),
            messages_left: self.messages_left,
            received: 0,
        }
    }

    /// Takes back the messages that [`lend`](Self::lend) lent and the inbox has left.
    pub(crate) fn take_back(&mut self, lent: Lent<M>) {
        self.pending.messages = lent.messages;
        self.messages_left = lent.messages_left;
        self.delivered += lent.received;
    }
}

/// Messages that a step lends to the inbox of an `async` process, while it polls the future.
pub(crate) struct Lent<M> {
    messages: Taken<M>,
    /// How many messages the step may still receive.
    messages_left: u32,
    received: u32,
}

impl<M> Lent<M> {
    /// Returns the next message, and counts it as received by the step.
    pub(crate) fn receive(&mut self) -> Option<M> {
        if self.messages_left == 0 {
            return None;
        }
        let message = self.messages.next()?;
        self.messages_left -= 1;
        self.received += 1;
        Some(message)
    }

    /// Counts a message as received by the step, although [`take_outside`](Self::take_outside) took
    /// it out: code in the step has received it after all.
    pub(crate) fn count_received(&mut self) {
        self.received += 1;
    }

    /// Takes the next message out, for code outside of the step. The step does not count it.
    pub(crate) fn take_outside(&mut self) -> Option<M> {
        self.messages.next()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns whether the step may receive more messages, and has none.
    pub(crate) fn needs_mail(&self) -> bool {
        self.messages_left > 0 && self.is_empty()
    }

    /// Returns the lent messages. When none are left, the inbox puts new ones from the mailbox in
    /// their place.
    pub(crate) fn messages_mut(&mut self) -> &mut Taken<M> {
        &mut self.messages
    }
}

impl<M> Default for Lent<M> {
    fn default() -> Self {
        Self {
            messages: Taken::default(),
            messages_left: 0,
            received: 0,
        }
    }
}

impl<M, O, E> Iterator for Events<'_, M, O, E> {
    type Item = Event<M, O, E>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(urgent) = self.next_urgent() {
            return Some(urgent);
        }
        if self.messages_left == 0 {
            return None;
        }
        let message = self.core.messages.next(&mut self.pending.messages)?;
        self.messages_left -= 1;
        self.delivered += 1;
        Some(Event::Message(message))
    }
}

impl<M, O, E> fmt::Debug for Events<'_, M, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
