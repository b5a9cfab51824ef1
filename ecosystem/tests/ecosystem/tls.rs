//! `tls`: hello over TLS, to hyper-rustls over our connector and to curl.
use crate::program::{Server, expect_curl, run, stdout};
use std::{
    env, fs,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    process,
};

/// The certificate that the program writes. It is removed at the end.
struct Certificate(PathBuf);

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn tls_client_is_answered_and_plain_one_is_not() {
    let name = format!("selvedge-tls-{}.pem", process::id());
    let certificate = Certificate(env::temp_dir().join(name));
    let file = certificate.0.to_str().unwrap();
    let server = Server::start(env!("CARGO_BIN_EXE_tls"), &["127.0.0.1:0", file]);
    // A handshake that never goes on is in a task of its own: it does not stop the others.
    let mut stuck = TcpStream::connect(&server.address).unwrap();
    stuck.write_all(&[22, 3, 1]).unwrap();

    let url = format!("https://{}/", server.address);
    let client = env!("CARGO_BIN_EXE_http_client");
    let output = run(client, &["--cacert", file, &url]);
    assert_eq!(stdout(&output), format!("200 6 {url}\n"));
    let output = run(client, &[&url]);
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("UnknownIssuer"), "{errors}");
    expect_curl(&["--cacert", file, &url], "hello\n");

    // A client without TLS gets an alert at most, and is closed.
    let mut plain = TcpStream::connect(&server.address).unwrap();
    plain
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));

    // A shutdown would wait for it, as for each connection.
    drop(stuck);
    server.stop();
}
