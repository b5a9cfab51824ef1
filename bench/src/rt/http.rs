//! The parts that hyper's servers share: the service, hyper's settings, and hyper over async-io.
use super::{Http, Rt};
use crate::hello::BODY;
use async_io::Async;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::Incoming,
    rt::{Executor, Read, Timer, Write, bounds::Http2ServerConnExec},
    server::conn::{http1, http2},
    service::service_fn,
};
use smol_hyper::rt::FuturesIo;
use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    hint::spin_loop,
    marker::PhantomData,
    net::TcpListener,
    time::{Duration, Instant},
};

/// The path of requests that take [`SPIN`].
pub(crate) const SPIN_PATH: &str = "/spin";

/// The processor time of a request for [`SPIN_PATH`].
const SPIN: Duration = Duration::from_millis(1);

/// The time limit for a request's head.
pub(super) const HEAD: Duration = Duration::from_secs(30);

/// An answer, as hyper awaits it.
pub(super) type Answer = Ready<Result<Response<Full<Bytes>>, Infallible>>;

/// Answers a request.
pub(super) fn answer(request: Request<Incoming>) -> Answer {
    if request.uri().path() == SPIN_PATH {
        let begun = Instant::now();
        while begun.elapsed() < SPIN {
            spin_loop();
        }
    }
    ready(Ok(Response::new(Full::new(Bytes::from_static(BODY)))))
}

/// Serves a connection in a task. An error ends the connection, as the end of its data does.
pub(super) fn spawn_connection<R: Rt, I, E>(
    http: Http,
    io: I,
    timer: impl Timer + Send + Sync + 'static,
    executor: E,
) where
    I: Read + Write + Unpin + Send + 'static,
    E: Http2ServerConnExec<Answer, Full<Bytes>> + Send + Sync + 'static,
{
    if http == Http::Two {
        let mut http2 = http2::Builder::new(executor);
        http2.timer(timer);
        let connection = http2.serve_connection(io, service_fn(answer));
        R::spawn(async move { drop(connection.await) });
    } else {
        let mut http1 = http1::Builder::new();
        http1.timer(timer).header_read_timeout(HEAD);
        http1.pipeline_flush(http == Http::Pipelined);
        let connection = http1.serve_connection(io, service_fn(answer));
        R::spawn(async move { drop(connection.await) });
    }
}

/// Spawns hyper's futures as tasks of the runtime.
struct On<R>(PhantomData<fn() -> R>);

impl<R> Clone for On<R> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<R: Rt, F: Future<Output = ()> + Send + 'static> Executor<F> for On<R> {
    fn execute(&self, future: F) {
        R::spawn(future);
    }
}

/// Serves connections of async-io on any runtime.
pub(super) async fn serve_async_io<R: Rt, T>(listener: TcpListener, http: Http, timer: fn() -> T)
where
    T: Timer + Send + Sync + 'static,
{
    let listener = Async::<TcpListener>::new_nonblocking(listener).expect("it is registered");
    loop {
        let (stream, _) = listener.accept().await.expect("it accepts");
        (stream.get_ref())
            .set_nodelay(true)
            .expect("it is a TCP stream");
        let executor = On::<R>(PhantomData);
        spawn_connection::<R, _, _>(http, FuturesIo::new(stream), timer(), executor);
    }
}
