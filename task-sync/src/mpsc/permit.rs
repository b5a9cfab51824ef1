//! Room that is reserved in a bounded channel.
use super::bounded::Sender;
use super::chan::Chan;
use core::{
    fmt,
    iter::FusedIterator,
    mem::{ManuallyDrop, forget},
};

/// Room for one message, from [`Sender::reserve`]. Its drop gives the room back.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(1);
/// drop(tx.try_reserve().unwrap());
/// tx.try_reserve().unwrap().send(7);
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use = "a permit that is dropped gives the room back"]
pub struct Permit<'a, T> {
    chan: &'a Chan<T, true>,
}

/// Room for some messages, from [`Sender::reserve_many`]: an iterator of permits. Its drop gives the
/// room back.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(3);
/// let mut permits = tx.try_reserve_many(3).unwrap();
/// permits.next().unwrap().send(7);
/// assert_eq!(permits.len(), 2);
/// drop(permits);
/// assert_eq!(tx.capacity(), 2);
/// ```
#[must_use = "permits that are dropped give the room back"]
pub struct PermitIterator<'a, T> {
    chan: &'a Chan<T, true>,
    count: usize,
}

/// Room for one message, with a sender of its own, from [`Sender::reserve_owned`]. Its drop gives the
/// room back and drops the sender.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(1);
/// let permit = tx.try_reserve_owned().unwrap();
/// std::thread::spawn(move || permit.send(7));
/// assert_eq!(rx.blocking_recv(), Some(7));
/// ```
#[must_use = "a permit that is dropped gives the room back"]
pub struct OwnedPermit<T> {
    sender: ManuallyDrop<Sender<T>>,
}

impl<'a, T> Permit<'a, T> {
    /// Makes a permit of room that the caller has reserved.
    pub(super) fn new(chan: &'a Chan<T, true>) -> Self {
        Self { chan }
    }

    /// Sends the message. If the receiver is dropped, drops the message.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let permit = tx.try_reserve().unwrap();
    /// rx.close();
    /// permit.send(7);
    /// assert_eq!(rx.blocking_recv(), Some(7));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    #[inline]
    pub fn send(self, message: T) {
        let chan = self.chan;
        forget(self);
        drop(chan.push(message));
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.chan.give_back(1);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

impl<'a, T> PermitIterator<'a, T> {
    /// Makes permits of room that the caller has reserved.
    pub(super) fn new(chan: &'a Chan<T, true>, count: usize) -> Self {
        Self { chan, count }
    }
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.count = self.count.checked_sub(1)?;
        Some(Permit::new(self.chan))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}

impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        self.chan.give_back(self.count);
    }
}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator")
            .field("len", &self.count)
            .finish_non_exhaustive()
    }
}

impl<T> OwnedPermit<T> {
    /// Makes a permit of room that the caller has reserved.
    pub(super) fn new(sender: Sender<T>) -> Self {
        Self {
            sender: ManuallyDrop::new(sender),
        }
    }

    fn into_sender(self) -> Sender<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the permit is not used or dropped again.
        unsafe { ManuallyDrop::take(&mut this.sender) }
    }

    /// Sends the message, and returns the sender. If the receiver is dropped, drops the message.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let tx = tx.try_reserve_owned().unwrap().send(7);
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn send(self, message: T) -> Sender<T> {
        let sender = self.into_sender();
        drop(sender.tx.push(message));
        sender
    }

    /// Gives the room back, and returns the sender.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
    /// let tx = tx.try_reserve_owned().unwrap().release();
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn release(self) -> Sender<T> {
        let sender = self.into_sender();
        sender.tx.give_back(1);
        sender
    }

    /// Returns whether both permits belong to the same channel.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(2);
    /// let one = tx.clone().try_reserve_owned().unwrap();
    /// let two = tx.clone().try_reserve_owned().unwrap();
    /// assert!(one.same_channel(&two) && one.same_channel_as_sender(&tx));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.sender.same_channel(&other.sender)
    }

    /// Returns whether the sender belongs to the permit's channel.
    /// [`same_channel`](Self::same_channel) has an example.
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.sender.same_channel(sender)
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        self.sender.tx.give_back(1);
        // SAFETY: the sender is not used or dropped again.
        unsafe { ManuallyDrop::drop(&mut self.sender) };
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").finish_non_exhaustive()
    }
}
