//! `websocket`: an echo server by tokio-tungstenite.
use crate::program::Server;
use futures_util::{SinkExt, StreamExt};
use selvedge::net::TcpStream;
use tokio_tungstenite::{client_async, tungstenite::Message};

/// Sends messages of several sizes to a WebSocket, and expects them back.
pub fn expect_echo(address: &str, path: &str) {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(address).await.unwrap();
        let url = format!("ws://{address}{path}");
        let (mut socket, _) = client_async(url, stream).await.unwrap();
        for size in [0, 1, 125, 126, 70_000, 1 << 20] {
            let message = Message::binary(vec![7; size]);
            socket.send(message.clone()).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), message);
        }
        let message = Message::text("hello");
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
        socket.close(None).await.unwrap();
        // The server closes, too: nothing but its close follows.
        while let Some(message) = socket.next().await {
            assert!(message.unwrap().is_close());
        }
    });
}

#[test]
fn websocket_without_an_http_server_echoes() {
    let server = Server::start(env!("CARGO_BIN_EXE_websocket"), &["127.0.0.1:0"]);
    expect_echo(&server.address, "/");
    server.stop();
}
