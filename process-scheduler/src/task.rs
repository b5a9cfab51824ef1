//! The process of an `async` block: a step polls the block's future, which receives messages by
//! `await`.
//!
//! 1. The future and the process share a small queue under a lock. A step moves the events into the
//!    queue, and then polls the future with the process's own waker.
//! 2. A future that awaits the inbox leaves the process idle; one that awaits anything else leaves
//!    it blocked, so that messages do not wake it in vain.
//! 3. The inbox may be awaited with another waker, as in a set of futures, or outside of a step, as
//!    on another thread. Then the inbox keeps that waker, and a step that takes an event wakes it.
//!    Outside of a step, that waker may be the process's own. So no step removes the waker before
//!    an event comes.
//! 4. The end of the process cancels the inbox and wakes the code that awaits it, and then drops
//!    the messages and the future. The wake and the drops run user code: a panic of one of them
//!    skips nothing.
use crate::{
    Address, CancelReason, Context, Event, EventsOf, ExitReason, Flow, Handle, InitError, Input,
    NoCommand, OutputOf, Pid, Process, Spawn, SpawnError, Step, StepOf,
    guard::{self, Guarded, GuardedDeque},
};
use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    marker::PhantomData,
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
    thread_local!(static OWN: u8 = const { 0 });
    OWN.with(|own| ptr::from_ref(own).addr())
}

struct Queue<M> {
    messages: GuardedDeque<M>,
    exits: VecDeque<(Pid, ExitReason)>,
    cancelled: Option<CancelReason>,
    /// True if the future has awaited the inbox in the process's last step.
    receives: bool,
    /// The waker of the code that awaits the inbox in another way (rule 3).
    waker: Option<Waker>,
    /// The thread that polls the future, or 0.
    stepped_by: usize,
    /// The process's own waker, from its first step on.
    own: Option<Waker>,
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
    queue: Arc<Mutex<Queue<M>>>,
    address: Address<M>,
    handle: Handle,
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
        self.queue.lock().exits.pop_front()
    }

    /// Waits for any event: a message, a cancel, or the end of another process.
    pub async fn event(&mut self) {
        std::future::poll_fn(|cx| {
            let is_ready = |queue: &Queue<M>| {
                !queue.messages.is_empty() || !queue.exits.is_empty() || queue.cancelled.is_some()
            };
            self.poll(cx.waker(), |queue| is_ready(queue).then_some(()))
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

    fn poll<R>(
        &mut self,
        waker: &Waker,
        mut take: impl FnMut(&mut Queue<M>) -> Option<R>,
    ) -> Poll<R> {
        // A clone of a waker is user code, so it happens outside of the lock. A clone that is not
        // needed is dropped beside what this function returns.
        let mut clone: Option<Guarded<Waker>> = None;
        loop {
            let mut queue = self.queue.lock();
            if let Some(taken) = take(&mut queue) {
                return Poll::Ready(taken);
            }
            let is_same = |known: &Waker| known.will_wake(waker);
            let in_step = queue.stepped_by == thread_address();
            if in_step && queue.own.as_ref().is_some_and(is_same) {
                queue.receives = true;
                return Poll::Pending;
            }
            if let Some(waker) = clone.take() {
                let old = queue.waker.replace(waker.into_inner());
                // Rule 3: the process must step once, to find that the inbox is awaited.
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
        self.inbox.poll(cx.waker(), |queue| match queue.cancelled {
            Some(_) => Some(None),
            None => queue.messages.pop_front().map(Some),
        })
    }
}

impl<M> fmt::Debug for Receiving<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiving")
    }
}

/// The process of an `async` block: see [`from_async`].
pub struct AsyncProcess<M, F, T> {
    begin: Option<F>,
    future: Option<Pin<Box<T>>>,
    queue: Arc<Mutex<Queue<M>>>,
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
        queue: Arc::new(Mutex::new(Queue {
            messages: GuardedDeque::default(),
            exits: VecDeque::new(),
            cancelled: None,
            receives: false,
            waker: None,
            stepped_by: 0,
            own: None,
        })),
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
        self.future = Some(Box::pin(begin(Inbox {
            queue: self.queue.clone(),
            address: cx.address(),
            handle: cx.handle().clone(),
        })));
        Ok(())
    }

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let mut came = false;
        for event in events {
            came = true;
            // The lock is not held while events are taken: that may wake senders that wait for
            // room.
            let mut queue = self.queue.lock();
            match event {
                Event::Message(message) => queue.messages.push_back(message),
                Event::Cancel(reason) => queue.cancelled = Some(reason),
                Event::Exit { pid, reason } => queue.exits.push_back((pid, reason)),
                Event::YieldComplete { .. } => {}
            }
        }
        let mut queue = self.queue.lock();
        queue.receives = false;
        queue.stepped_by = thread_address();
        if queue.own.is_none() {
            drop(queue);
            // A clone of the process's own waker is no user code, but the lock need not be held.
            let own = out.waker().clone();
            queue = self.queue.lock();
            queue.own = Some(own);
        }
        let waker = if came { queue.waker.take() } else { None };
        drop(queue);
        // The panic of this waker is no panic of the process.
        waker.into_iter().for_each(guard::wake);
        let Some(future) = &mut self.future else {
            return Step::Done;
        };
        let mut cx = std::task::Context::from_waker(out.waker());
        let polled = future.as_mut().poll(&mut cx);
        let mut queue = self.queue.lock();
        queue.stepped_by = 0;
        let is_awaited = queue.receives || queue.waker.is_some();
        drop(queue);
        match polled {
            Poll::Ready(flow) => match flow.into() {
                Flow::Fail(reason) => Step::Failed(reason),
                Flow::Continue | Flow::Stop => Step::Done,
            },
            Poll::Pending if is_awaited => Step::Idle,
            Poll::Pending => Step::Blocked,
        }
    }

    fn close(&mut self) {
        let mut queue = self.queue.lock();
        queue.cancelled.get_or_insert(CancelReason::Requested);
        // The process's waker would keep the cell alive.
        let own = mem::take(&mut queue.own);
        let waker = mem::take(&mut queue.waker);
        let messages = mem::take(&mut queue.messages);
        drop(queue);
        drop(own);
        // Rule 4: the wake comes first, and the future last: its drop is not guarded here.
        waker.into_iter().for_each(guard::wake);
        drop(messages);
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
