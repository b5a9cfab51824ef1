//! A line of text over TLS by tokio-rustls, from a client to an echo server and back.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/facade/Cargo.toml --bin tls_echo
//! ```
use std::{error::Error, sync::Arc};
use tokio::{
    io::{self, AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        pki_types::{PrivateKeyDer, ServerName},
    },
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let stream = TlsAcceptor::from(Arc::new(server)).accept(stream).await?;
        let (mut from, mut to) = io::split(stream);
        let copied = io::copy(&mut from, &mut to).await?;
        to.shutdown().await?;
        io::Result::Ok(copied)
    });

    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    let mut stream = TlsConnector::from(Arc::new(client))
        .connect(name, stream)
        .await?;
    stream.write_all(b"a line over TLS\n").await?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    stream.shutdown().await?;
    print!("{line}");
    println!("{} bytes", server.await??);
    Ok(())
}
