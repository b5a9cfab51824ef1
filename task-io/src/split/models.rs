//! Models of two halves on two threads.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::{
    simplex,
    testing::{Woken, read_one, write_one},
};
use std::task::Waker;
use sync_shim::{
    atomic::{AtomicBool, Ordering::Relaxed},
    model, thread,
};

/// A stream that fails if two threads poll it at once.
struct Exclusive {
    is_polled: AtomicBool,
    polls: u8,
}

impl Exclusive {
    fn poll(&mut self) {
        // Ordering: Relaxed, the lock orders the polls.
        assert!(!self.is_polled.swap(true, Relaxed));
        self.polls += 1;
        // Ordering: as above.
        self.is_polled.store(false, Relaxed);
    }
}

impl AsyncRead for Exclusive {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll();
        buf.put_slice(&[self.polls]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Exclusive {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll();
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Fails if a half polls the stream without the lock. The stream comes back whole, with what both
/// threads have done to it.
#[test]
fn halves_on_two_threads_poll_one_at_a_time() {
    model(|| {
        let (mut reader, mut writer) = split(Exclusive {
            is_polled: AtomicBool::new(false),
            polls: 0,
        });
        let other = thread::spawn(move || {
            assert!(write_one(&mut writer, 0, Waker::noop()).is_ready());
            writer
        });
        assert!(read_one(&mut reader, Waker::noop()).is_ready());
        let writer = other.join().unwrap();
        assert_eq!(reader.unsplit(writer).polls, 2);
    });
}

/// Fails if `SimplexStream::poll` does not put the waker into the pipe.
#[test]
fn write_to_one_half_is_read_or_wakes_the_other() {
    model(|| {
        let (mut reader, mut writer) = simplex(1);
        let (woken, waker) = Woken::new();
        let other = thread::spawn(move || {
            assert!(write_one(&mut writer, 7, Waker::noop()).is_ready());
            writer
        });
        let first = read_one(&mut reader, &waker);
        let _writer = other.join().unwrap();
        if first.is_pending() {
            assert!(woken.was_woken());
            let again = read_one(&mut reader, &waker);
            assert!(matches!(again, Poll::Ready(Ok(Some(7)))));
        }
    });
}
