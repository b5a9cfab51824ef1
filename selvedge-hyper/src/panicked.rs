//! The error of a connection whose future panicked.
//!
//! [`hyper::Error`] has no public constructor. So this module lets hyper make one: it polls a
//! connection whose I/O fails in the middle of a request, with the error that the caller wants as
//! the source.
use hyper::{
    Request, Response,
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
    server::conn::http1,
    service::service_fn,
};
use std::{
    any::Any,
    convert::Infallible,
    future::{Future, Pending, pending},
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

/// Returns the error that reports a panic. Its source has the panic's message.
#[cold]
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Option<hyper::Error> {
    let message = payload.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| payload.downcast_ref::<&str>().copied());
    let message = message.unwrap_or("no message");
    let io = Fails {
        has_begun: false,
        error: Some(io::Error::other(format!(
            "the connection panicked: {message}"
        ))),
    };
    let service = service_fn(
        |_: Request<Incoming>| -> Pending<Result<Response<String>, Infallible>> { pending() },
    );
    let connection = pin!(http1::Builder::new().serve_connection(io, service));
    match connection.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => Some(error),
        _ => None,
    }
}

/// Reads one byte of a request, and then fails.
struct Fails {
    has_begun: bool,
    error: Option<io::Error>,
}

impl Read for Fails {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_begun {
            self.has_begun = true;
            to.put_slice(b"G");
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(self.error.take().map_or(Ok(()), Err))
    }
}

impl Write for Fails {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(from.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    /// Fails if hyper reports no error for I/O that fails in the middle of a request.
    #[test]
    fn error_of_a_panic_has_its_message() {
        for (payload, message) in [
            (Box::new("one") as Box<dyn Any + Send>, "one"),
            (Box::new(String::from("two")), "two"),
            (Box::new(3), "no message"),
        ] {
            let error = panicked(&*payload).unwrap();
            let source = error.source().unwrap().to_string();
            assert_eq!(source, format!("the connection panicked: {message}"));
        }
    }
}
