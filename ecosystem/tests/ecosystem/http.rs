//! A client of our crate, for the tests of servers; and the program `http_client` itself.
use crate::program::{LIMIT, Server, run, stdout};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, StatusCode};

/// Requests a page by `selvedge_hyper::client`.
pub fn get(url: &str) -> (StatusCode, String) {
    request("GET", url)
}

pub fn request(method: &str, url: &str) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(url);
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let answer = async {
        let response = selvedge_hyper::client().request(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    let answer = runtime.block_on(selvedge::time::timeout(LIMIT, answer));
    answer.expect("the server answers")
}

// Fails if a bar is drawn into a pipe, or a request is lost.
#[test]
fn http_client_in_a_pipe_prints_only_the_results() {
    let server = Server::start(env!("CARGO_BIN_EXE_axum_app"), &["127.0.0.1:0"]);
    let (hello, none) = (server.url("/hello/a"), server.url("/none"));
    let output = run(env!("CARGO_BIN_EXE_http_client"), &[&hello, &none, &hello]);
    let mut lines: Vec<_> = stdout(&output).lines().collect();
    lines.sort_unstable();
    let hello = format!("200 9 {hello}");
    assert_eq!(lines, [&hello, &hello, &format!("404 0 {none}")]);
    // A bar is drawn by control characters. On a busy machine there may be reports of stalls.
    let errors = String::from_utf8(output.stderr).unwrap();
    let draws = |c: char| c.is_control() && c != '\n';
    assert!(!errors.contains(draws), "{errors:?}");
    server.stop();
}

#[test]
fn http_client_says_which_step_failed() {
    let output = run(env!("CARGO_BIN_EXE_http_client"), &["http://127.0.0.1:1/"]);
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("no connection to 127.0.0.1"), "{errors}");
}
