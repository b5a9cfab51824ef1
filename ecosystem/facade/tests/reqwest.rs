//! reqwest as a client of axum: redirects, cookies, a proxy, and HTTP/2 from the first byte.
use axum::{
    Router,
    extract::{Path, State},
    http::{
        HeaderMap, StatusCode,
        header::{COOKIE, LOCATION, SET_COOKIE},
    },
    response::IntoResponse,
    routing::{get, post},
    serve::ListenerExt,
};
use reqwest::{Client, ClientBuilder, Proxy, Version, redirect::Policy};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{self, AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::sleep,
};

#[derive(Clone, Default)]
struct Counts {
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

/// Starts the server, which ends with the test's runtime.
async fn start() -> (SocketAddr, Counts) {
    let counts = Counts::default();
    let app = Router::new()
        .route("/steps/{left}", get(step))
        .route(
            "/moved",
            post(async || (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/echo")])),
        )
        .route("/echo", post(async |body: String| body))
        .route(
            "/login",
            get(async || [(SET_COOKIE, "user=ada; Path=/; HttpOnly")]),
        )
        .route("/cookies", get(cookies))
        .route("/slow", get(async || sleep(Duration::from_secs(600)).await))
        .with_state(counts.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = counts.connections.clone();
    let listener = listener.tap_io(move |_| {
        connections.fetch_add(1, Relaxed);
    });
    tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
    (address, counts)
}

/// Redirects to one step less.
async fn step(State(counts): State<Counts>, Path(left): Path<usize>) -> impl IntoResponse {
    counts.requests.fetch_add(1, Relaxed);
    match left.checked_sub(1) {
        Some(next) => (StatusCode::FOUND, [(LOCATION, format!("/steps/{next}"))]).into_response(),
        None => "arrived".into_response(),
    }
}

async fn cookies(headers: HeaderMap) -> String {
    let cookie = headers.get(COOKIE).map(|cookie| cookie.to_str().unwrap());
    cookie.unwrap_or("none").to_owned()
}

fn client() -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(60))
}

async fn text(client: &Client, url: &str) -> String {
    client.get(url).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn redirects_are_followed_up_to_the_limit() {
    let (server, counts) = start().await;
    let url = format!("http://{server}/steps/5");
    let limited = client().redirect(Policy::limited(5)).build().unwrap();
    let answer = limited.get(&url).send().await.unwrap();
    assert_eq!(answer.url().path(), "/steps/0");
    assert_eq!(answer.text().await.unwrap(), "arrived");
    assert_eq!(counts.requests.load(Relaxed), 6);

    let limited = client().redirect(Policy::limited(3)).build().unwrap();
    let error = limited.get(&url).send().await.unwrap_err();
    assert!(error.is_redirect(), "{error}");
    assert_eq!(counts.requests.load(Relaxed), 6 + 4);

    // A redirect of this kind repeats the method and the body.
    let moved = limited.post(format!("http://{server}/moved"));
    let answer = moved.body("the body").send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "the body");
}

#[tokio::test]
async fn cookie_store_sends_the_cookies_of_its_host() {
    let (server, _) = start().await;
    let (login, cookies) = (
        format!("http://{server}/login"),
        format!("http://{server}/cookies"),
    );
    for (store, expected) in [(true, "user=ada"), (false, "none")] {
        let client = client().cookie_store(store).build().unwrap();
        assert_eq!(text(&client, &cookies).await, "none");
        text(&client, &login).await;
        assert_eq!(text(&client, &cookies).await, expected);
    }
}

/// A name that no resolver knows shows that the request went to the proxy.
#[tokio::test]
async fn proxy_forwards_a_request_for_an_unknown_host() {
    let (server, _) = start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let forwards = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        forward(stream, server).await.unwrap()
    });
    let proxy = Proxy::http(format!("http://{proxy}")).unwrap();
    let proxy = proxy.basic_auth("ada", "secret");
    let client = client().proxy(proxy).build().unwrap();
    let answer = text(&client, "http://backend.invalid/steps/0").await;
    assert_eq!(answer, "arrived");
    drop(client);
    let head = forwards.await.unwrap();
    assert_eq!(head[0], "GET http://backend.invalid/steps/0 HTTP/1.1");
    // The name and the password in base64.
    let authorized = "proxy-authorization: Basic YWRhOnNlY3JldA==";
    assert!(
        head.iter()
            .any(|line| line.eq_ignore_ascii_case(authorized)),
        "{head:?}"
    );
}

/// Sends the one connection on to `server`, and returns the lines of the first request's head.
async fn forward(stream: TcpStream, server: SocketAddr) -> io::Result<Vec<String>> {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let mut backend = TcpStream::connect(server).await?;
    let first = head[0].replacen("http://backend.invalid", "", 1);
    let origin = [&first].into_iter().chain(&head[1..]);
    for line in origin {
        backend.write_all(format!("{line}\r\n").as_bytes()).await?;
    }
    backend.write_all(b"\r\n").await?;
    io::copy_bidirectional(&mut stream, &mut backend).await?;
    Ok(head)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_with_prior_knowledge_shares_a_connection() {
    let (server, counts) = start().await;
    let client = client().http2_prior_knowledge().build().unwrap();
    // The first request makes the connection: before that, each would make one.
    let url = format!("http://{server}/steps/1");
    assert_eq!(text(&client, &url).await, "arrived");
    let requests: Vec<_> = (0..100)
        .map(|_| {
            let request = client.get(&url).send();
            tokio::spawn(async {
                let answer = request.await.unwrap();
                (answer.version(), answer.text().await.unwrap())
            })
        })
        .collect();
    for request in requests {
        assert_eq!(
            request.await.unwrap(),
            (Version::HTTP_2, "arrived".to_owned())
        );
    }
    assert_eq!(counts.requests.load(Relaxed), 2 * 101);
    assert_eq!(counts.connections.load(Relaxed), 1);
}

#[tokio::test]
async fn late_answer_is_a_timeout() {
    let (server, _) = start().await;
    let request = client()
        .build()
        .unwrap()
        .get(format!("http://{server}/slow"));
    let late = request.timeout(Duration::from_millis(50)).send().await;
    assert!(late.unwrap_err().is_timeout());
}
