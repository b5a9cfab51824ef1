//! The addresses to which messages are sent, and the future of a send.
use crate::{
    Call, CallError, Pid, Reply, SendError,
    deadline::Deadline,
    lane::{SenderKey, Taken},
    oneshot,
    shared::Shared,
};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Takes messages of one type: the cell of a process, or a process on another node.
pub(crate) trait Receive<M>: Send + Sync {
    fn send(&self, message: M) -> Result<(), SendError<M>>;
    /// Polls a send. While the send waits, `key` names its waker.
    fn poll_send(
        &self,
        message: &mut Option<M>,
        key: &mut Option<SenderKey>,
        waker: &Waker,
    ) -> Poll<Result<(), SendError<M>>>;
    /// Drops the waker of a send that waits no longer.
    fn forget_send(&self, key: SenderKey);
    /// Takes all messages out of the mailbox. Only a step of the process calls this, and `into` is
    /// empty. If the process is on another node, this takes nothing.
    fn take_mail(&self, into: &mut Taken<M>);
    fn pid(&self) -> Pid;
    /// Returns the sender's scheduler.
    fn shared(&self) -> &Arc<Shared>;
}

/// The address of a process that takes messages of type `M`.
///
/// A send through an address needs no look-up. An address stays valid when its process is restarted
/// or upgraded.
///
/// An address does not keep its process alive. The end of the process drops everything that the
/// process owned: its value, its handler and its messages. The address keeps two things after that:
/// the memory of the cell, and the shared part of the scheduler, with the handlers of
/// [`Builder::handler`](crate::Builder::handler).
///
/// ```
/// use process_scheduler::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let (sender, seen) = std::sync::mpsc::channel();
/// let printer = scheduler.spawn_fn(move |line: &str, _| sender.send(line).unwrap()).unwrap();
/// printer.try_send("hello").unwrap();
/// assert_eq!(seen.recv(), Ok("hello"));
/// assert!(scheduler.list().contains(&printer.pid()));
/// ```
pub struct Address<M> {
    receiver: Arc<dyn Receive<M>>,
}

impl<M: Send + 'static> Address<M> {
    pub(crate) fn new(receiver: Arc<dyn Receive<M>>) -> Self {
        Self { receiver }
    }

    /// Returns the pid of the process.
    pub fn pid(&self) -> Pid {
        self.receiver.pid()
    }

    /// Sends a message, and never waits.
    ///
    /// A send to an unbounded mailbox costs one allocation and one read-modify-write. If the
    /// mailbox is empty, one more read-modify-write wakes the process. A bounded mailbox takes a
    /// lock to push.
    ///
    /// # Errors
    /// [`SendError::Closed`] if the process has ended, [`SendError::Full`] if its mailbox is full.
    /// For a process on another node, the call returns the error of the
    /// [relay](crate::Relay::deliver).
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.receiver.send(message)
    }

    /// Sends a message, and waits while the mailbox is full. If the process is on another node, the
    /// send waits while the [way to the node](crate::Relay::poll_ready) has no room, and does not
    /// wait for room in the mailbox.
    ///
    /// ```
    /// use process_scheduler::{Inbox, Mailbox, Scheduler, Spawn};
    ///
    /// let scheduler = Scheduler::new();
    /// let spawn = Spawn::new().mailbox(Mailbox::Bounded(4));
    /// let slow = scheduler.spawn_with(spawn, |n: u32, _| println!("{n}")).unwrap();
    /// let fast = scheduler
    ///     .spawn_async(move |_: Inbox<()>| async move {
    ///         for n in 0..100 {
    ///             slow.send(n).await.unwrap();
    ///         }
    ///     })
    ///     .unwrap();
    /// scheduler.wait(fast.pid());
    /// ```
    pub fn send(&self, message: M) -> Sending<'_, M> {
        Sending {
            address: self,
            message: Some(message),
            key: None,
        }
    }

    /// Sends a request with a place for the answer, and waits for the answer for at most `within`.
    ///
    /// The request is sent at once. Every call ends: with an answer, or with an error.
    ///
    /// ```
    /// use process_scheduler::{Reply, Scheduler};
    /// use std::time::Duration;
    ///
    /// struct Double(u32, Reply<u32>);
    ///
    /// let scheduler = Scheduler::new();
    /// let doubler = scheduler
    ///     .spawn_fn(|Double(n, reply): Double, _| drop(reply.send(2 * n)))
    ///     .unwrap();
    /// let call = doubler.call(|reply| Double(21, reply), Duration::from_secs(9));
    /// assert_eq!(call.wait(), Ok(42));
    /// ```
    pub fn call<R>(&self, request: impl FnOnce(Reply<R>) -> M, within: Duration) -> Call<R> {
        let (sender, receiver) = oneshot::channel();
        let sent = self.try_send(request(Reply(sender)));
        let refused = sent.err().map(|refused| CallError::Refused(refused.kind()));
        Call::new(
            receiver,
            refused,
            Deadline::new(self.receiver.shared(), within),
        )
    }
}

impl<M> Address<M> {
    /// Takes all messages out of the mailbox, in a step of the process. `into` must be empty.
    pub(crate) fn take_mail(&self, into: &mut Taken<M>) {
        self.receiver.take_mail(into);
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self {
            receiver: self.receiver.clone(),
        }
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.receiver.pid())
    }
}

/// The future of [`Address::send`].
#[must_use = "a message is sent when the future is awaited"]
pub struct Sending<'a, M> {
    address: &'a Address<M>,
    message: Option<M>,
    /// `Some` while the send waits for room: the lane may have the send's waker under this key.
    key: Option<SenderKey>,
}

// The message is not pinned.
impl<M> Unpin for Sending<'_, M> {}

impl<M: Send + 'static> Future for Sending<'_, M> {
    type Output = Result<(), SendError<M>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let receiver = &this.address.receiver;
        receiver.poll_send(&mut this.message, &mut this.key, cx.waker())
    }
}

impl<M> Drop for Sending<'_, M> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.address.receiver.forget_send(key);
        }
    }
}

impl<M> fmt::Debug for Sending<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("to", self.address).finish()
    }
}
