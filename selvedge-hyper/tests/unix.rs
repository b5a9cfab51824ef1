//! A server on a Unix socket.
mod common;

use bytes::Bytes;
use common::read_response;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, service::service_fn};
use selvedge::{Runtime, net::UnixListener};
use std::{
    convert::Infallible,
    io::{BufReader, Write},
    os::unix::net::UnixStream,
};

#[test]
fn unix_socket_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let runtime = Runtime::new().unwrap();
    let served = runtime.block_on(async {
        let listener = UnixListener::bind(&path).unwrap();
        let client = selvedge::spawn_blocking(move || {
            let mut stream = BufReader::new(UnixStream::connect(path).unwrap());
            for _ in 0..2 {
                let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
                stream.get_mut().write_all(request).unwrap();
                assert_eq!(read_response(&mut stream).1, "hello");
            }
        });
        let service = service_fn(|_: Request<Incoming>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
        });
        selvedge_hyper::serve(listener, service)
            .shutdown_on(async { client.await.unwrap() })
            .await
    });
    served.unwrap();
}
