//! Room that is reserved in a bounded channel.
use super::chan::Chan;
use core::{fmt, iter::FusedIterator, mem::forget};

/// Room for one message, from [`Sender::reserve`](crate::mpsc::Sender::reserve). Its drop gives the
/// room back.
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

/// Room for some messages, from [`Sender::reserve_many`](crate::mpsc::Sender::reserve_many): an
/// iterator of permits. Its drop gives the room back.
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
