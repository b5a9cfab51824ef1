//! Checks which operations charge the budget of the poll that they are in.
#![cfg(feature = "coop-budget")]
mod support;

use coop_budget::{Budget, Scope, remaining};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};
use support::{Reader, Reads, Writer, Writes};
use task_io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future with `budget` operations until it is ready, and returns in how many polls.
fn polls<F: Future>(budget: u32, future: F) -> usize {
    let mut future = pin!(future);
    for polls in 1..1_000 {
        let poll = || {
            future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        };
        if Scope::new(Budget::new(budget)).run(poll).is_ready() {
            return polls;
        }
    }
    panic!("the future waits for ever");
}

#[test]
fn operations_in_memory_charge_one_unit_each() {
    let (mut near, mut far) = task_io::duplex(8);
    let (mut reader, mut writer) = task_io::simplex(8);
    Scope::new(Budget::new(8)).run(|| {
        assert!(poll(near.write(b"a")).is_ready());
        assert!(poll(far.read(&mut [0])).is_ready());
        assert!(poll(writer.write(b"a")).is_ready());
        assert!(poll(reader.read(&mut [0])).is_ready());
        assert!(poll(task_io::sink().write(b"a")).is_ready());
        assert!(poll(task_io::empty().read(&mut [0])).is_ready());
        assert!(poll(task_io::empty().fill_buf()).is_ready());
        assert!(poll(task_io::repeat(1).read(&mut [0])).is_ready());
        assert_eq!(remaining(), Some(0));
        assert!(poll(near.write(b"a")).is_pending());
        assert!(poll(writer.write(b"a")).is_pending());
        assert!(poll(task_io::sink().flush()).is_pending());
    });
}

#[test]
fn operation_that_waits_charges_nothing() {
    let (mut near, _far) = task_io::duplex(8);
    Scope::new(Budget::new(1)).run(|| {
        assert!(poll(near.read(&mut [0])).is_pending());
        assert_eq!(remaining(), Some(1));
    });
}

/// A reader without a budget of its own is ready 1,000 times: the loop charges for it.
#[test]
fn loop_over_ready_operations_yields() {
    let reader = || Reader::new((0..1_000).map(|_| Reads::Bytes(vec![1])));
    let writer = || Writer::new((0..1_000).map(|_| Writes::Take(1)));
    let (mut bytes, mut text) = (vec![0; 1_000], String::new());
    assert_eq!(polls(100, reader().read_exact(&mut bytes)), 10);
    assert_eq!(polls(100, reader().read_to_end(&mut Vec::new())), 10);
    assert_eq!(polls(100, reader().read_to_string(&mut text)), 10);
    assert_eq!(polls(100, reader().read_until(0, &mut Vec::new())), 10);
    assert_eq!(polls(100, reader().lines().next_line()), 10);
    assert_eq!(polls(100, writer().write_all(&[1; 1_000])), 10);
    assert_eq!(polls(100, writer().write_all_buf(&mut &[1; 1_000][..])), 10);
    assert_eq!(polls(100, task_io::copy(&mut reader(), &mut writer())), 10);
    assert_eq!(
        polls(100, task_io::copy_buf(&mut reader(), &mut writer())),
        10
    );
}

/// A reader that charges its own operations is not charged for by the loop.
#[test]
fn loop_over_charged_operations_pays_once() {
    let mut source = task_io::repeat(1).take(64);
    Scope::new(Budget::new(100)).run(|| {
        let (mut near, mut far) = task_io::duplex(1);
        for _ in 0..10 {
            assert!(poll(near.write_all(&[1])).is_ready());
            assert!(poll(far.read_exact(&mut [0])).is_ready());
        }
        assert_eq!(remaining(), Some(80));
        assert!(poll(source.read_to_end(&mut Vec::with_capacity(64))).is_ready());
        // One read fills the vector, and the second one stops at the limit.
        assert_eq!(remaining(), Some(79));
    });
}

#[test]
fn copy_without_an_end_yields_after_its_budget() {
    let (mut endless, mut sink) = (task_io::repeat(1), task_io::sink());
    Scope::new(Budget::DEFAULT).run(|| {
        assert!(poll(task_io::copy(&mut endless, &mut sink)).is_pending());
        assert_eq!(remaining(), Some(0));
    });
}
