//! The task of a connection: hyper's future, which the server's shutdown can end.
use crate::{
    connections::{Guard, Stage},
    executor::spawned,
    panicked::panicked,
};
use hyper::{
    body::{Body, Incoming},
    rt::{Read, Write},
    server::conn::http1,
    service::HttpService,
};
use pin_project_lite::pin_project;
use std::{
    error::Error,
    future::Future,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A function that receives the errors of connections.
pub(crate) type OnError = Arc<dyn Fn(hyper::Error) + Send + Sync>;

/// A connection that can end gracefully: it answers its requests and takes no more.
pub(crate) trait Graceful: Future<Output = hyper::Result<()>> {
    /// Begins the graceful end.
    fn close(self: Pin<&mut Self>);
}

impl<I, S> Graceful for http1::UpgradeableConnection<I, S>
where
    I: Read + Write + Unpin + Send + 'static,
    S: HttpService<Incoming, Error: Into<Box<dyn Error + Send + Sync>>>,
    S::ResBody: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

#[cfg(feature = "http2")]
impl<I, S, E> Graceful for hyper::server::conn::http2::Connection<I, S, E>
where
    I: Read + Write + Unpin + 'static,
    S: HttpService<Incoming, Error: Into<Box<dyn Error + Send + Sync>>>,
    S::ResBody: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, S::ResBody>,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

pin_project! {
    /// The task's future. It drops the connection before the guard. So the descriptor is closed
    /// before the count of open connections goes down.
    pub(crate) struct Connection<C> {
        #[pin]
        connection: C,
        is_closing: bool,
        // True if the last poll of `connection` spawned tasks for requests.
        has_spawned: bool,
        on_error: Option<OnError>,
        guard: Guard,
    }
}

impl<C> Connection<C> {
    pub(crate) fn new(connection: C, guard: Guard, on_error: Option<OnError>) -> Self {
        Self {
            connection,
            is_closing: false,
            has_spawned: false,
            on_error,
            guard,
        }
    }
}

impl<C: Graceful> Future for Connection<C> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        match this.guard.poll_stage(cx) {
            Stage::Open => {}
            Stage::Closing if *this.is_closing => {}
            Stage::Closing => {
                *this.is_closing = true;
                this.connection.as_mut().close();
            }
            Stage::Aborted => return Poll::Ready(()),
        }
        if *this.has_spawned {
            // The first answer wakes this task, perhaps before the tasks of the other requests have
            // run. To send all answers by one write, this task wakes itself here: it is then queued
            // behind the tasks of the requests, and its next poll comes after theirs.
            *this.has_spawned = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let spawned_before = spawned();
        // A panic is caught to report it, and resumed: so the task ends with the panic.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| this.connection.poll(cx)));
        let ended = polled.unwrap_or_else(|payload| {
            let error = this.on_error.as_ref().and_then(|_| panicked(&*payload));
            if let Some((on_error, error)) = this.on_error.as_ref().zip(error) {
                on_error(error);
            }
            panic::resume_unwind(payload)
        });
        *this.has_spawned = spawned() != spawned_before;
        let ended = ready!(ended);
        if let (Err(error), Some(on_error)) = (ended, this.on_error) {
            on_error(error);
        }
        Poll::Ready(())
    }
}
