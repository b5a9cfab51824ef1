//! The futures that wait for a [`Notify`].
use super::{Notify, Reason};
use crate::{
    coop::{WaitsOn, poll_proceed},
    waiters::{Waiter, Waiters, drop_waker},
};
use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

/// The low bit of `Wait::seen`, where a generation has none.
const DONE: usize = 1;

/// A wait for a notification. Its future pairs it with the `Notify` that it belongs to.
pub(super) struct Wait {
    /// The generation at the future's creation, with `DONE` once the future has completed.
    seen: usize,
    waiter: Waiter<Reason>,
}

impl Wait {
    #[inline]
    pub(super) fn new(generation: usize) -> Self {
        Self {
            seen: generation,
            waiter: Waiter::new(Reason::None),
        }
    }

    #[inline]
    fn project(self: Pin<&mut Self>) -> (&mut usize, Pin<&Waiter<Reason>>) {
        // SAFETY: neither field is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the waiter is pinned with the wait, and nothing gives another access to it.
        (&mut this.seen, unsafe { Pin::new_unchecked(&this.waiter) })
    }

    /// Polls the wait; without a waker, enables it.
    ///
    /// # Safety
    /// `notify` created the wait. The owner calls `cancel` before the wait ends.
    #[inline]
    unsafe fn poll(self: Pin<&mut Self>, notify: &Notify, waker: Option<&Waker>) -> Poll<()> {
        let (seen, waiter) = self.project();
        if *seen & DONE != 0 {
            return Poll::Ready(());
        }
        let waiters: &Waiters<Reason> = &notify.waiters;
        let polled = if waiter.is_idle() {
            let waker = waker.unwrap_or(Waker::noop());
            // SAFETY: the waiter is idle, and the caller cancels.
            unsafe { first_poll(notify, *seen, waiter, waker) }
        } else {
            match waker {
                // SAFETY: the waiter was pushed to this queue, and the caller owns it.
                Some(waker) => unsafe { waiters.poll(waiter, waker) }.map(drop),
                None if waiter.released().is_some() => Poll::Ready(()),
                None => Poll::Pending,
            }
        };
        if polled.is_ready() {
            *seen |= DONE;
        }
        polled
    }

    #[inline]
    fn poll_with_budget(
        mut self: Pin<&mut Self>,
        notify: &Notify,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if *self.as_mut().project().0 & DONE != 0 {
            return Poll::Ready(());
        }
        let progress = ready!(poll_proceed(cx));
        // SAFETY: both futures pair a wait with its `Notify`, and cancel it in their drop.
        if unsafe { self.poll(notify, Some(cx.waker())) }.is_pending() {
            progress.waits_for(|| WaitsOn::event("a notification of a notify", notify));
            return Poll::Pending;
        }
        progress.made_progress();
        Poll::Ready(())
    }

    /// Ends the wait, and passes on a notification that no poll has seen.
    ///
    /// # Safety
    /// As of `poll`.
    #[inline]
    unsafe fn cancel(self: Pin<&mut Self>, notify: &Notify) {
        let (seen, waiter) = self.project();
        if *seen & DONE != 0 || waiter.is_idle() {
            return;
        }
        *seen |= DONE;
        // SAFETY: the waiter was pushed to this queue, and the caller owns it.
        match unsafe { notify.waiters.remove(waiter) } {
            Some(reason @ (Reason::One | Reason::Last)) => notify.notify(reason),
            Some(Reason::None | Reason::All) | None => {}
        }
    }
}

/// Takes the permit, or sees a newer generation, or pushes the waiter.
///
/// # Safety
/// The waiter is idle and the caller's, who removes it from this queue before it ends.
unsafe fn first_poll(
    notify: &Notify,
    seen: usize,
    waiter: Pin<&Waiter<Reason>>,
    waker: &Waker,
) -> Poll<()> {
    if notify.take(seen).is_ok() {
        return Poll::Ready(());
    }
    let waker = waker.clone();
    let mut locked = notify.waiters.lock();
    if notify.take_or_wait(seen, &locked) {
        drop(locked);
        // Its panic must not lose the permit.
        drop_waker(Some(waker));
        return Poll::Ready(());
    }
    // SAFETY: the waiter is idle, and the caller removes it.
    unsafe { locked.push_back(waiter, waker, Reason::None) };
    Poll::Pending
}

