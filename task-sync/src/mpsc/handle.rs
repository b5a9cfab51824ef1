//! The owners of a channel: the insides of a sender, a receiver and a weak sender.
use super::chan::{Chan, Nothing, Owner};
use super::error::TryRecvError;
use crate::coop::WaitsOn;
use crate::wait::{Condition, until};
use crate::waiters::Waiters;
use alloc::vec::Vec;
use core::{
    future::Future,
    ops::Deref,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    task::{Context, Poll},
};

/// A sender's part of a channel.
pub(super) struct Tx<T, const BOUNDED: bool>(NonNull<Chan<T, BOUNDED>>);
/// The receiver's part.
pub(super) struct Rx<T, const BOUNDED: bool>(NonNull<Chan<T, BOUNDED>>);
/// A weak sender's part.
pub(super) struct Weak<T, const BOUNDED: bool>(NonNull<Chan<T, BOUNDED>>);

macro_rules! handles {
    ($($name:ident)*) => {$(
        // SAFETY: the channel may be used and freed on any thread, as `Chan` is `Sync` and `Send`.
        unsafe impl<T: Send, const BOUNDED: bool> Send for $name<T, BOUNDED> {}
        // SAFETY: as above.
        unsafe impl<T: Send, const BOUNDED: bool> Sync for $name<T, BOUNDED> {}
        // As `Chan`.
        impl<T, const BOUNDED: bool> UnwindSafe for $name<T, BOUNDED> {}
        impl<T, const BOUNDED: bool> RefUnwindSafe for $name<T, BOUNDED> {}

        impl<T, const BOUNDED: bool> $name<T, BOUNDED> {
            pub(super) fn chan(&self) -> &Chan<T, BOUNDED> {
                // SAFETY: the part keeps the channel.
                unsafe { self.0.as_ref() }
            }
        }
    )*};
}
handles! { Tx Rx Weak }

/// Creates a channel with a sender and the receiver.
pub(super) fn channel<T, const BOUNDED: bool>(capacity: usize) -> (Tx<T, BOUNDED>, Rx<T, BOUNDED>) {
    let chan = Chan::new(capacity);
    (Tx(chan), Rx(chan))
}

impl<T, const BOUNDED: bool> Deref for Tx<T, BOUNDED> {
    type Target = Chan<T, BOUNDED>;

    fn deref(&self) -> &Chan<T, BOUNDED> {
        self.chan()
    }
}

impl<T, const BOUNDED: bool> Tx<T, BOUNDED> {
    pub(super) fn same_channel(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    pub(super) fn downgrade(&self) -> Weak<T, BOUNDED> {
        self.add_weak();
        Weak(self.0)
    }

    /// Waits until the channel is closed.
    pub(super) fn closed(&self) -> impl Future<Output = ()> {
        until(Closed(self.chan()))
    }
}

impl<T, const BOUNDED: bool> Clone for Tx<T, BOUNDED> {
    fn clone(&self) -> Self {
        self.add_sender();
        Self(self.0)
    }
}

impl<T, const BOUNDED: bool> Drop for Tx<T, BOUNDED> {
    fn drop(&mut self) {
        // SAFETY: this is a sender, which is not used again.
        unsafe { Chan::drop_sender(self.0) };
    }
}

impl<T, const BOUNDED: bool> Weak<T, BOUNDED> {
    pub(super) fn upgrade(&self) -> Option<Tx<T, BOUNDED>> {
        self.chan().try_add_sender().then_some(())?;
        Some(Tx(self.0))
    }
}

impl<T, const BOUNDED: bool> Clone for Weak<T, BOUNDED> {
    fn clone(&self) -> Self {
        self.chan().add_weak();
        Self(self.0)
    }
}

impl<T, const BOUNDED: bool> Drop for Weak<T, BOUNDED> {
    fn drop(&mut self) {
        // SAFETY: this is a weak sender, which is not used again.
        unsafe { Chan::leave(self.0, Owner::Weak) };
    }
}

impl<T, const BOUNDED: bool> Rx<T, BOUNDED> {
    #[inline]
    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // SAFETY: this is the receiver, here and below.
        unsafe { self.chan().poll_recv(cx) }
    }

    pub(super) fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        // SAFETY: as above.
        unsafe { self.chan().poll_recv_many(cx, buffer, limit) }
    }

    pub(super) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        // SAFETY: as above.
        let received = unsafe { self.chan().try_recv() };
        received.map_err(|nothing| match nothing {
            Nothing::Yet => TryRecvError::Empty,
            Nothing::Ever => TryRecvError::Disconnected,
        })
    }

    pub(super) fn close(&mut self) {
        // SAFETY: as above.
        unsafe { self.chan().close() };
    }

    pub(super) fn len(&self) -> usize {
        // SAFETY: as above. No call on `&mut` runs meanwhile.
        unsafe { self.chan().len() }
    }
}

impl<T, const BOUNDED: bool> Drop for Rx<T, BOUNDED> {
    fn drop(&mut self) {
        // SAFETY: this is the receiver, which is not used again.
        unsafe { Chan::drop_receiver(self.0) };
    }
}

/// The condition that a channel is closed.
struct Closed<'a, T, const BOUNDED: bool>(&'a Chan<T, BOUNDED>);

impl<T, const BOUNDED: bool> Condition for Closed<'_, T, BOUNDED> {
    type Shared = ();
    type Output = ();

    fn queue(&self) -> &Waiters<()> {
        &self.0.closing
    }

    fn output(&mut self) -> Option<()> {
        self.may_be_met(&()).then_some(())
    }

    fn may_be_met(&self, &(): &()) -> bool {
        // A close sets its bits before it takes the lock.
        self.0.is_closed()
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("the end of the receiver of an mpsc channel", self.0)
    }
}
