//! `grpc`: a unary call and a stream, by tonic's client over our connector.
use crate::program::{Server, expect_curl, run, stdout};

#[test]
fn calls_return_messages_and_a_stream_of_them() {
    let program = env!("CARGO_BIN_EXE_grpc");
    let server = Server::start(program, &["serve", "127.0.0.1:0"]);
    let output = run(program, &["call", &server.url(""), "you"]);
    let expected = "hello, you\nhello 1, you\nhello 2, you\nhello 3, you\n";
    assert_eq!(stdout(&output), expected);
    let url = server.url("/");
    expect_curl(&["--http2-prior-knowledge", &url], "selvedge.Greeter\n");
    server.stop();
}
