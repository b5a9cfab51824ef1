//! A wait by a timer of a socket's own driver.
use crate::{
    driver::WeakDriver,
    reactor::shut_down_error,
    time::{Sleep, sleep},
};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

/// A wait of one task, which begins when an operation has failed.
#[derive(Default)]
pub(crate) struct Pause {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Pause {
    /// Begins a wait. It replaces one that has not ended.
    pub(crate) fn begin(&mut self, span: Duration) {
        self.sleep = Some(Box::pin(sleep(span)));
    }

    /// Polls whether the wait has ended, or none has begun.
    ///
    /// The timer is one of `driver`, the socket's driver: a task may use a socket without a current
    /// driver. The socket does not keep the driver alive. A task that waits would keep it forever,
    /// as the driver has the task's waker.
    pub(crate) fn poll(
        &mut self,
        driver: &WeakDriver,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(sleep) = &mut self.sleep {
            let driver = driver.upgrade().ok_or_else(shut_down_error)?;
            let polled = driver.scope(None, || sleep.as_mut().try_poll(cx.waker()));
            ready!(polled.map_err(|_| shut_down_error())?);
            self.sleep = None;
        }
        Poll::Ready(Ok(()))
    }
}
