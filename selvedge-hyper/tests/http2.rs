//! Tests of HTTP/2, with hyper's own client over selvedge's sockets.
mod common;

use bytes::Bytes;
use common::Server;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http2};
use selvedge::net::TcpStream;
use selvedge_hyper::{SelvedgeExecutor, SelvedgeIo, SelvedgeTimer};
use std::{sync::atomic::Ordering::SeqCst, time::Duration};

fn post(body: String) -> Request<Full<Bytes>> {
    let request = Request::post("http://a/echo");
    request.body(Full::new(Bytes::from(body))).unwrap()
}

#[test]
fn hundred_streams_share_a_connection_until_the_shutdown() {
    let server = Server::with(|serve| {
        serve.http2_only(|http2| http2.keep_alive_interval(Duration::from_secs(60)))
    });
    server.runtime.block_on(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut builder = http2::Builder::new(SelvedgeExecutor);
        builder.timer(SelvedgeTimer);
        let (sender, connection) = builder.handshake(SelvedgeIo::new(stream)).await.unwrap();
        let connection = selvedge::spawn(connection);
        let mut streams = selvedge::JoinSet::new();
        for n in 0..100 {
            let mut sender = sender.clone();
            streams.spawn(async move {
                let response = sender.send_request(post(n.to_string())).await.unwrap();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(body, n.to_string());
            });
        }
        streams.join_all().await;
        assert_eq!(server.state.made.load(SeqCst), 1);

        // The server finishes a stream in progress, though it shuts down.
        let mut last = sender.clone();
        let wait = Request::get("http://a/wait").body(Full::default()).unwrap();
        let waiting = selvedge::spawn(async move { last.send_request(wait).await });
        server.state.begun.1.recv().await.unwrap();
        server.stop();
        server.state.gate.0.send(()).await.unwrap();
        let response = waiting.await.unwrap().unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "waited");
        drop(sender);
        connection.await.unwrap().unwrap();
    });
    server.end().unwrap();
}