/// The future of [`Notify::notified`]. After it has completed, each further poll is ready.
///
/// ```
/// use std::pin::pin;
/// use task_sync::Notify;
///
/// let notify = Notify::new();
/// let mut notified = pin!(notify.notified());
/// notified.as_mut().enable(); // It is woken from now on, before its first poll.
/// notify.notify_waiters();
/// futures::executor::block_on(notified);
/// ```
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Notified<'a> {
    pub(super) notify: &'a Notify,
    pub(super) wait: Wait,
}

/// The future of [`Notify::notified_owned`]. It is a [`Notified`] that owns a reference to its
/// `Notify`.
///
/// ```
/// use std::{pin::pin, sync::Arc};
/// use task_sync::Notify;
///
/// let notify = Arc::new(Notify::new());
/// let mut notified = pin!(notify.clone().notified_owned());
/// notified.as_mut().enable(); // It is woken from now on, before its first poll.
/// notify.notify_waiters();
/// futures::executor::block_on(notified);
/// ```
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct OwnedNotified {
    pub(super) notify: Arc<Notify>,
    pub(super) wait: Wait,
}

macro_rules! future {
    ($name:ident$(<$a:lifetime>)?, $create:literal) => {
        impl$(<$a>)? $name$(<$a>)? {
            #[inline]
    fn project(self: Pin<&mut Self>) -> (&Notify, Pin<&mut Wait>) {
                // SAFETY: neither field is moved out of `this`.
                let this = unsafe { self.get_unchecked_mut() };
                // SAFETY: the wait is pinned with the future, and nothing else gives access to it.
                (&this.notify, unsafe { Pin::new_unchecked(&mut this.wait) })
            }

            /// Puts the future into the queue, as its first poll does, but without a waker.
            ///
            /// A [`notify_one`](Notify::notify_one) after this call may notify this future. Poll it
            /// nevertheless, so that the task is woken. Returns true if the future is ready: it
            /// took the permit, or was notified.
            ///
            /// With it a task checks a condition between its place in the queue and its wait:
            ///
            /// ```
            /// use std::{pin::pin, sync::Arc, sync::atomic::{AtomicBool, Ordering}};
            /// use task_sync::Notify;
            ///
            /// async fn wait(set: &AtomicBool, notify: &Arc<Notify>) {
            ///     loop {
            #[doc = concat!("        let mut notified = pin!(", $create, ");")]
            ///         notified.as_mut().enable();
            ///         if set.load(Ordering::Acquire) {
            ///             return;
            ///         }
            ///         notified.await;
            ///     }
            /// }
            ///
            /// let (set, notify) = (AtomicBool::new(false), Arc::new(Notify::new()));
            /// std::thread::scope(|threads| {
            ///     threads.spawn(|| futures::executor::block_on(wait(&set, &notify)));
            ///     set.store(true, Ordering::Release);
            ///     notify.notify_one();
            /// });
            /// ```
            pub fn enable(self: Pin<&mut Self>) -> bool {
                let (notify, wait) = self.project();
                // SAFETY: the `Notify` created the wait, and the drop cancels it.
                unsafe { wait.poll(notify, None) }.is_ready()
            }
        }

        impl$(<$a>)? Future for $name$(<$a>)? {
            type Output = ();

            #[inline]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                let (notify, wait) = self.project();
                wait.poll_with_budget(notify, cx)
            }
        }

        impl$(<$a>)? Drop for $name$(<$a>)? {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the future is dropped where it was pinned, if it ever was.
                let this = unsafe { Pin::new_unchecked(self) };
                let (notify, wait) = this.project();
                // SAFETY: the `Notify` created the wait.
                unsafe { wait.cancel(notify) };
            }
        }

        impl$(<$a>)? fmt::Debug for $name$(<$a>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

future!(Notified<'a>, "notify.notified()");
future!(OwnedNotified, "notify.clone().notified_owned()");
