//! A reverse proxy of hyper, which keeps its connections to the server behind it.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/facade/Cargo.toml -p services --bin proxy -- \
//!     backend 127.0.0.1:8081
//! cargo run --manifest-path ecosystem/facade/Cargo.toml -p services --bin proxy -- \
//!     127.0.0.1:8081 127.0.0.1:8080
//! wrk -t2 -c50 http://127.0.0.1:8080/
//! ```
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{self, HeaderName},
    http::uri::{Authority, PathAndQuery},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use std::{
    convert::Infallible,
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::timeout;

type Body = Either<Incoming, Full<Bytes>>;

/// The headers that concern one connection.
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["backend", address] => {
            let answers = Arc::new(AtomicU64::new(0));
            serve(address, move |request| hello(request, answers.clone())).await
        }
        [backend, address] => {
            let backend: Authority = backend.parse()?;
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let client = Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_secs(5))
                .build(connector);
            let proxy = move |request| forward(client.clone(), backend.clone(), request);
            serve(address, proxy).await
        }
        _ => Err("proxy BACKEND ADDRESS, or proxy backend ADDRESS".into()),
    }
}

/// Serves until a signal; then ends the connections once their requests are answered.
async fn serve<F, A>(address: &str, answer: F) -> Result<(), Box<dyn Error>>
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    services::listen(address, |stream| {
        let answer = answer.clone();
        let service = service_fn(move |request| {
            let answer = answer(request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        let mut server = http1::Builder::new();
        let server = server
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(300));
        let connection = graceful.watch(server.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A client may leave before its answer.
            if let Err(error) = connection.await
                && !error.is_incomplete_message()
            {
                eprintln!("a connection: {error}");
            }
        });
    })
    .await?;
    timeout(Duration::from_secs(10), graceful.shutdown()).await?;
    Ok(())
}

/// The server behind the proxy. `/count` has the number of its other answers.
async fn hello(request: Request<Incoming>, answers: Arc<AtomicU64>) -> Response<Body> {
    let text = if request.uri().path() == "/count" {
        // Ordering: Relaxed, a count.
        format!("{}\n", answers.load(Relaxed))
    } else {
        // Ordering: Relaxed, as above.
        answers.fetch_add(1, Relaxed);
        "hello\n".repeat(20)
    };
    Response::new(Either::Right(text.into()))
}

/// Sends the request on to the backend.
async fn forward(
    client: Client<HttpConnector, Incoming>,
    backend: Authority,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let path = request.uri().path_and_query().cloned();
    let uri = Uri::builder()
        .scheme("http")
        .authority(backend)
        .path_and_query(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
        .build();
    *request.uri_mut() = uri.expect("each part is valid");
    for name in HOP_BY_HOP {
        request.headers_mut().remove(name);
    }
    match client.request(request).await {
        Ok(mut response) => {
            for name in HOP_BY_HOP {
                response.headers_mut().remove(name);
            }
            response.map(Either::Left)
        }
        Err(error) => {
            eprintln!("the backend: {error}");
            let mut response = Response::new(Either::Right("the backend failed\n".into()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}
