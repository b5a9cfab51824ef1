//! `Cooperative` for the trait of `futures-sink`.
use crate::Cooperative;
use ::futures_sink::Sink;
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// Each check for readiness costs an operation, and so does a flush or a close.
impl<T, S: Sink<T>> Sink<T> for Cooperative<S> {
    type Error = S::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.charged(cx, |sink, cx| sink.poll_ready(cx))
    }

    fn start_send(self: Pin<&mut Self>, item: T) -> Result<(), S::Error> {
        self.get_pin_mut().start_send(item)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.charged(cx, |sink, cx| sink.poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.charged(cx, |sink, cx| sink.poll_close(cx))
    }
}
