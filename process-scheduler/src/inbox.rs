//! The mailbox of an `async` process. The rules are in `task.rs`.
use crate::{
    Address, CancelReason, ExitReason, Handle, Pid, events::Lent, guard::Guarded, lane::Taken,
};
use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    ptr,
    sync::Arc,
    task::{Poll, Waker},
};
use sync_shim::sync::Mutex;

/// Returns an address that no other live thread has, and which is not 0.
#[inline]
fn thread_address() -> usize {
    sync_shim::simulated_thread_local!(static OWN: u8 = const { 0 });
    OWN.with(|own| ptr::from_ref(own).addr())
}

/// The part of an inbox that its process shares.
pub(crate) struct InboxQueue<M> {
    /// The messages that the present step lends (rule 1).
    lent: Lent<M>,
    /// The message for the code that awaits the inbox with another waker (rule 3).
    outside: Option<Guarded<M>>,
    exits: VecDeque<(Pid, ExitReason)>,
    cancelled: Option<CancelReason>,
    /// True if `event` is ready (rule 6).
    has_news: bool,
    /// True if a message waited when the queue was last changed, and no `receive` has been pending
    /// since.
    has_message: bool,
    /// True if the future has awaited a message in the process's last step.
    is_awaited: bool,
    /// The waker of the code that awaits the inbox in another way (rule 3).
    waker: Option<Waker>,
    /// The thread that polls the future, or 0.
    stepped_by: usize,
    /// The process's own waker, from its first step on.
    own: Option<Waker>,
}

/// A message that was received.
struct Received<M> {
    message: M,
    /// True if the message was received outside of a step, so no step counts it.
    is_outside: bool,
    /// The waker that is not needed any more.
    waker: Option<Guarded<Waker>>,
}

impl<M> InboxQueue<M> {
    pub(crate) fn new() -> Self {
        Self {
            lent: Lent::default(),
            outside: None,
            exits: VecDeque::new(),
            cancelled: None,
            has_news: false,
            has_message: false,
            is_awaited: false,
            waker: None,
            stepped_by: 0,
            own: None,
        }
    }

    pub(crate) fn cancel(&mut self, reason: CancelReason) {
        self.cancelled = Some(reason);
        self.has_news = true;
    }

    pub(crate) fn exited(&mut self, pid: Pid, reason: ExitReason) {
        self.exits.push_back((pid, reason));
        self.has_news = true;
    }

    pub(crate) fn set_own(&mut self, own: Waker) {
        self.own = Some(own);
    }

    /// Returns whether the process must step when a message comes.
    pub(crate) fn wants_message(&self) -> bool {
        self.is_awaited || self.waker.is_some() && self.outside.is_none()
    }

    /// Begins the poll of a step. `has_event` says whether a signal has come to the step. Returns
    /// the waker that the step must wake.
    pub(crate) fn begin(&mut self, lent: Lent<M>, mut has_event: bool) -> Option<Waker> {
        self.lent = lent;
        self.stepped_by = thread_address();
        self.is_awaited = false;
        if self.waker.is_some() && self.outside.is_none() {
            self.outside = self.lent.take_outside().map(Guarded::new);
            has_event |= self.outside.is_some();
        }
        self.look_for_news();
        if has_event { self.waker.take() } else { None }
    }

    /// Ends the poll. Returns the messages that were not received.
    pub(crate) fn end(&mut self) -> Lent<M> {
        self.stepped_by = 0;
        mem::take(&mut self.lent)
    }

    /// Ends the inbox (rule 5). Returns the two wakers, the process's own one first, and the
    /// message that no code has received.
    pub(crate) fn close(&mut self) -> ([Option<Waker>; 2], Option<Guarded<M>>) {
        self.cancelled.get_or_insert(CancelReason::Requested);
        self.has_news = true;
        ([self.own.take(), self.waker.take()], self.outside.take())
    }

    /// Makes `event` ready if there is a message, and it is a new event (rule 6).
    fn look_for_news(&mut self) {
        let had_message = self.has_message;
        self.look_for_message();
        self.has_news |= self.has_message && !had_message;
    }

    /// Lends the mail that the step has taken while the code polls the inbox (rule 2).
    fn refill(&mut self, mail: Taken<M>) {
        *self.lent.messages_mut() = mail;
        self.look_for_news();
    }

    fn look_for_message(&mut self) {
        self.has_message = self.outside.is_some() || !self.lent.is_empty();
    }

    /// Updates `has_news` after an event was taken (rule 6).
    fn taken(&mut self) {
        self.has_news = self.has_message || !self.exits.is_empty() || self.cancelled.is_some();
    }

    fn next_exit(&mut self) -> Option<(Pid, ExitReason)> {
        let exit = self.exits.pop_front()?;
        self.taken();
        Some(exit)
    }

    fn receive(&mut self) -> Option<Received<M>> {
        let received = match self.outside.take() {
            Some(message) => {
                let is_outside = self.stepped_by == 0;
                if !is_outside {
                    self.lent.count_received();
                }
                Received {
                    message: message.into_inner(),
                    is_outside,
                    waker: self.waker.take().map(Guarded::new),
                }
            }
            None => {
                let Some(message) = self.lent.receive() else {
                    // The code has polled in vain. So a message that comes later, or that this step
                    // may not receive, is a new event (rule 6).
                    self.has_message = false;
                    return None;
                };
                Received {
                    message,
                    is_outside: false,
                    waker: None,
                }
            }
        };
        self.look_for_message();
        self.taken();
        Some(received)
    }
}

