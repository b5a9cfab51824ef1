//! The process of an `async` block: a step polls the block's future, which receives messages by
//! `await`.
//!
//! 1. The future and the process share a queue under a lock: see `inbox.rs`. A step moves the
//!    signals into the queue, and then polls the future with the process's own waker. During the
//!    poll, it lends the queue the messages that were taken out of the mailbox. After the poll,
//!    also after a panic of it, the step takes back those that were not received. So an incarnation
//!    that ends leaves them to the next one, as any other process does.
//! 2. A step takes messages out of the mailbox before its poll if the inbox was awaited, and during
//!    its poll whenever the future asks the inbox for one, and none is lent. It does so only if no
//!    message of an earlier take is left. So a bounded mailbox is bounded, however often the
//!    process steps for something else.
//! 3. The inbox may be awaited with another waker, as in a set of futures, or outside of a step, as
//!    on another thread. Then the inbox keeps that waker. A step that gets a signal wakes it; a
//!    step that gets a message hands this message over to the queue, and wakes it. No step hands
//!    over a second message before the first one is received. Outside of a step, that waker may be
//!    the process's own. So no step removes the waker before an event comes. The code that receives
//!    the message removes the waker, so the next await makes the process step (rule 4).
//! 4. A future that awaits the inbox leaves the process idle; one that awaits anything else leaves
//!    it blocked, so that messages do not wake it in vain. The same holds for code that awaits the
//!    inbox outside of a step: when the inbox gets a new waker, the process steps once, to become
//!    idle. The process is blocked from the handing over of a message until the message is
//!    received.
//! 5. The end of the process cancels the inbox and wakes the code that awaits it, and then drops
//!    the future. A message that was handed over, and not received, is a dead letter. The wake and
//!    the drops run user code: a panic of one of them skips nothing.
//! 6. [`Inbox::event`] becomes ready by a signal, or by a message that has none before it, and is
//!    ready once. If code takes an event and others are left, it is ready again. After a `receive`
//!    that was pending, the next message counts as new again, also if it came before: a step may
//!    have received as many messages as it may, and code outside of a step gets a message only by
//!    the next step. So it does not matter which events the code takes, and in which order: no
//!    event is missed, and an event that stays does not make the future spin.
use crate::{
    Address, Context, Event, Events, EventsOf, Flow, Handle, Inbox, InitError, Input, NoCommand,
    OutputOf, Process, Spawn, SpawnError, Step, StepOf, guard, inbox::InboxQueue,
};
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    mem::ManuallyDrop,
    pin::Pin,
    sync::Arc,
    task::{Poll, Waker},
};
use sync_shim::sync::Mutex;

/// Lends a step's messages to the inbox until it is dropped, also by a panic (rule 1).
struct Loan<'a, 'e, M> {
    events: &'a mut Events<'e, M, (), ()>,
    queue: &'a Mutex<InboxQueue<M>>,
}

impl<'a, 'e, M> Loan<'a, 'e, M> {
    /// Begins the poll of a step. `has_signal` says whether a signal has come to the step. Wakes
    /// the code that awaits the inbox with another waker (rule 3).
    ///
    /// `wanted` is what the last step's `end` has returned, or `None` in the first step. If code
    /// has begun to await the inbox since, this step takes no mail before the poll, but its `end`
    /// returns true, so the process steps again.
    fn begin(
        events: &'a mut Events<'e, M, (), ()>,
        queue: &'a Mutex<InboxQueue<M>>,
        wanted: Option<bool>,
        own: &Waker,
        has_signal: bool,
    ) -> Self {
        // The lock is not held meanwhile: a take may wake senders that wait for room.
        if wanted == Some(true) {
            events.take_mail();
        }
        let own = wanted.is_none().then(|| own.clone());
        let mut locked = queue.lock();
        own.into_iter().for_each(|own| locked.set_own(own));
        let waker = locked.begin(events.lend(), has_signal);
        drop(locked);
        let loan = Self { events, queue };
        // The panic of this waker is no panic of the process.
        waker.into_iter().for_each(guard::wake);
        loan
    }

    /// Ends the poll. Returns whether the process must step when a message comes (rule 4).
    fn end(self) -> bool {
        ManuallyDrop::new(self).take_back()
    }

    /// Takes back the messages that were not received. Returns the same as `end`.
    fn take_back(&mut self) -> bool {
        let mut queue = self.queue.lock();
        let lent = queue.end();
        let wants_message = queue.wants_message();
        drop(queue);
        self.events.take_back(lent);
        wants_message
    }
}

