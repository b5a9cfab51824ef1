//! `tokio_bound`: reqwest in our tasks, in both ways, and its panic without them.
use crate::program::{Server, run, stdout};

#[test]
fn reqwest_runs_in_compat_and_on_entered_workers() {
    let server = Server::start(env!("CARGO_BIN_EXE_axum_app"), &["127.0.0.1:0"]);
    let output = run(
        env!("CARGO_BIN_EXE_tokio_bound"),
        &[&server.url("/hello/you")],
    );
    assert_eq!(stdout(&output), "async-compat: 200 11\nentered: 200 11\n");
    server.stop();
}

// If this fails, the program's two ways are no longer needed.
#[test]
fn reqwest_without_a_handle_panics() {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let task = runtime.spawn(reqwest::get("http://127.0.0.1:1/"));
    let error = runtime.block_on(task).unwrap_err();
    let panic = error.into_panic();
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    assert!(message.unwrap().contains("Tokio 1.x"), "{message:?}");
}
