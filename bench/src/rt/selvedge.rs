//! Our runtime.
use super::{
    Ask, Http, Rt, Service, Socket, Work,
    http::{HEAD, answer, serve_async_io},
    messages::Shared,
};
use crate::message;
use ::futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use ::selvedge::{
    Wait, fs,
    net::{Polling, TcpListener, UdpSocket, UnixListener},
};
use hyper::service::service_fn;
use selvedge_hyper::SelvedgeTimer;
use std::{
    env,
    future::Future,
    io, net,
    path::PathBuf,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// Files that are sent from their start to their end. smol's files are always read ahead, ours
/// where the program asks for it.
struct File;

impl File {
    async fn open(path: &PathBuf) -> io::Result<fs::File> {
        fs::File::options()
            .read(true)
            .read_ahead(true)
            .open(path)
            .await
    }
}

pub(crate) struct Selvedge(selvedge::Runtime);

impl Rt for Selvedge {
    const NAME: &'static str = "selvedge";
    const PACKAGE: &'static str = "selvedge";

    fn start(workers: usize) -> io::Result<Self> {
        selvedge::Builder::new().workers(workers).build().map(Self)
    }

    /// The environment variables `BENCH_POLLER` and `BENCH_WAIT` name another way to poll and
    /// another rule for waits, so that these can be compared.
    fn start_with_net(workers: usize) -> io::Result<Self> {
        let polling = match env::var("BENCH_POLLER").as_deref() {
            Ok("thread") => Polling::Thread,
            _ => Polling::IdleWorker,
        };
        let wait = match env::var("BENCH_WAIT").as_deref() {
            Ok("latency") => Wait::Latency,
            Ok("power") => Wait::Power,
            _ => Wait::Adaptive,
        };
        let builder = selvedge::Builder::new().workers(workers).wait(wait);
        builder.poller(polling).build().map(Self)
    }

    fn serve(&self, listener: net::TcpListener, service: Service) -> io::Result<()> {
        self.spawn_outside(serve_with(listener, service));
        Ok(())
    }

    fn serve_messages(&self, socket: Socket, work: Work) -> io::Result<()> {
        self.spawn_outside(serve_messages_with(socket, work));
        Ok(())
    }

    fn serve_http(&self, listener: net::TcpListener, http: Http) -> io::Result<()> {
        self.spawn_outside(serve_http_with(listener, http));
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

    fn read(file: PathBuf) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        selvedge::fs::read(file)
    }

    fn list(directory: PathBuf) -> impl Future<Output = io::Result<Vec<(PathBuf, bool)>>> + Send {
        list(directory)
    }

    fn sleep(span: Duration) -> impl Future<Output = ()> + Send {
        selvedge::time::sleep(span)
    }

    async fn interval(start: Instant, period: Duration, mut tick: impl FnMut() -> bool + Send) {
        let mut interval = selvedge::time::interval_at((start + period).into(), period);
        loop {
            interval.tick().await;
            if !tick() {
                break;
            }
        }
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

/// Lists a directory.
async fn list(directory: PathBuf) -> io::Result<Vec<(PathBuf, bool)>> {
    let (mut found, mut entries) = (selvedge::fs::read_dir(directory).await?, Vec::new());
    while let Some(entry) = found.next_entry().await? {
        entries.push((entry.path(), entry.file_type().await?.is_dir()));
    }
    Ok(entries)
}

/// Serves connections.
pub(super) async fn serve_with(listener: net::TcpListener, service: Service) {
    let listener = TcpListener::from_std(listener).expect("it is registered");
    serve!(Selvedge, listener, service).await;
}

/// Serves messages. The tasks of either runtime of ours are spawned in the same way.
pub(super) async fn serve_messages_with(socket: Socket, work: Work) {
    match socket {
        Socket::Tcp(listener) => {
            let listener = TcpListener::from_std(listener).expect("it is registered");
            let no_delay = "it is a TCP stream";
            serve_messages!(Selvedge, listener, work, |stream| {
                stream.set_nodelay(true).expect(no_delay);
            })
        }
        Socket::Unix(listener) => {
            let listener = UnixListener::from_std(listener).expect("it is registered");
            serve_messages!(Selvedge, listener, work, |stream| {})
        }
        Socket::Udp(socket) => {
            let socket = UdpSocket::from_std(socket).expect("it is registered");
            serve_datagrams!(socket)
        }
    }
}

/// Serves HTTP by the loop of `selvedge-hyper`, or by hyper over sockets of async-io.
pub(super) async fn serve_http_with(listener: net::TcpListener, http: Http) {
    if http == Http::Foreign {
        let timer = || SelvedgeTimer;
        return serve_async_io::<Selvedge, _>(listener, http, timer).await;
    }
    let listener = TcpListener::from_std(listener).expect("it is registered");
    let server = selvedge_hyper::serve(listener, service_fn(answer)).header_read_timeout(HEAD);
    let server = match http {
        Http::Two => server.http2_only(|http2| http2),
        _ => server.http1(|http1| http1.pipeline_flush(http == Http::Pipelined)),
    };
    server.await.expect("it serves");
}

/// Our runtime without the budget. The row `http_saturated` compares it with [`Selvedge`].
pub(crate) struct Unlimited(Selvedge);

impl Rt for Unlimited {
    const NAME: &'static str = "selvedge-no-budget";
    const PACKAGE: &'static str = Selvedge::PACKAGE;
    /// Every feature but [`Ask::Hyper`], the only one that `http_saturated` needs.
    const LACKS: &'static [Ask] = &[
        Ask::Tasks,
        Ask::Inside,
        Ask::Join,
        Ask::Fair,
        Ask::Background,
        Ask::Blocking,
        Ask::Budget,
        Ask::Stop,
        Ask::Timers,
        Ask::Net,
        Ask::Http,
        Ask::Foreign,
        Ask::Files,
    ];

    fn start(workers: usize) -> io::Result<Self> {
        let builder = ::selvedge::Builder::new().workers(workers);
        let runtime = builder.budget(::selvedge::Budget::UNLIMITED).build()?;
        Ok(Self(Selvedge(runtime)))
    }

    fn serve_http(&self, listener: net::TcpListener, http: Http) -> io::Result<()> {
        self.0.serve_http(listener, http)
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn_outside(future);
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        self.0.join_outside(future)
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        Selvedge::spawn(future);
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        Selvedge::join(future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        Selvedge::yield_now()
    }
}
