//! One value from one thread to one future: the answer of a call, and the end of a process.
use crate::guard::wake;
use std::{
    mem,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use sync_shim::sync::Mutex;

struct Slot<R> {
    value: Option<R>,
    sender_gone: bool,
    receiver_gone: bool,
    waker: Option<Waker>,
}

pub(crate) struct Sender<R>(Option<Arc<Mutex<Slot<R>>>>);

pub(crate) struct Receiver<R>(Arc<Mutex<Slot<R>>>);

pub(crate) fn channel<R>() -> (Sender<R>, Receiver<R>) {
    let slot = Arc::new(Mutex::new(Slot {
        value: None,
        sender_gone: false,
        receiver_gone: false,
        waker: None,
    }));
    (Sender(Some(slot.clone())), Receiver(slot))
}

impl<R> Sender<R> {
    /// Returns whether nobody waits for the value any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|slot| Arc::strong_count(slot) == 1)
    }

    /// Sends the value, or hands it back if the receiver was dropped.
    pub(crate) fn send(mut self, value: R) -> Result<(), R> {
        let Some(slot) = self.0.take() else {
            return Err(value);
        };
        let mut slot = slot.lock();
        if slot.receiver_gone {
            return Err(value);
        }
        slot.value = Some(value);
        slot.sender_gone = true;
        let waker = mem::take(&mut slot.waker);
        drop(slot);
        waker.into_iter().for_each(wake);
        Ok(())
    }
}

impl<R> Drop for Sender<R> {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            let mut slot = slot.lock();
            slot.sender_gone = true;
            let waker = mem::take(&mut slot.waker);
            drop(slot);
            waker.into_iter().for_each(wake);
        }
    }
}

impl<R> Receiver<R> {
    /// Polls for the value. `Err` if the sender was dropped.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Result<R, ()>> {
        // A clone of a waker is user code, so it happens outside of the lock.
        let mut clone = None;
        loop {
            let mut slot = self.0.lock();
            if let Some(value) = slot.value.take() {
                return Poll::Ready(Ok(value));
            }
            if slot.sender_gone {
                return Poll::Ready(Err(()));
            }
            if slot.waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
                return Poll::Pending;
            }
            if let Some(waker) = clone.take() {
                let old = slot.waker.replace(waker);
                drop(slot);
                drop(old);
                return Poll::Pending;
            }
            drop(slot);
            clone = Some(cx.waker().clone());
        }
    }
}

impl<R> Drop for Receiver<R> {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.receiver_gone = true;
        let left = (slot.value.take(), slot.waker.take());
        drop(slot);
        drop(left);
    }
}
