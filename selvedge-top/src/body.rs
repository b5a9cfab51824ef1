//! The body of an answer.
use hyper::body::{Body, Bytes, Frame, SizeHint};
use selvedge::sync::{OwnedSemaphorePermit, mpsc};
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// The most bytes of a frame. While so many wait for the client, hyper asks for no further frame.
/// It drops the body with the last one: so a body that has its permit has bytes to send, too.
const FRAME: usize = 16 << 10;

/// The body of an answer.
pub(crate) enum Answered {
    /// These bytes, in frames. The permit is for the memory that they take.
    Whole {
        bytes: Bytes,
        _permit: Option<OwnedSemaphorePermit>,
    },
    /// Pieces that come with the time.
    Pieces(mpsc::Receiver<Bytes>),
}

impl Body for Answered {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole { bytes, .. } if bytes.is_empty() => Poll::Ready(None),
            Self::Whole { bytes, .. } => {
                let frame = bytes.split_to(FRAME.min(bytes.len()));
                Poll::Ready(Some(Ok(Frame::data(frame))))
            }
            Self::Pieces(pieces) => {
                let piece = std::task::ready!(pieces.poll_recv(cx));
                Poll::Ready(piece.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole { bytes, .. } if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole { bytes, .. } => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge::sync::Semaphore;
    use std::{sync::Arc, task::Waker};

    #[test]
    fn large_body_has_small_frames_and_keeps_its_permit() {
        let permits = Arc::new(Semaphore::new(1));
        let permit = permits.clone().try_acquire_owned().unwrap();
        let mut body = Answered::Whole {
            bytes: Bytes::from(vec![7; 3 * FRAME + 1]),
            _permit: Some(permit),
        };
        let mut cx = Context::from_waker(Waker::noop());
        for (length, is_last) in [(FRAME, false), (FRAME, false), (FRAME, false), (1, true)] {
            let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) else {
                panic!("no frame");
            };
            assert_eq!(frame.into_data().unwrap().len(), length);
            assert_eq!(body.is_end_stream(), is_last);
            assert_eq!(permits.available_permits(), 0);
        }
        assert!(
            Pin::new(&mut body)
                .poll_frame(&mut cx)
                .map(|frame| frame.is_none())
                .is_ready()
        );
        drop(body);
        assert_eq!(permits.available_permits(), 1);
    }
}
