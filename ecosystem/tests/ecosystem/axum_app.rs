//! `axum_app`: its routes, its page, and the WebSocket of the page.
use crate::{
    http::get,
    program::{Server, expect_curl, tool},
    websocket::expect_echo,
};

#[test]
fn router_answers_and_its_websocket_echoes() {
    let server = Server::start(env!("CARGO_BIN_EXE_axum_app"), &["127.0.0.1:0"]);
    assert_eq!(get(&server.url("/hello/you")).1, "hello, you\n");
    assert_eq!(get(&server.url("/none")).0, 404);
    assert_eq!(get(&server.url("/echo")).0, 400);
    assert!(get(&server.url("/")).1.contains("new WebSocket("));
    expect_echo(&server.address, "/echo");

    expect_curl(&[&server.url("/hello/you")], "hello, you\n");
    // Without its own limit of two seconds for an answer: a busy machine may take longer.
    let load = [
        "-t1",
        "-c50",
        "-d1s",
        "--timeout",
        "600s",
        &server.url("/hello/you"),
    ];
    if let Some(report) = tool("wrk", &load) {
        assert!(
            !report.contains("Socket errors") && !report.contains("Non-2xx"),
            "{report}"
        );
    }
    server.stop();
}
