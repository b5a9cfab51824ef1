//! Serves an axum `Router` on Selvedge until Ctrl-C: a page, and a WebSocket that echoes.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin axum_app -- 127.0.0.1:8080
//! curl http://127.0.0.1:8080/hello/you
//! ```
//!
//! axum's own extractor for WebSockets spawns on tokio. So the handler here uses hyper's upgrade,
//! which returns the `TcpStream` itself.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;

use axum::{
    Router,
    extract::{Path, Request},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use futures_util::{SinkExt, StreamExt};
use hyper::{
    StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE},
};
use hyper_util::service::TowerToHyperService;
use selvedge::{
    Runtime,
    net::{TcpListener, TcpStream},
};
use selvedge_hyper::{SelvedgeIo, serve};
use std::{error::Error, io, process::ExitCode};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{handshake::derive_accept_key, protocol::Role},
};

const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>echo</title>
<input id="message" placeholder="a message" autofocus>
<pre id="echoes"></pre>
<script>
const socket = new WebSocket(`ws://${location.host}/echo`);
socket.onmessage = ({ data }) => { echoes.textContent += data + "\n"; };
message.onchange = () => { socket.send(message.value); message.value = ""; };
</script>
"#;

const HELP: &str = "\
Serves a page and the WebSocket of the page, by axum. Ctrl-C ends it.

Usage: axum_app [ADDRESS]

ADDRESS  where it listens [127.0.0.1:8080]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let address = arguments.into_iter().next();
        Ok(run(address.unwrap_or_else(|| "127.0.0.1:8080".into()))?)
    })
}

fn run(address: String) -> io::Result<()> {
    let app = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/hello/{name}", get(hello))
        .route("/echo", get(upgrade));
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listens on {}", listener.local_addr()?);
        serve(listener, TowerToHyperService::new(app))
            .connection_limit(10_000)
            .shutdown_on_ctrl_c()
            .await
    })
}

async fn hello(Path(name): Path<String>) -> String {
    format!("hello, {name}\n")
}

/// Answers the handshake, and spawns the task that echoes.
async fn upgrade(mut request: Request) -> Response {
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY) else {
        return (StatusCode::BAD_REQUEST, "expected a WebSocket handshake\n").into_response();
    };
    let accept = derive_accept_key(key.as_bytes());
    let upgraded = hyper::upgrade::on(&mut request);
    selvedge::spawn_detached(async {
        let ended: Result<(), Box<dyn Error + Send + Sync>> = async {
            // The WebSocket uses the `TcpStream` directly, without hyper between them.
            let parts = upgraded.await?.downcast::<SelvedgeIo<TcpStream>>();
            let parts = parts.map_err(|_| "the connection is not a plain TCP stream")?;
            echo(parts.io.into_inner(), parts.read_buf.into()).await
        }
        .await;
        if let Err(error) = ended {
            eprintln!("{error}");
        }
    });
    let headers = [
        (CONNECTION, "upgrade".to_owned()),
        (UPGRADE, "websocket".to_owned()),
        (SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Sends each text or binary message back. `early` holds the bytes that hyper read after the
/// handshake.
async fn echo(stream: TcpStream, early: Vec<u8>) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut socket = WebSocketStream::from_partially_read(stream, early, Role::Server, None).await;
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(())
}
