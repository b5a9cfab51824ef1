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
    /// The length of the wait. `None` if none has begun, or the last one has ended.
    span: Option<Duration>,
    /// The timer, once the wait was polled.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Pause {
    /// Begins a wait, which lasts for `span` from its first poll. The new wait replaces one that
    /// has not ended.
    pub(crate) fn begin(&mut self, span: Duration) {
        self.span = Some(span);
        self.sleep = None;
    }

    /// Polls the wait: ready once the wait has ended, or if none has begun.
    ///
    /// The timer and the clock are those of `driver`, the socket's driver: a task may use a socket
    /// without a current driver, and with the feature `test-util` each driver has a clock of its
    /// own. The socket does not keep the driver alive: otherwise a waiting task would keep it alive
    /// forever, as the driver has the task's waker.
    pub(crate) fn poll(
        &mut self,
        driver: &WeakDriver,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(span) = self.span {
            let driver = driver.upgrade().ok_or_else(shut_down_error)?;
            let polled = driver.scope(None, || {
                let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(span)));
                sleep.as_mut().try_poll(cx.waker())
            });
            ready!(polled.map_err(|_| shut_down_error())?);
            *self = Self::default();
        }
        Poll::Ready(Ok(()))
    }
}