impl<M> Drop for Loan<'_, '_, M> {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// The process of an `async` block: see [`from_async`].
pub struct AsyncProcess<M, F, T> {
    begin: Option<F>,
    future: Option<Pin<Box<T>>>,
    queue: Arc<Mutex<InboxQueue<M>>>,
    /// Whether a message must make the process step, from the end of the first step on.
    wants_message: Option<bool>,
    /// The scheduler, from the start on.
    handle: Option<Handle>,
    marker: PhantomData<fn(M)>,
}

impl<M, F, T> fmt::Debug for AsyncProcess<M, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AsyncProcess")
    }
}

/// Makes a process of an `async` block, which a closure makes from the inbox.
///
/// Use the process in a [`Child`](crate::Child), or spawn it with [`Handle::spawn_process`].
///
/// ```
/// use process_scheduler::{Inbox, Scheduler, Spawn, from_async};
///
/// let scheduler = Scheduler::new();
/// let printer = from_async(|mut inbox: Inbox<String>| async move {
///     while let Some(line) = inbox.receive().await {
///         println!("{line}");
///     }
/// });
/// let printer = scheduler.spawn_process(printer, Spawn::new().name("printer")).unwrap();
/// printer.try_send("hello".into()).unwrap();
/// ```
pub fn from_async<M, F, T>(begin: F) -> AsyncProcess<M, F, T>
where
    M: Send + 'static,
    F: FnOnce(Inbox<M>) -> T + Send + 'static,
    T: Future<Output: Into<Flow>> + Send + 'static,
{
    AsyncProcess {
        begin: Some(begin),
        future: None,
        queue: Arc::new(Mutex::new(InboxQueue::new())),
        wants_message: None,
        handle: None,
        marker: PhantomData,
    }
}

impl<M, F, T> Process for AsyncProcess<M, F, T>
where
    M: Send + 'static,
    F: FnOnce(Inbox<M>) -> T + Send + 'static,
    T: Future<Output: Into<Flow>> + Send + 'static,
{
    type Message = M;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(&mut self, cx: &Context<'_, M>, method: &str, _: Input) -> Result<(), InitError> {
        let begin = match (method, self.begin.take()) {
            ("", Some(begin)) => begin,
            _ => return Err(InitError::UnknownMethod),
        };
        self.handle = Some(cx.handle().clone());
        self.future = Some(Box::pin(begin(Inbox {
            queue: self.queue.clone(),
            address: cx.address(),
            handle: cx.handle().clone(),
        })));
        Ok(())
    }

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let mut has_signal = false;
        while let Some(event) = events.next_urgent() {
            has_signal = true;
            let mut queue = self.queue.lock();
            match event {
                Event::Cancel(reason) => queue.cancel(reason),
                Event::Exit { pid, reason } => queue.exited(pid, reason),
                Event::Message(_) | Event::YieldComplete { .. } => {}
            }
        }
        let wanted = self.wants_message;
        let loan = Loan::begin(events, &self.queue, wanted, out.waker(), has_signal);
        let Some(future) = &mut self.future else {
            return Step::Done;
        };
        let mut cx = std::task::Context::from_waker(out.waker());
        let polled = future.as_mut().poll(&mut cx);
        let wants_message = loan.end();
        self.wants_message = Some(wants_message);
        match polled {
            Poll::Ready(flow) => match flow.into() {
                Flow::Fail(reason) => Step::Failed(reason),
                Flow::Continue | Flow::Stop => Step::Done,
            },
            Poll::Pending if wants_message => Step::Idle,
            Poll::Pending => Step::Blocked,
        }
    }

    fn close(&mut self) {
        let ([own, waker], message) = self.queue.lock().close();
        // The process's waker would keep the cell alive.
        drop(own);
        // Rule 5: the wake comes first, and the future last: its drop is not guarded here.
        waker.into_iter().for_each(guard::wake);
        if let (Some(message), Some(handle)) = (message, &self.handle) {
            handle.counters().dead_letter();
            drop(message);
        }
        drop(self.future.take());
    }
}

impl Handle {
    /// Spawns a process of an `async` block, which a closure makes from the inbox. The block may
    /// await anything; the process steps when the inbox or the awaited future is ready.
    ///
    /// # Errors
    /// As [`spawn_process`](Self::spawn_process).
    #[track_caller]
    pub fn spawn_async<M, F, T>(&self, begin: F) -> Result<Address<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Inbox<M>) -> T + Send + 'static,
        T: Future<Output: Into<Flow>> + Send + 'static,
    {
        self.spawn_process(from_async(begin), Spawn::new())
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
