//! smol: async-executor's executor, on threads that also drive smol's reactor. The threads run as
//! long as the process, which takes one sample.
use super::{Ask, Http, Rt, Service, Socket, Work, http::serve_async_io, messages::Shared};
use crate::message;
use ::smol::{
    Executor,
    fs::File,
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket, unix::UnixListener},
    stream::StreamExt,
};
use smol_hyper::rt::SmolTimer;
use std::{
    future::{Future, pending},
    io, net,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

static EXECUTOR: Executor<'static> = Executor::new();

pub(crate) struct Smol;

impl Rt for Smol {
    const NAME: &'static str = "smol";
    const PACKAGE: &'static str = "smol";
    const LACKS: &'static [Ask] = &[Ask::Budget, Ask::Stop];

    fn start(workers: usize) -> io::Result<Self> {
        for _ in 0..workers {
            let run = || smol::block_on(EXECUTOR.run(pending()));
            thread::Builder::new().spawn::<_, ()>(run)?;
        }
        Ok(Self)
    }

    fn serve(&self, listener: net::TcpListener, service: Service) -> io::Result<()> {
        let listener = TcpListener::try_from(listener)?;
        self.spawn_outside(serve!(Self, listener, service));
        Ok(())
    }

    fn serve_messages(&self, socket: Socket, work: Work) -> io::Result<()> {
        match socket {
            Socket::Tcp(listener) => {
                let listener = TcpListener::try_from(listener)?;
                let no_delay = "it is a TCP stream";
                self.spawn_outside(async move {
                    serve_messages!(Self, listener, work, |stream| {
                        stream.set_nodelay(true).expect(no_delay);
                    })
                });
            }
            Socket::Unix(listener) => {
                let listener = UnixListener::try_from(listener)?;
                self.spawn_outside(
                    async move { serve_messages!(Self, listener, work, |stream| {}) },
                );
            }
            Socket::Udp(socket) => {
                let socket = UdpSocket::try_from(socket)?;
                self.spawn_outside(async move { serve_datagrams!(socket) });
            }
        }
        Ok(())
    }

    /// smol's sockets are those of async-io.
    fn serve_http(&self, listener: net::TcpListener, http: Http) -> io::Result<()> {
        self.spawn_outside(serve_async_io::<Self, _>(listener, http, SmolTimer::new));
        Ok(())
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.spawn(future).detach();
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        EXECUTOR.spawn(future)
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.spawn(future).detach();
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        EXECUTOR.spawn(future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        smol::future::yield_now()
    }

    fn sleep(span: Duration) -> impl Future<Output = ()> + Send {
        let timer = smol::Timer::after(span);
        async move {
            timer.await;
        }
    }

    async fn interval(start: Instant, period: Duration, mut tick: impl FnMut() -> bool + Send) {
        let mut interval = smol::Timer::interval_at(start + period, period);
        while interval.next().await.is_some() && tick() {}
    }

    fn timeout(
        limit: Duration,
        future: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = bool> + Send {
        let ready = async move {
            future.await;
            true
        };
        let late = async move {
            smol::Timer::after(limit).await;
            false
        };
        smol::future::or(ready, late)
    }

    fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        smol::unblock(work)
    }

    fn read(file: PathBuf) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        smol::fs::read(file)
    }

    fn list(directory: PathBuf) -> impl Future<Output = io::Result<Vec<(PathBuf, bool)>>> + Send {
        list(directory)
    }
}

/// Lists a directory.
async fn list(directory: PathBuf) -> io::Result<Vec<(PathBuf, bool)>> {
    let (mut found, mut entries) = (smol::fs::read_dir(directory).await?, Vec::new());
    while let Some(entry) = found.try_next().await? {
        entries.push((entry.path(), entry.file_type().await?.is_dir()));
    }
    Ok(entries)
}
