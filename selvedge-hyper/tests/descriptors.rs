//! Descriptors of clients that go away. A program of its own: it counts the process's descriptors.
mod common;

use common::Server;
use std::{fs, thread, time::Duration};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn dropped_clients_leave_no_descriptor() {
    let server = Server::new();
    assert_eq!(server.connect().get("/"), "hello");
    // A request whose body never comes, an unread answer, a part of a head, and nothing.
    let ends = [
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nab",
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nho",
        "",
    ];
    let held = server.connect();
    let before = descriptors();
    for end in ends.iter().cycle().take(200) {
        server.connect().send(end);
    }
    // The server needs a while. The bound is only for a test that fails.
    for _ in 0..1_000 {
        if descriptors() <= before {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(descriptors() <= before);
    drop(held);
    let state = server.state.clone();
    server.end().unwrap();
    let open = state.open.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(open, 0);
    assert!(descriptors() < before);
}
