//! tokio's multi-thread runtime. Its drivers are on only in the rows that need them. The functions
//! at the end serve tokio's current-thread runtime too.
use super::{
    Http, Rt, Service, Socket, Work,
    http::{serve_async_io, spawn_connection},
    messages::Shared,
};
use crate::message;
use ::futures::StreamExt;
use ::tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket, UnixListener},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{
    future::Future,
    io, net,
    path::PathBuf,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::runtime::{Builder, Runtime};

pub(crate) struct MultiThread(Runtime);

impl Rt for MultiThread {
    const NAME: &'static str = "tokio";
    const PACKAGE: &'static str = "tokio";

    fn start(workers: usize) -> io::Result<Self> {
        Builder::new_multi_thread()
            .worker_threads(workers)
            .build()
            .map(Self)
    }

    fn start_with_timers(workers: usize) -> io::Result<Self> {
        Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_time()
            .build()
            .map(Self)
    }

    fn start_with_net(workers: usize) -> io::Result<Self> {
        Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build()
            .map(Self)
    }

    fn serve(&self, listener: net::TcpListener, service: Service) -> io::Result<()> {
        self.spawn_outside(serve_with::<Self>(listener, service));
        Ok(())
    }

    fn serve_messages(&self, socket: Socket, work: Work) -> io::Result<()> {
        self.spawn_outside(serve_messages_with::<Self>(socket, work));
        Ok(())
    }

    fn serve_http(&self, listener: net::TcpListener, http: Http) -> io::Result<()> {
        self.spawn_outside(serve_http_with::<Self>(listener, http));
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
        drop(tokio::spawn(future));
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let task = tokio::spawn(future);
        async move { task.await.expect("it doesn't panic") }
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let task = tokio::task::spawn_blocking(work);
        async move { task.await.expect("it doesn't panic") }
    }

    fn read(file: PathBuf) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        tokio::fs::read(file)
    }

    fn list(directory: PathBuf) -> impl Future<Output = io::Result<Vec<(PathBuf, bool)>>> + Send {
        list(directory)
    }

    fn sleep(span: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(span)
    }

    fn interval(
        start: Instant,
        period: Duration,
        tick: impl FnMut() -> bool + Send,
    ) -> impl Future<Output = ()> + Send {
        interval(start, period, tick)
    }

    fn timeout(
        limit: Duration,
        future: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = bool> + Send {
        let timeout = tokio::time::timeout(limit, future);
        async move { timeout.await.is_ok() }
    }

    fn proceed(cx: &mut Context<'_>) -> Poll<()> {
        proceed(cx)
    }
}

/// Charges tokio's budget one operation. Both of tokio's runtimes have that budget.
pub(super) fn proceed(cx: &mut Context<'_>) -> Poll<()> {
    ready!(tokio::task::coop::poll_proceed(cx)).made_progress();
    Poll::Ready(())
}

/// Calls `tick` after each period, on either of tokio's runtimes.
pub(super) async fn interval(
    start: Instant,
    period: Duration,
    mut tick: impl FnMut() -> bool + Send,
) {
    let mut interval = tokio::time::interval_at((start + period).into(), period);
    loop {
        interval.tick().await;
        if !tick() {
            break;
        }
    }
}

/// Lists a directory, on either of tokio's runtimes.
pub(super) async fn list(directory: PathBuf) -> io::Result<Vec<(PathBuf, bool)>> {
    let (mut found, mut entries) = (tokio::fs::read_dir(directory).await?, Vec::new());
    while let Some(entry) = found.next_entry().await? {
        entries.push((entry.path(), entry.file_type().await?.is_dir()));
    }
    Ok(entries)
}

/// Serves connections, on either of tokio's runtimes.
pub(super) async fn serve_with<R: Rt>(listener: net::TcpListener, service: Service) {
    let listener = TcpListener::from_std(listener).expect("it is registered");
    serve!(R, listener, service).await;
}

/// Serves messages, on either of tokio's runtimes.
pub(super) async fn serve_messages_with<R: Rt>(socket: Socket, work: Work) {
    match socket {
        Socket::Tcp(listener) => {
            let listener = TcpListener::from_std(listener).expect("it is registered");
            let no_delay = "it is a TCP stream";
            serve_messages!(R, listener, work, |stream| {
                stream.set_nodelay(true).expect(no_delay);
            })
        }
        Socket::Unix(listener) => {
            let listener = UnixListener::from_std(listener).expect("it is registered");
            serve_messages!(R, listener, work, |stream| {})
        }
        Socket::Udp(socket) => {
            let socket = UdpSocket::from_std(socket).expect("it is registered");
            serve_datagrams!(socket)
        }
    }
}

/// Serves HTTP, on either of tokio's runtimes.
pub(super) async fn serve_http_with<R: Rt>(listener: net::TcpListener, http: Http) {
    if http == Http::Foreign {
        return serve_async_io::<R, _>(listener, http, TokioTimer::new).await;
    }
    let listener = TcpListener::from_std(listener).expect("it is registered");
    loop {
        let (stream, _) = listener.accept().await.expect("it accepts");
        stream.set_nodelay(true).expect("it is a TCP stream");
        let (io, executor) = (TokioIo::new(stream), TokioExecutor::new());
        spawn_connection::<R, _, _>(http, io, TokioTimer::new(), executor);
    }
}
