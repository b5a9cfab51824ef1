//! hyper-util's client over our connector, against our server.
mod common;

use bytes::Bytes;
use common::Server;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Uri, Version};
use hyper_util::client::legacy::{Client, Error};
use selvedge::time;
use selvedge_hyper::{Attempts, ConnectError, Connector, client, client_builder};
use std::{
    error::Error as _,
    io::ErrorKind,
    net,
    sync::{atomic::Ordering::SeqCst, mpsc},
    time::Duration,
};
use tower_service::Service;

type Posting = Client<Connector, Full<Bytes>>;

async fn echo(client: &Posting, server: &Server, body: String) -> (Version, String) {
    let request = Request::post(format!("http://{}/echo", server.address));
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let response = client.request(request).await.unwrap();
    let version = response.version();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (version, String::from_utf8(body.to_vec()).unwrap())
}

fn connect_error(error: &Error) -> &ConnectError {
    assert!(error.is_connect(), "{error:?}");
    error.source().unwrap().downcast_ref().unwrap()
}

// Fails if connections are not given back to the pool. A connection's task gives the connection
// back some time after the response, so the next request may find the pool empty. Only a failing
// test makes 10,000 requests.
#[test]
fn kept_connection_takes_a_later_request() {
    let server = Server::new();
    server.runtime.block_on(async {
        let client: Posting = client();
        for n in 0..10_000 {
            let (version, body) = echo(&client, &server, n.to_string()).await;
            assert_eq!((version, body), (Version::HTTP_11, n.to_string()));
            if server.state.made.load(SeqCst) <= n {
                return;
            }
        }
        panic!("each request had a connection of its own");
    });
    server.end().unwrap();
}

// Fails if the executor does not run the connections' tasks side by side.
#[test]
fn requests_at_once_have_a_connection_each() {
    const COUNT: usize = 20;
    let server = Server::new();
    server.runtime.block_on(async {
        let client: Posting = client();
        let mut requests = selvedge::JoinSet::new();
        for _ in 0..COUNT {
            let request = client.get(format!("http://{}/wait", server.address).parse().unwrap());
            requests.spawn(async move {
                let response = request.await.unwrap();
                response.into_body().collect().await.unwrap().to_bytes()
            });
        }
        for _ in 0..COUNT {
            server.state.begun.1.recv().await.unwrap();
        }
        for _ in 0..COUNT {
            server.state.gate.0.send(()).await.unwrap();
        }
        for body in requests.join_all().await {
            assert_eq!(body, "waited");
        }
        assert_eq!(server.state.most.load(SeqCst), COUNT);
    });
    server.end().unwrap();
}

// Fails if the pool does not use our timer, or if our timer's clock is not that of the runtime.
#[test]
fn idle_connection_of_the_pool_is_closed() {
    let server = Server::with(|serve| serve.header_read_timeout(None));
    let client: Posting = client_builder()
        .pool_idle_timeout(Duration::from_secs(10))
        .build(Connector::new());
    server.runtime.block_on(async {
        let body = echo(&client, &server, "a".into()).await.1;
        assert_eq!(body, "a");
        time::pause();
        // The clock jumps while everything waits. Only a failing test sleeps 1,000 times.
        for _ in 0..1_000 {
            time::sleep(Duration::from_secs(1)).await;
            if server.state.open.load(SeqCst) == 0 {
                return;
            }
        }
        panic!("the connection is still open");
    });
    server.end().unwrap();
}

#[cfg(feature = "http2")]
#[test]
fn http2_requests_share_a_connection() {
    let server = Server::with(|serve| serve.http2_only(|http2| http2));
    server.runtime.block_on(async {
        let client: Posting = client_builder().http2_only(true).build(Connector::new());
        assert_eq!(echo(&client, &server, "first".into()).await.1, "first");
        let requests = (0..50).map(|n| echo(&client, &server, n.to_string()));
        for (n, request) in requests.enumerate() {
            assert_eq!(request.await, (Version::HTTP_2, n.to_string()));
        }
        assert_eq!(server.state.made.load(SeqCst), 1);
    });
    server.end().unwrap();
}

// Fails if the thread that makes the lookup does not wake the task.
#[test]
fn host_by_name_is_looked_up() {
    let server = Server::new();
    server.runtime.block_on(async {
        let uri = format!("http://localhost:{}/", server.address.port());
        let response = client::<Full<Bytes>>().get(uri.parse().unwrap()).await;
        assert_eq!(response.unwrap().status(), 200);
    });
    server.end().unwrap();
}

#[test]
fn address_in_brackets_is_of_ipv6() {
    let runtime = selvedge::Runtime::new().unwrap();
    runtime.block_on(async {
        let Ok(listener) = net::TcpListener::bind("[::1]:0") else {
            // Containers often have no IPv6: then the attempt to connect fails.
            let uri = Uri::from_static("http://[::1]:9/");
            let error = Connector::new().call(uri).await.unwrap_err();
            assert!(matches!(error, ConnectError::Connect(..)), "{error:?}");
            return;
        };
        let address = listener.local_addr().unwrap();
        let uri = format!("http://{address}/").parse().unwrap();
        let io = Connector::new().call(uri).await.unwrap();
        assert_eq!(io.inner().peer_addr().unwrap(), address);
        assert!(io.inner().nodelay().unwrap());
    });
}

