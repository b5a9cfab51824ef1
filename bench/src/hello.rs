//! The requests and answers of HTTP/1, as the clients write and read them.

/// The body of each answer.
pub(crate) const BODY: &[u8] = b"hello";

/// Returns a request for a path.
pub(crate) fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

/// Returns whether these are all bytes of an answer.
pub(crate) fn is_whole(answer: &[u8]) -> bool {
    let head = answer.strip_suffix(BODY);
    head.is_some_and(|head| head.starts_with(b"HTTP/1.1 200 ") && head.ends_with(b"\r\n\r\n"))
}
