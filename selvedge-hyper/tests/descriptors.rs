//! Descriptors of clients that go away. A program of its own: it counts the process's descriptors.
mod common;

use common::Server;
use std::{fs, sync::atomic::Ordering::SeqCst, thread, time::Duration};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn dropped_clients_leave_no_descriptor() {
    let server = Server::new();
    // The server has accepted it, so its descriptor counts from the start.
    let mut held = server.connect();
    assert_eq!(held.get("/"), "hello");
    let before = descriptors();
    // A request whose body never comes, an unread answer, a part of a head, and nothing.
    let ends = [
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nab",
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nho",
        "",
    ];
    for end in ends.iter().cycle().take(200) {
        server.connect().send(end);
    }
    // The server needs a while. The bound is only for a test that fails.
    let state = server.state.clone();
    let are_gone = || state.made.load(SeqCst) == 201 && descriptors() <= before;
    for _ in 0..1_000 {
        if are_gone() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(are_gone());
    drop(held);
    server.end().unwrap();
    assert_eq!(state.open.load(SeqCst), 0);
    assert!(descriptors() < before);
}
