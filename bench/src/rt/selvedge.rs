//! Our runtime.
use super::{Rt, Service};
use ::futures::{AsyncReadExt, AsyncWriteExt};
use ::selvedge::net::{Polling, TcpListener};
use std::{
    env,
    future::Future,
    io, net,
    task::{Context, Poll, ready},
    time::Duration,
};

pub(crate) struct Selvedge(selvedge::Runtime);

impl Rt for Selvedge {
    const NAME: &'static str = "selvedge";
    const PACKAGE: &'static str = "selvedge";

    fn start(workers: usize) -> io::Result<Self> {
        selvedge::Builder::new().workers(workers).build().map(Self)
    }

    /// `BENCH_POLLER` names another way to poll, for a comparison of them.
    fn start_with_net(workers: usize) -> io::Result<Self> {
        let polling = match env::var("BENCH_POLLER").as_deref() {
            Ok("every-quota") => Polling::EveryQuota,
            Ok("thread") => Polling::Thread,
            _ => Polling::IdleWorker,
        };
        let builder = selvedge::Builder::new().workers(workers);
        builder.poller(polling).build().map(Self)
    }

    fn serve(&self, listener: net::TcpListener, service: Service) -> io::Result<()> {
        self.spawn_outside(async move {
            let listener = TcpListener::from_std(listener).expect("it is registered");
            serve!(Self, listener, service).await;
        });
        Ok(())
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(future));
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let task = self.0.spawn(future);
        async move { task.await.expect("it doesn't panic") }
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        drop(selvedge::spawn(future));
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let task = selvedge::spawn(future);
        async move { task.await.expect("it doesn't panic") }
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        selvedge::yield_now()
    }

    fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let task = selvedge::spawn_blocking(work);
        async move { task.await.expect("it doesn't panic") }
    }

    fn sleep(span: Duration) -> impl Future<Output = ()> + Send {
        selvedge::time::sleep(span)
    }

    fn timeout(
        limit: Duration,
        future: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = bool> + Send {
        let timeout = selvedge::time::timeout(limit, future);
        async move { timeout.await.is_ok() }
    }

    fn proceed(cx: &mut Context<'_>) -> Poll<()> {
        ready!(coop_budget::poll_proceed(cx)).made_progress();
        Poll::Ready(())
    }
}
