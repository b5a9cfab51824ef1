//! Random reads and writes of both ends of a connection, against two queues; wakes; closes.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod support;

use proptest::{collection::vec, prelude::*};
use std::{
    collections::VecDeque,
    future::Future,
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};
use support::finish;
use task_io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex, simplex};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, one thread counts.
        self.0.fetch_add(1, Relaxed);
    }
}

impl Count {
    fn take(&self) -> usize {
        // Ordering: Relaxed, as above.
        self.0.swap(0, Relaxed)
    }
}

fn poll<F: Future>(future: F, waker: &Waker) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(waker))
}

#[derive(Debug, Clone)]
enum Op {
    Read(usize),
    Write(Vec<u8>),
    WriteVectored(Vec<Vec<u8>>),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0usize..12).prop_map(Op::Read),
        vec(any::<u8>(), 0..12).prop_map(Op::Write),
        vec(vec(any::<u8>(), 0..5), 0..4).prop_map(Op::WriteVectored),
    ]
}

/// Does an operation on an end, whose bytes go to `out` and come from `from`.
fn operate(
    end: &mut DuplexStream,
    op: &Op,
    capacity: usize,
    from: &mut VecDeque<u8>,
    out: &mut VecDeque<u8>,
) {
    let mut expect_write = |written: Poll<io::Result<usize>>, bytes: &[u8]| {
        let room = capacity - out.len();
        match written {
            Poll::Pending => assert!(room == 0 && !bytes.is_empty()),
            Poll::Ready(written) => {
                let written = written.unwrap();
                assert_eq!(written, bytes.len().min(room));
                assert!(written > 0 || bytes.is_empty());
                out.extend(&bytes[..written]);
            }
        }
    };
    match op {
        Op::Read(len) => {
            let mut bytes = vec![0; *len];
            match poll(end.read(&mut bytes), Waker::noop()) {
                Poll::Pending => assert!(from.is_empty() && *len > 0),
                Poll::Ready(read) => {
                    let read = read.unwrap();
                    assert_eq!(read, from.len().min(*len));
                    assert!(bytes[..read].iter().copied().eq(from.drain(..read)));
                }
            }
        }
        Op::Write(bytes) => expect_write(poll(end.write(bytes), Waker::noop()), bytes),
        Op::WriteVectored(bufs) => {
            let slices: Vec<IoSlice> = bufs.iter().map(|buf| IoSlice::new(buf)).collect();
            let written = poll(end.write_vectored(&slices), Waker::noop());
            expect_write(written, &bufs.concat());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn duplex_equals_two_queues(
        capacity in 1usize..10,
        ops in vec((any::<bool>(), op()), 0..60),
    ) {
        let (mut near, mut far) = duplex(capacity);
        let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
        for (is_near, op) in ops {
            if is_near {
                operate(&mut near, &op, capacity, &mut back, &mut there);
            } else {
                operate(&mut far, &op, capacity, &mut there, &mut back);
            }
        }
    }
}

#[test]
fn each_side_wakes_the_other_once_it_can_go_on() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let (mut near, mut far) = duplex(2);
    assert!(poll(far.read(&mut [0; 4]), &waker).is_pending());
    finish(near.write_all(b"ab")).unwrap();
    assert_eq!(count.take(), 1);
    assert!(poll(near.write(b"c"), &waker).is_pending());
    assert_eq!(finish(far.read(&mut [0])).unwrap(), 1);
    assert_eq!(count.take(), 1);

    assert!(poll(near.read(&mut [0]), &waker).is_pending());
    finish(far.shutdown()).unwrap();
    assert_eq!(count.take(), 1);
    assert_eq!(finish(near.read(&mut [0])).unwrap(), 0);
    assert!(poll(near.write(b"cd"), &waker).is_ready());
    assert!(poll(near.write(b"e"), &waker).is_pending());
    drop(far);
    assert_eq!(count.take(), 1);
    let error = finish(near.write(b"e")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn shut_down_pipe_gives_its_bytes_and_ends() {
    let (mut reader, mut writer) = simplex(8);
    finish(writer.write_all(b"rest")).unwrap();
    finish(writer.shutdown()).unwrap();
    assert_eq!(
        finish(writer.write(b"x")).unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
    let mut bytes = Vec::new();
    finish(reader.read_to_end(&mut bytes)).unwrap();
    assert_eq!(bytes, b"rest");
}

/// The waker of a task that polls the other end inside its `wake`, as some executors do.
struct Inline(Mutex<Option<DuplexStream>>, Mutex<Vec<u8>>);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let mut end = self.0.lock().unwrap();
        let mut bytes = [0; 8];
        let mut buf = ReadBuf::new(&mut bytes);
        let mut cx = Context::from_waker(Waker::noop());
        let end = Pin::new(end.as_mut().unwrap());
        assert!(end.poll_read(&mut cx, &mut buf).is_ready());
        self.1.lock().unwrap().extend(buf.filled());
    }
}

/// Fails if a pipe wakes a task under its lock.
#[test]
fn waker_that_polls_the_other_end_does_not_deadlock() {
    let (mut near, far) = duplex(8);
    let task = Arc::new(Inline(Mutex::new(Some(far)), Mutex::default()));
    let waker = Waker::from(task.clone());
    let first = poll(
        task.0.lock().unwrap().as_mut().unwrap().read(&mut [0]),
        &waker,
    );
    assert!(first.is_pending());
    finish(near.write_all(b"now")).unwrap();
    assert_eq!(*task.1.lock().unwrap(), b"now");
    drop(near); // The end's own waker is gone.
}

/// A waker whose code panics.
struct Broken;

impl Wake for Broken {
    fn wake(self: Arc<Self>) {
        panic!("in a wake");
    }
}

/// Fails if the panic of one task's waker keeps the drop from the other pipe.
#[test]
fn panic_in_a_wake_keeps_no_other_task_from_its_own() {
    let (near, mut far) = duplex(1);
    finish(far.write_all(b"a")).unwrap();
    let count = Arc::new(Count::default());
    assert!(poll(far.read(&mut [0]), &Waker::from(Arc::new(Broken))).is_pending());
    assert!(poll(far.write(b"b"), &Waker::from(count.clone())).is_pending());
    drop(near);
    assert_eq!(count.take(), 1);
}

/// Two threads, and 100,000 bytes by few at a time.
#[test]
fn bytes_between_threads_arrive_in_order() {
    let (mut near, mut far) = duplex(7);
    let bytes: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    let expected = bytes.clone();
    let writer = std::thread::spawn(move || {
        futures::executor::block_on(near.write_all(&bytes)).unwrap();
    });
    let mut read = Vec::new();
    futures::executor::block_on(far.read_to_end(&mut read)).unwrap();
    writer.join().unwrap();
    assert!(read == expected);
}
