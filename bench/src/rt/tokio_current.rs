//! tokio's current-thread runtime, on a thread of its own beside the measuring thread.
use super::{
    Http, Rt, Service, Socket, Work,
    tokio::{interval, list, proceed, serve_http_with, serve_messages_with, serve_with},
};
use std::{
    future::Future,
    io,
    net::TcpListener,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
};

pub(crate) struct CurrentThread {
    handle: Handle,
    /// The sender's drop ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Rt for CurrentThread {
    const NAME: &'static str = "tokio-current-thread";
    const PACKAGE: &'static str = "tokio";
    const PARALLEL: bool = false;

    /// Starts one thread, whatever number of workers is requested.
    fn start(_: usize) -> io::Result<Self> {
        Self::of(Builder::new_current_thread().build()?)
    }

    fn start_with_timers(_: usize) -> io::Result<Self> {
        Self::of(Builder::new_current_thread().enable_time().build()?)
    }

    fn start_with_net(_: usize) -> io::Result<Self> {
        Self::of(Builder::new_current_thread().enable_all().build()?)
    }

    fn serve(&self, listener: TcpListener, service: Service) -> io::Result<()> {
        self.spawn_outside(serve_with::<Self>(listener, service));
        Ok(())
    }

    fn serve_messages(&self, socket: Socket, work: Work) -> io::Result<()> {
        self.spawn_outside(serve_messages_with::<Self>(socket, work));
        Ok(())
    }

    fn serve_http(&self, listener: TcpListener, http: Http) -> io::Result<()> {
        self.spawn_outside(serve_http_with::<Self>(listener, http));
        Ok(())
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(future));
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let task = self.handle.spawn(future);
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

    fn proceed(cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        proceed(cx)
    }
}

impl CurrentThread {
    /// Runs a runtime on a thread of its own.
    fn of(runtime: Runtime) -> io::Result<Self> {
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().spawn(move || {
            // The sender is dropped and never sends, so `stopped` always ends with an error.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for CurrentThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no task panics in it");
        }
    }
}
