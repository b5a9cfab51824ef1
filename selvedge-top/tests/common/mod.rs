//! A client of the standard library that speaks HTTP/1.1 to a page.
#![allow(dead_code, reason = "each test program uses a part")]
use selvedge_top::Page;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

pub mod chromium;

/// A hang is an error, however busy the machine is.
pub const LIMIT: Duration = Duration::from_secs(600);

/// A runtime that lists its tasks.
pub fn builder() -> selvedge::Builder {
    selvedge::Builder::new().workers(2).list_tasks(true)
}

/// Serves the page of a runtime.
pub fn serve(runtime: &selvedge::Runtime) -> Page {
    let builder = selvedge_top::Builder::new().runtime(runtime.handle());
    builder.serve("127.0.0.1:0").unwrap()
}

pub fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// An answer: the status, the lines of the head in lower case, and the body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }
}

/// Sends the head of a request, after whose answer the connection ends, and returns the answer.
pub fn send(to: SocketAddr, head: &str) -> Answer {
    let mut stream = connect(to);
    let request = format!("{head}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&String::from_utf8(bytes).unwrap())
}

pub fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .unwrap_or_else(|| panic!("no status: {text}"));
    Answer {
        status: status.parse().unwrap(),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

pub fn request(to: SocketAddr, method: &str, path: &str) -> Answer {
    send(to, &format!("{method} {path} HTTP/1.1\r\nhost: {to}"))
}

pub fn get(to: SocketAddr, path: &str) -> Answer {
    request(to, "GET", path)
}

/// Reads from a stream until the text contains `part`. Returns the text.
pub fn read_until(stream: &mut TcpStream, part: &str) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(
            read > 0,
            "it ended without {part:?}: {}",
            String::from_utf8_lossy(&text)
        );
        text.extend_from_slice(&buffer[..read]);
        let so_far = String::from_utf8_lossy(&text);
        if so_far.contains(part) {
            return so_far.into_owned();
        }
    }
}
