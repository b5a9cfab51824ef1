//! Each operation of a wrapped resource costs one operation of the budget, through every trait.
#![cfg(all(
    feature = "futures-core",
    feature = "futures-sink",
    feature = "futures-io",
    feature = "tokio",
    not(any(selvedge_loom, selvedge_shuttle))
))]
use coop_budget::{Budget, Cooperative, Scope, cooperative, remaining};
use futures::{
    FutureExt, Sink, Stream, StreamExt, channel::mpsc, future::FusedFuture, stream::FusedStream,
};
use std::{
    io::{Cursor, IoSlice, IoSliceMut, SeekFrom},
    pin::Pin,
    task::{Context, Poll, Waker},
};

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Asserts that an operation is refused when the budget is used up, and that it uses the one
/// operation of a budget of 1. Returns the result of the operation.
fn costs_one<R, T>(
    resource: &mut Cooperative<R>,
    operation: impl Fn(Pin<&mut Cooperative<R>>, &mut Context<'_>) -> Poll<T>,
) -> T
where
    Cooperative<R>: Unpin,
{
    let mut polled = |budget| {
        Scope::new(Budget::new(budget)).run(|| {
            let polled = operation(Pin::new(&mut *resource), &mut cx());
            (polled, remaining())
        })
    };
    let (refused, _) = polled(0);
    assert!(refused.is_pending());
    let (Poll::Ready(done), left) = polled(1) else {
        panic!("the operation is not ready");
    };
    assert_eq!(left, Some(0));
    done
}

/// Asserts that an operation is pending and free.
fn costs_none<R, T>(
    resource: &mut Cooperative<R>,
    operation: impl FnOnce(Pin<&mut Cooperative<R>>, &mut Context<'_>) -> Poll<T>,
) where
    Cooperative<R>: Unpin,
{
    Scope::new(Budget::new(1)).run(|| {
        assert!(operation(Pin::new(resource), &mut cx()).is_pending());
        assert_eq!(remaining(), Some(1));
    });
}

#[test]
fn wrapped_resource_is_reached_and_taken_out() {
    let mut wrapped = cooperative(vec![1]);
    assert_eq!(wrapped.get_ref(), &[1]);
    wrapped.get_mut().push(2);
    Pin::new(&mut wrapped).get_pin_mut().push(3);
    assert_eq!(wrapped.into_inner(), [1, 2, 3]);
}

#[test]
fn stream_item_costs_one_operation_and_the_end_too() {
    let mut items = cooperative(futures::stream::iter([7]).fuse());
    assert_eq!(items.size_hint(), (1, Some(1)));
    assert_eq!(
        costs_one(&mut items, |items, cx| items.poll_next(cx)),
        Some(7)
    );
    assert!(!items.is_terminated());
    assert_eq!(costs_one(&mut items, |items, cx| items.poll_next(cx)), None);
    assert!(items.is_terminated());
    let mut never = cooperative(futures::stream::pending::<()>());
    costs_none(&mut never, |never, cx| never.poll_next(cx));
}

#[test]
fn fused_future_says_whether_it_is_terminated() {
    let mut future = cooperative(std::future::ready(7).fuse());
    assert!(!future.is_terminated());
    assert_eq!(costs_one(&mut future, |future, cx| future.poll(cx)), 7);
    assert!(future.is_terminated());
}

#[test]
fn sink_readiness_flush_and_close_cost_one_operation_each() {
    let (sender, mut receiver) = mpsc::channel(0);
    let mut sink = cooperative(sender);
    costs_one(&mut sink, |sink, cx| sink.poll_ready(cx)).unwrap();
    Pin::new(&mut sink).start_send(7).unwrap();
    costs_none(&mut sink, |sink, cx| sink.poll_ready(cx));
    assert_eq!(receiver.next().now_or_never(), Some(Some(7)));
    costs_one(&mut sink, |sink, cx| sink.poll_flush(cx)).unwrap();
    costs_one(&mut sink, |sink, cx| sink.poll_close(cx)).unwrap();
}

#[test]
fn futures_reader_and_writer_pay_for_each_operation() {
    use futures::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
    let mut file = cooperative(futures::io::Cursor::new(Vec::new()));
    let written = costs_one(&mut file, |file, cx| file.poll_write(cx, b"abc"));
    assert_eq!(written.unwrap(), 3);
    let slices = [IoSlice::new(b"d"), IoSlice::new(b"ef")];
    let written = costs_one(&mut file, |file, cx| file.poll_write_vectored(cx, &slices));
    assert_eq!(written.unwrap(), 3);
    costs_one(&mut file, |file, cx| file.poll_flush(cx)).unwrap();
    let start = costs_one(&mut file, |file, cx| file.poll_seek(cx, SeekFrom::Start(0)));
    assert_eq!(start.unwrap(), 0);
    let read = costs_one(&mut file, |file, cx| file.poll_read(cx, &mut [0]));
    assert_eq!(read.unwrap(), 1);
    let read = costs_one(&mut file, |file, cx| {
        file.poll_read_vectored(cx, &mut [IoSliceMut::new(&mut [0])])
    });
    assert_eq!(read.unwrap(), 1);
    let filled = costs_one(&mut file, |file, cx| {
        file.poll_fill_buf(cx).map_ok(<[u8]>::to_vec)
    });
    assert_eq!(filled.unwrap(), b"cdef");
    Scope::new(Budget::new(0)).run(|| Pin::new(&mut file).consume(4));
    assert_eq!(file.get_ref().position(), 6);
    costs_one(&mut file, |file, cx| file.poll_close(cx)).unwrap();
    assert_eq!(file.into_inner().into_inner(), b"abcdef");
}

#[test]
fn tokio_reader_and_writer_pay_for_each_operation() {
    use tokio::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
    let mut file = cooperative(Cursor::new(Vec::new()));
    let written = costs_one(&mut file, |file, cx| file.poll_write(cx, b"abc"));
    assert_eq!(written.unwrap(), 3);
    assert!(file.is_write_vectored());
    let slices = [IoSlice::new(b"d"), IoSlice::new(b"ef")];
    let written = costs_one(&mut file, |file, cx| file.poll_write_vectored(cx, &slices));
    assert_eq!(written.unwrap(), 3);
    costs_one(&mut file, |file, cx| file.poll_flush(cx)).unwrap();
    Scope::new(Budget::new(0)).run(|| {
        Pin::new(&mut file).start_seek(SeekFrom::Start(0)).unwrap();
    });
    let start = costs_one(&mut file, |file, cx| file.poll_complete(cx));
    assert_eq!(start.unwrap(), 0);
    let read = costs_one(&mut file, |file, cx| {
        let mut bytes = [0; 2];
        let mut bytes = ReadBuf::new(&mut bytes);
        file.poll_read(cx, &mut bytes)
            .map_ok(|()| bytes.filled().to_vec())
    });
    assert_eq!(read.unwrap(), b"ab");
    let filled = costs_one(&mut file, |file, cx| {
        file.poll_fill_buf(cx).map_ok(<[u8]>::to_vec)
    });
    assert_eq!(filled.unwrap(), b"cdef");
    Scope::new(Budget::new(0)).run(|| Pin::new(&mut file).consume(4));
    assert_eq!(file.get_ref().position(), 6);
    costs_one(&mut file, |file, cx| file.poll_shutdown(cx)).unwrap();
    assert_eq!(file.into_inner().into_inner(), b"abcdef");
}
