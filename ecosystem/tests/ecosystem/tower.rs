//! The table of tower's middlewares in the README, row by row; and the program `tower`.
//!
//! A middleware that "needs tokio" is expected to panic without it. If such a test fails, the
//! middleware works without tokio, and its row of the table is out of date.
use crate::{
    http::get,
    program::{Server, expect_curl},
};
use selvedge::Runtime;
use std::{
    any::Any,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
use tower::{
    BoxError, Service, ServiceBuilder, ServiceExt, buffer::Buffer, limit::RateLimit,
    load_shed::error::Overloaded, retry::Policy, service_fn, spawn_ready::SpawnReady,
};

const SECOND: Duration = Duration::from_secs(1);

async fn double(n: u32) -> Result<u32, Infallible> {
    Ok(2 * n)
}

#[track_caller]
fn expect_no_tokio<R>(run: impl FnOnce(&Runtime) -> R) {
    let runtime = Runtime::new().unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| drop(run(&runtime)))).unwrap_err();
    let message = text(&*panic);
    let is_of_tokio = message.contains("reactor running") || message.contains("Tokio 1.x");
    assert!(is_of_tokio, "{message}");
}

fn text(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "",
    }
}

#[test]
fn timeout_needs_tokio() {
    expect_no_tokio(|runtime| {
        let service = ServiceBuilder::new().timeout(SECOND).service_fn(double);
        runtime.block_on(service.oneshot(21))
    });
}

#[test]
fn map_future_with_our_timeout_ends_a_late_request() {
    let stuck_at_0 = async |n: u32| match n {
        0 => std::future::pending().await,
        n => Ok::<u32, BoxError>(2 * n),
    };
    let limited = |limit| {
        ServiceBuilder::new()
            .map_future(move |future| async move { selvedge::time::timeout(limit, future).await? })
            .service(service_fn(stuck_at_0))
    };
    Runtime::new().unwrap().block_on(async {
        assert_eq!(limited(600 * SECOND).oneshot(21).await.unwrap(), 42);
        let error = limited(SECOND / 1_000).oneshot(0).await.unwrap_err();
        assert!(error.is::<selvedge::time::Elapsed>(), "{error}");
    });
}

#[test]
fn rate_limit_needs_tokio() {
    let rate = tower::limit::rate::Rate::new(1, SECOND);
    expect_no_tokio(|_| RateLimit::new(service_fn(double), rate));
}

#[test]
fn concurrency_limit_works() {
    let service = ServiceBuilder::new()
        .concurrency_limit(1)
        .service_fn(double);
    Runtime::new().unwrap().block_on(async {
        let calls = (0..100).map(|n| selvedge::spawn(service.clone().oneshot(n)));
        for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(call.await.unwrap().unwrap(), 2 * n as u32);
        }
    });
}

#[test]
fn load_shed_works() {
    let service = ServiceBuilder::new().load_shed().concurrency_limit(1);
    let service = service.service(service_fn(|_: u32| {
        std::future::pending::<Result<(), BoxError>>()
    }));
    Runtime::new().unwrap().block_on(async {
        let (mut first, mut second) = (service.clone(), service);
        let _taken = first.ready().await.unwrap().call(1);
        let error = second.ready().await.unwrap().call(2).await.unwrap_err();
        assert!(error.is::<Overloaded>(), "{error}");
    });
}

#[test]
fn new_buffer_needs_tokio() {
    expect_no_tokio(|_| Buffer::<u32, _>::new(service_fn(double), 4));
}

#[test]
fn pair_of_a_buffer_works() {
    Runtime::new().unwrap().block_on(async {
        let (buffer, worker) = Buffer::pair(service_fn(double), 4);
        let worker = selvedge::spawn(worker);
        let calls = (0..100).map(|n| selvedge::spawn(buffer.clone().oneshot(n)));
        for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(call.await.unwrap().unwrap(), 2 * n as u32);
        }
        drop(buffer);
        worker.await.unwrap();
    });
}

/// A service that is ready at its second poll: `SpawnReady` spawns only for such a one.
#[derive(Default)]
struct Late(bool);

impl Service<u32> for Late {
    type Response = u32;
    type Error = Infallible;
    type Future = std::future::Ready<Result<u32, Infallible>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        if std::mem::replace(&mut self.0, true) {
            return std::task::Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    }

    fn call(&mut self, n: u32) -> Self::Future {
        std::future::ready(Ok(2 * n))
    }
}

#[test]
fn spawn_ready_needs_tokio() {
    expect_no_tokio(|runtime| runtime.block_on(SpawnReady::new(Late::default()).oneshot(1)));
}

/// Retries this many times, without a pause.
#[derive(Clone)]
struct Times(u32);

impl Policy<u32, u32, BoxError> for Times {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut u32, result: &mut Result<u32, BoxError>) -> Option<Self::Future> {
        result.as_ref().err()?;
        self.0 = self.0.checked_sub(1)?;
        Some(std::future::ready(()))
    }

    fn clone_request(&mut self, request: &u32) -> Option<u32> {
        Some(*request)
    }
}

#[test]
fn retry_works() {
    let mut failures = 3;
    let service = service_fn(move |n: u32| {
        failures -= 1;
        std::future::ready(match failures {
            0 => Ok(2 * n),
            _ => Err(BoxError::from("not yet")),
        })
    });
    // The policy's clones count, and so must the service's: a buffer shares it.
    Runtime::new().unwrap().block_on(async {
        let (service, worker) = Buffer::pair(service, 4);
        selvedge::spawn_detached(worker);
        let service = ServiceBuilder::new().retry(Times(2)).service(service);
        assert_eq!(service.oneshot(21).await.unwrap(), 42);
    });
}

// Fails if a middleware of the program needs tokio, or if the limit is not there.
#[test]
fn program_limits_and_times_out() {
    let server = Server::start(env!("CARGO_BIN_EXE_tower"), &["127.0.0.1:0"]);
    assert_eq!(get(&server.url("/")).1, "hello\n");
    assert_eq!(get(&server.url("/slow")).0, 504);
    let code = ["-o", "/dev/null", "-w", "%{http_code}"];
    let url = server.url("/slow");
    expect_curl(&[&code[..], &[url.as_str()]].concat(), "504");
    server.stop();
}
