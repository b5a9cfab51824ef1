//! Random operations on a `ReadBuf` against a model, and readers that break the contract.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod support;

use bytes::BufMut;
use proptest::{collection::vec, prelude::*};
use std::{
    future::poll_fn,
    io,
    mem::{self, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll},
};
use support::finish;
use task_io::{AsyncRead, AsyncReadExt, ReadBuf};

#[derive(Debug, Clone)]
enum Op {
    Put(Vec<u8>),
    PutByBytes(Vec<u8>),
    Initialize(usize),
    Advance(usize),
    SetFilled(usize),
    TakeAndPut(usize, Vec<u8>),
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = || vec(1u8.., 0..6);
    prop_oneof![
        bytes().prop_map(Op::Put),
        bytes().prop_map(Op::PutByBytes),
        (0usize..6).prop_map(Op::Initialize),
        (0usize..6).prop_map(Op::Advance),
        (0usize..12).prop_map(Op::SetFilled),
        (0usize..6, bytes()).prop_map(|(len, bytes)| Op::TakeAndPut(len, bytes)),
        Just(Op::Clear),
    ]
}

/// Does the operation. Operations that do not fit panic, and change nothing.
fn apply(buf: &mut ReadBuf<'_>, op: &Op) {
    match op {
        Op::Put(bytes) => buf.put_slice(bytes),
        Op::PutByBytes(bytes) => BufMut::put_slice(buf, bytes),
        Op::Initialize(len) => {
            buf.initialize_unfilled_to(*len);
        }
        Op::Advance(len) => buf.advance(*len),
        Op::SetFilled(len) => buf.set_filled(*len),
        Op::TakeAndPut(len, bytes) => {
            let mut part = buf.take(*len);
            part.put_slice(bytes);
            // SAFETY: `put_slice` has initialised these bytes.
            unsafe { buf.assume_init(bytes.len()) };
            buf.advance(bytes.len());
        }
        Op::Clear => buf.clear(),
    }
}

/// Does the operation on the initialised bytes, of which the first `filled` are filled. Returns
/// `false` if it does not fit.
fn model(bytes: &mut Vec<u8>, filled: &mut usize, capacity: usize, op: &Op) -> bool {
    let mut put = |new: &[u8], room: usize| {
        if new.len() > room.min(capacity - *filled) {
            return false;
        }
        let end = *filled + new.len();
        bytes.resize(bytes.len().max(end), 0);
        bytes[*filled..end].copy_from_slice(new);
        *filled = end;
        true
    };
    match op {
        Op::Put(new) | Op::PutByBytes(new) => put(new, capacity),
        Op::TakeAndPut(len, new) => put(new, *len),
        Op::Initialize(len) if *filled + len <= capacity => {
            bytes.resize(bytes.len().max(*filled + len), 0);
            true
        }
        Op::Advance(len) if *filled + len <= bytes.len() => {
            *filled += len;
            true
        }
        Op::SetFilled(len) if *len <= bytes.len() => {
            *filled = *len;
            true
        }
        Op::Clear => {
            *filled = 0;
            true
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn read_buf_equals_a_vector(capacity in 0usize..12, ops in vec(op(), 0..20)) {
        let mut memory = vec![MaybeUninit::uninit(); capacity];
        let mut buf = ReadBuf::uninit(&mut memory);
        let (mut bytes, mut filled) = (Vec::new(), 0);
        for op in ops {
            let before = (bytes.clone(), filled);
            let fits = model(&mut bytes, &mut filled, capacity, &op);
            let done = catch_unwind(AssertUnwindSafe(|| apply(&mut buf, &op))).is_ok();
            prop_assert_eq!(fits, done);
            if !fits {
                prop_assert_eq!(&(bytes.clone(), filled), &before);
            }
            prop_assert_eq!(buf.initialized(), &bytes[..]);
            prop_assert_eq!(buf.filled(), &bytes[..filled]);
            prop_assert_eq!(buf.remaining(), capacity - filled);
            prop_assert_eq!(buf.remaining_mut(), capacity - filled);
        }
    }
}

#[test]
fn counts_that_overflow_panic() {
    let mut memory = [0; 4];
    let mut buf = ReadBuf::new(&mut memory);
    buf.set_filled(2);
    let mut panics = |f: fn(&mut ReadBuf<'_>)| {
        assert!(catch_unwind(AssertUnwindSafe(|| f(&mut buf))).is_err());
    };
    panics(|buf| buf.advance(usize::MAX));
    panics(|buf| buf.advance(usize::MAX - 1));
    panics(|buf| buf.set_filled(5));
    panics(|buf| {
        buf.initialize_unfilled_to(usize::MAX);
    });
    // SAFETY: the call panics.
    panics(|buf| unsafe { buf.assume_init(usize::MAX) });
    assert_eq!(buf.filled().len(), 2);
}

/// A reader that puts another buffer, which is full, in the place of the one that it was lent.
struct Swaps;

static LEAKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl AsyncRead for Swaps {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let memory = Box::leak(vec![1; 1_000].into_boxed_slice());
        // A checker of leaks finds the memory by this address.
        LEAKED.lock().unwrap().push(memory.as_ptr() as usize);
        let mut other = ReadBuf::new(memory);
        other.set_filled(1_000);
        *buf = other;
        Poll::Ready(Ok(()))
    }
}

/// Fails if a function takes the length of another buffer for that of its own.
#[test]
fn reader_that_swaps_the_buffer_fills_no_memory() {
    // There is room for what the other buffer has, so nothing else would panic.
    let mut bytes = Vec::with_capacity(4_096);
    let panics = |f: &mut dyn FnMut()| assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    panics(&mut || drop(finish(Swaps.read_buf(&mut bytes))));
    panics(&mut || drop(finish(Swaps.read_to_end(&mut bytes))));
    let mut part = Swaps.take(4_000);
    panics(&mut || drop(finish(part.read_buf(&mut bytes))));
    assert!(bytes.is_empty());
}

/// A reader that leaks the buffer that it was lent, and puts a buffer of its first two bytes in its
/// place. It has initialised both, and fills one.
struct Shrinks;

impl AsyncRead for Shrinks {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let lent = Box::leak(Box::new(mem::replace(buf, ReadBuf::uninit(&mut []))));
        // A checker of leaks finds the memory by this address.
        LEAKED.lock().unwrap().push(&raw const *lent as usize);
        let len = lent.remaining().min(2);
        let mut part = ReadBuf::new(lent.initialize_unfilled_to(len));
        part.put_slice(&[7]);
        *buf = part;
        Poll::Ready(Ok(()))
    }
}

