//! Says hello over TLS, until Ctrl-C, with a certificate for `localhost` that the program makes.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin tls -- 127.0.0.1:8443 localhost.pem
//! curl --cacert localhost.pem https://localhost:8443/
//! ```
//!
//! tokio-rustls runs over our `TcpStream`: the feature `tokio` of `selvedge` gives that stream
//! tokio's I/O traits.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use selvedge::{
    Runtime,
    net::{TcpListener, TcpStream},
};
use selvedge_hyper::{Listener, serve};
use std::{
    convert::Infallible,
    error::Error,
    fs,
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    process::ExitCode,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio_rustls::{Accept, TlsAcceptor, server::TlsStream};

const HELP: &str = "\
Says hello over TLS, with a certificate for localhost that it makes. Ctrl-C ends it.

Usage: tls [ADDRESS [FILE]]

ADDRESS  where it listens [127.0.0.1:8443]
FILE     where it writes the certificate [localhost.pem]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 2)?;
        let mut arguments = arguments.into_iter();
        let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8443".into());
        let file = arguments.next().unwrap_or_else(|| "localhost.pem".into());
        run(address, &file)
    })
}

fn run(address: String, file: &str) -> Result<(), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(["localhost".into(), "127.0.0.1".into()])?;
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)?;
    config.alpn_protocols = vec![b"http/1.1".into()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        // The file is written after the bind. If the bind fails, another program at this address
        // may still use the old certificate.
        fs::write(file, certified.cert.pem()).map_err(|error| format!("{file}: {error}"))?;
        println!("listens on {}", listener.local_addr()?);
        serve(Tls { listener, acceptor }, service_fn(hello))
            .shutdown_on_ctrl_c()
            .await?;
        Ok(())
    })
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello\n"))))
}

/// Accepts TCP connections, and leaves the handshake to each connection's task.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = Io;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Io>> {
        let (stream, _) = ready!(self.listener.poll_accept(cx))?;
        // A connection for which this fails is slower, but works.
        let _ = stream.set_nodelay(true);
        Poll::Ready(Ok(Io::Handshake(self.acceptor.accept(stream))))
    }
}

/// A connection that makes the handshake when it is first read. So the handshake runs in the
/// connection's task, and its time counts towards the limit for the head of the first request.
enum Io {
    Handshake(Accept<TcpStream>),
    Open(TokioIo<TlsStream<TcpStream>>),
}

impl Io {
    fn poll_open(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut TokioIo<TlsStream<TcpStream>>>>> {
        let io = self.get_mut();
        if let Io::Handshake(accept) = io {
            let stream = ready!(Pin::new(accept).poll(cx))?;
            *io = Io::Open(TokioIo::new(stream));
        }
        match io {
            Io::Open(stream) => Poll::Ready(Ok(Pin::new(stream))),
            Io::Handshake(_) => unreachable!("it was replaced"),
        }
    }
}

impl Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(cx))?.poll_read(cx, to)
    }
}

impl Write for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?.poll_write(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?.poll_write_vectored(cx, from)
    }

    /// Until the handshake is done there is nothing to flush, and nothing for `poll_shutdown` to
    /// end.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Open(stream) => Pin::new(stream).poll_flush(cx),
            Io::Handshake(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Open(stream) => Pin::new(stream).poll_shutdown(cx),
            Io::Handshake(_) => Poll::Ready(Ok(())),
        }
    }
}