#[test]
fn errors_say_which_step_failed() {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = listener.local_addr().unwrap();
    drop(listener);
    let runtime = selvedge::Runtime::new().unwrap();
    runtime.block_on(async {
        let client: Posting = client();
        let get = async |uri: String| client.get(uri.parse().unwrap()).await.unwrap_err();

        let error = get(format!("http://{unused}/")).await;
        let error = connect_error(&error);
        let ConnectError::Connect(_, attempts) = error else {
            panic!("{error:?}");
        };
        let refused = attempts.last_error().unwrap();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let named = error.source().unwrap().to_string();
        assert_eq!(named, format!("{unused}: {refused}"));

        let error = get(format!("https://{unused}/")).await;
        assert!(matches!(connect_error(&error), ConnectError::Scheme(uri) if uri.port().is_some()));

        // A label of more than 63 letters: no system asks a server for it.
        let error = get(format!("http://{}.invalid/", "a".repeat(64))).await;
        let error = connect_error(&error);
        assert!(matches!(error, ConnectError::Lookup(..)), "{error:?}");

        let error = Connector::new().call(Uri::from_static("/a")).await;
        assert!(matches!(error.unwrap_err(), ConnectError::Host(uri) if uri == "/a"));

        for uri in ["http://user:1@a:65536/", "http://[::1]:99999/"] {
            let error = Connector::new().call(Uri::from_static(uri)).await;
            let error = error.unwrap_err();
            assert!(matches!(error, ConnectError::Port(_)), "{error:?}");
        }
        // An empty port is the default one.
        let error = Connector::new().call(Uri::from_static("http://[::1]:/"));
        assert!(!matches!(error.await, Err(ConnectError::Port(_))));
    });
}

// Fails if a report of the error and its sources has the inner error twice, or if a log has the
// URI's password.
#[test]
fn connect_error_hides_the_password_and_repeats_nothing() {
    let uri = || Uri::from_static("http://user:secret@a.test:81/secret?secret");
    let inner = || std::io::Error::other("inner");
    let inners = || {
        [(([192, 0, 2, 1], 81).into(), Some(inner()))]
            .into_iter()
            .collect()
    };
    let limit = Duration::from_secs(1);
    let errors = [
        ConnectError::Scheme(uri()),
        ConnectError::Host(uri()),
        ConnectError::Port(uri()),
        ConnectError::Lookup(uri(), inner()),
        ConnectError::Connect(uri(), inners()),
        ConnectError::TimedOut(uri(), limit, inners()),
        ConnectError::TimedOut(uri(), limit, Attempts::default()),
    ];
    for error in &errors {
        let (shown, debug) = (error.to_string(), format!("{error:?}"));
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!shown.contains("inner"), "{shown}");
        assert!(!debug.contains("secret"), "{debug}");
        assert!(debug.contains("http://a.test:81"), "{debug}");
        assert_eq!(debug.contains("inner"), error.source().is_some(), "{debug}");
    }
    assert_eq!(errors[3].source().unwrap().to_string(), "inner");
    assert_eq!(
        errors[4].source().unwrap().to_string(),
        "192.0.2.1:81: inner"
    );
    let empty = "TimedOut(http://a.test:81, 1s, Attempts([]))";
    assert_eq!(format!("{:?}", errors[6]), empty);
}

// Fails if an endless limit is added to the present time.
#[test]
fn endless_connect_timeout_connects() {
    let server = Server::new();
    server.runtime.block_on(async {
        let mut connector = Connector::new().connect_timeout(Duration::MAX);
        let uri = format!("http://{}/", server.address).parse().unwrap();
        drop(connector.call(uri).await.unwrap());
    });
    server.end().unwrap();
}

// Another job keeps the only thread for lookups, so that nothing but the limit ends the attempt.
#[test]
fn connect_timeout_ends_the_attempt() {
    let builder = selvedge::Builder::new().blocking_threads(1);
    let runtime = builder.build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let taken = runtime.spawn_blocking(move || {
        let _ = released.recv();
    });
    let limit = Duration::from_millis(10);
    runtime.block_on(async {
        let mut connector = Connector::new().connect_timeout(limit);
        let error = connector
            .call(Uri::from_static("http://localhost:9/"))
            .await;
        let error = error.unwrap_err();
        let is_timeout = matches!(error, ConnectError::TimedOut(_, of, _) if of == limit);
        assert!(is_timeout, "{error:?}");
    });
    drop(release);
    runtime.block_on(taken).unwrap();
}

// The listener has an IPv4 address only. Fails if a refusal of the IPv6 address ends the attempts.
#[test]
fn name_of_both_families_reaches_the_one_that_listens() {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    selvedge::Runtime::new().unwrap().block_on(async {
        let uri = format!("http://localhost:{port}/").parse().unwrap();
        let io = Connector::new().call(uri).await.unwrap();
        assert!(io.inner().peer_addr().unwrap().is_ipv4());
    });
}