/// Fails if a function takes bytes for initialised that only the leaked buffer knows, or counts
/// others than those that were filled.
#[test]
fn reader_that_shrinks_the_buffer_fills_its_start() {
    let mut bytes = Vec::with_capacity(64);
    assert_eq!(finish(Shrinks.read_buf(&mut bytes)).unwrap(), 1);
    assert_eq!(finish(Shrinks.take(9).read_to_end(&mut bytes)).unwrap(), 9);
    assert_eq!(bytes, [7; 10]);

    let mut memory = [MaybeUninit::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut memory);
    let mut part = Shrinks.take(4);
    let read = poll_fn(|cx| Pin::new(&mut part).poll_read(cx, &mut buf));
    finish(read).unwrap();
    assert_eq!((buf.filled(), buf.initialized()), (&[7][..], &[7, 0][..]));
}

/// A reader that puts this memory, filled, in the place of the buffer that it was lent.
struct Puts(Option<&'static mut [u8]>);

impl AsyncRead for Puts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut other = ReadBuf::new(self.0.take().unwrap());
        other.set_filled(other.capacity());
        *buf = other;
        Poll::Ready(Ok(()))
    }
}

/// The buffer has no byte, and other memory has the same start. Fails if the other memory's bytes
/// are taken for those of the buffer.
#[test]
fn reader_that_swaps_an_empty_buffer_fills_nothing() {
    let memory = Box::leak(vec![1; 8].into_boxed_slice());
    LEAKED.lock().unwrap().push(memory.as_ptr() as usize);
    let (empty, other) = memory.split_at_mut(0);
    let mut buf = ReadBuf::new(empty);
    let mut part = Puts(Some(other)).take(4);
    let read = || finish(poll_fn(|cx| Pin::new(&mut part).poll_read(cx, &mut buf)));
    assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
    assert!(buf.filled().is_empty() && buf.initialized().is_empty());
}

/// A reader that initialises the whole buffer and fills one byte of it, until it has done so often
/// enough. It counts the bytes that were not initialised before.
struct Initializes {
    left: usize,
    initialized: usize,
}

impl AsyncRead for Initializes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.initialized += buf.capacity() - buf.initialized().len();
        if self.left > 0 {
            self.left -= 1;
            buf.initialize_unfilled()[0] = 7;
            buf.advance(1);
        }
        Poll::Ready(Ok(()))
    }
}

/// Fails if `read_to_end` forgets which bytes are initialised: there would be a million.
#[test]
fn read_to_end_initialises_each_byte_once() {
    let mut reader = Initializes {
        left: 4_000,
        initialized: 0,
    };
    let mut bytes = Vec::new();
    assert_eq!(finish(reader.read_to_end(&mut bytes)).unwrap(), 4_000);
    assert!(bytes.iter().all(|byte| *byte == 7));
    // A vector that doubles has twice the capacity at most, and was half of that before, and so on.
    assert!(reader.initialized <= 4 * 4_096, "{}", reader.initialized);
}

#[test]
fn read_to_end_keeps_an_exact_capacity() {
    for len in [0, 1, 31, 32, 33, 100] {
        let bytes = vec![7; len];
        let mut exact = Vec::with_capacity(len.max(32));
        let capacity = exact.capacity();
        finish((&bytes[..]).read_to_end(&mut exact)).unwrap();
        assert_eq!((exact.len(), exact.capacity()), (len, capacity));
    }
}