/// The mailbox of an `async` process. See [`Handle::spawn_async`].
///
/// ```
/// use process_scheduler::{Inbox, Scheduler};
///
/// let scheduler = Scheduler::new();
/// let (sender, seen) = std::sync::mpsc::channel();
/// let pairs = scheduler
///     .spawn_async(move |mut inbox: Inbox<u32>| async move {
///         assert!(inbox.handle().list().contains(&inbox.pid()));
///         while let Some(a) = inbox.receive().await {
///             let Some(b) = inbox.receive().await else { break };
///             sender.send(a * b).unwrap();
///         }
///         assert!(inbox.cancelled().is_some());
///     })
///     .unwrap();
/// pairs.try_send(6).unwrap();
/// pairs.try_send(7).unwrap();
/// assert_eq!(seen.recv(), Ok(42));
/// ```
pub struct Inbox<M> {
    pub(crate) queue: Arc<Mutex<InboxQueue<M>>>,
    pub(crate) address: Address<M>,
    pub(crate) handle: Handle,
}

impl<M: Send + 'static> Inbox<M> {
    /// Returns the next message. `None` once the process is cancelled: then the `async` block
    /// should clean up and return.
    pub fn receive(&mut self) -> Receiving<'_, M> {
        Receiving { inbox: self }
    }

    /// Returns the reason of the cancellation, if the process was cancelled.
    pub fn cancelled(&self) -> Option<CancelReason> {
        self.queue.lock().cancelled.clone()
    }

    /// Returns the next end of a process that this one monitors or is linked to. `None` if all
    /// ends so far were returned.
    ///
    /// ```
    /// use process_scheduler::{Inbox, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// let other = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// let widow = scheduler
    ///     .spawn_async(move |mut inbox: Inbox<()>| async move {
    ///         inbox.handle().monitor(inbox.pid(), other);
    ///         inbox.handle().kill(other);
    ///         while inbox.next_exit().is_none() {
    ///             inbox.event().await;
    ///         }
    ///     })
    ///     .unwrap();
    /// scheduler.wait(widow.pid());
    /// ```
    pub fn next_exit(&mut self) -> Option<(Pid, ExitReason)> {
        self.queue.lock().next_exit()
    }

    /// Waits for the next event: a message, a cancel, or the end of another process.
    ///
    /// This takes no event, and waits for each event once, so code may ignore the events of other
    /// kinds. A message that waits behind another one is no event yet. When
    /// [`receive`](Self::receive) or [`next_exit`](Self::next_exit) has returned an event, and
    /// there are others, they count as new. So does a message after a poll of `receive` that was
    /// pending.
    ///
    /// After the end of the process this future is ready once more, and then never.
    pub async fn event(&mut self) {
        std::future::poll_fn(|cx| {
            let news = |queue: &mut InboxQueue<M>| mem::take(&mut queue.has_news).then_some(());
            // A message behind another one is no event.
            self.poll(cx.waker(), news, |queue| !queue.has_message)
        })
        .await;
    }

    /// Returns the pid of the process.
    pub fn pid(&self) -> Pid {
        self.address.pid()
    }

    /// Returns the address of the process.
    pub fn address(&self) -> Address<M> {
        self.address.clone()
    }

    /// Returns the process's scheduler.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Polls the inbox with `take`. `wants_message` says whether a message may make it ready.
    fn poll<R>(
        &mut self,
        waker: &Waker,
        mut take: impl FnMut(&mut InboxQueue<M>) -> Option<R>,
        wants_message: fn(&InboxQueue<M>) -> bool,
    ) -> Poll<R> {
        // A clone of a waker is user code, so it happens outside of the lock. A clone that is not
        // needed is dropped beside what this function returns.
        let mut clone: Option<Guarded<Waker>> = None;
        let mut has_taken_mail = false;
        loop {
            let mut queue = self.queue.lock();
            if let Some(taken) = take(&mut queue) {
                return Poll::Ready(taken);
            }
            let is_same = |known: &Waker| known.will_wake(waker);
            let in_step = queue.stepped_by == thread_address();
            if in_step && !has_taken_mail && wants_message(&queue) && queue.lent.needs_mail() {
                has_taken_mail = true;
                let mut mail = mem::take(queue.lent.messages_mut());
                drop(queue);
                // The lock is not held meanwhile: a take may wake senders that wait for room.
                self.address.take_mail(&mut mail);
                self.queue.lock().refill(mail);
                continue;
            }
            if in_step && queue.own.as_ref().is_some_and(is_same) {
                let wants_message = wants_message(&queue);
                queue.is_awaited |= wants_message;
                return Poll::Pending;
            }
            if let Some(waker) = clone.take() {
                let old = queue.waker.replace(waker.into_inner());
                // Rule 4: the process must step once, to find that the inbox is awaited.
                let own = queue.own.clone();
                drop(queue);
                drop(old);
                own.inspect(Waker::wake_by_ref);
                return Poll::Pending;
            }
            let known = queue.waker.as_ref().is_some_and(is_same);
            drop(queue);
            if known {
                return Poll::Pending;
            }
            clone = Some(Guarded::new(waker.clone()));
        }
    }
}

impl<M: Send + 'static> fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox({})", self.pid())
    }
}

/// The future of [`Inbox::receive`].
#[must_use = "the message is in the future"]
pub struct Receiving<'a, M> {
    inbox: &'a mut Inbox<M>,
}

impl<M: Send + 'static> Future for Receiving<'_, M> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        let next = |queue: &mut InboxQueue<M>| match queue.cancelled {
            Some(_) => Some(None),
            None => queue.receive().map(Some),
        };
        let received = self.inbox.poll(cx.waker(), next, |_| true);
        received.map(|received| {
            let received = received?;
            if received.is_outside {
                self.inbox.handle.counters().received_outside();
            }
            drop(received.waker);
            Some(received.message)
        })
    }
}

impl<M> fmt::Debug for Receiving<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiving")
    }
}
