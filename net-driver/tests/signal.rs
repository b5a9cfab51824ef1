//! Tests of listeners for signals. This process sends the signals to itself.
#![cfg(all(feature = "signal", unix))]

use net_driver::{
    Driver,
    signal::{
        ctrl_c,
        unix::{Signal, SignalKind, signal},
    },
};
use std::{
    future::Future,
    io,
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Wake, Waker},
    thread,
};

fn raise(kind: SignalKind) {
    // SAFETY: the signal goes to this process, and a listener has installed the signal's handler.
    assert_eq!(unsafe { libc::raise(kind.as_raw_value()) }, 0);
}

fn block_on<F: Future>(future: F) -> F::Output {
    Driver::new(1).park(0).block_on(future)
}

#[test]
fn signal_reaches_every_listener() {
    let kind = SignalKind::user_defined1();
    let listeners: Vec<_> = (0..4).map(|_| signal(kind).unwrap()).collect();
    let threads: Vec<_> = listeners
        .into_iter()
        .map(|mut listener| thread::spawn(move || block_on(listener.recv())))
        .collect();
    raise(kind);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Some(()));
    }
}

#[test]
fn signals_before_a_poll_count_as_one() {
    let kind = SignalKind::user_defined2();
    let mut listener = signal(kind).unwrap();
    let mut other = signal(kind).unwrap();
    for _ in 0..10 {
        raise(kind);
        // Once the signal has come in, both listeners have it.
        block_on(other.recv());
    }
    block_on(listener.recv());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(listener.poll_recv(&mut cx).is_pending());
    // A listener that is made now has missed the signals.
    assert!(signal(kind).unwrap().poll_recv(&mut cx).is_pending());
}

/// A waker that sends its number when it is woken, and a message when it is dropped.
struct Ring {
    number: usize,
    woken: mpsc::Sender<usize>,
    dropped: mpsc::Sender<()>,
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.woken.send(self.number).unwrap();
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let _ = self.dropped.send(());
    }
}

/// Fails if a poll or the drop of a listener touches the waker of another listener. Hangs if a
/// waker stays after it was replaced, woken, or dropped with its listener.
#[test]
fn last_waker_of_each_listener_is_woken_once() {
    let kind = SignalKind::io();
    let ((woken, wakes), (dropped, drops)) = (mpsc::channel(), mpsc::channel());
    let poll = |listener: &mut Signal, number| {
        let (woken, dropped) = (woken.clone(), dropped.clone());
        let ring = Ring {
            number,
            woken,
            dropped,
        };
        let waker = Waker::from(Arc::new(ring));
        let mut cx = Context::from_waker(&waker);
        assert!(listener.poll_recv(&mut cx).is_pending());
    };
    let mut listeners: Vec<_> = (0..300).map(|_| signal(kind).unwrap()).collect();
    for _ in 0..3 {
        for listener in &mut listeners {
            poll(listener, usize::MAX);
        }
        // Every third listener ends. A new one begins, and may get its place.
        for at in (0..300).step_by(3) {
            listeners[at] = signal(kind).unwrap();
        }
        for (number, listener) in listeners.iter_mut().enumerate() {
            poll(listener, number);
        }
        raise(kind);
        let mut numbers: Vec<_> = (0..300).map(|_| wakes.recv().unwrap()).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..300));
        for _ in 0..600 {
            drops.recv().unwrap();
        }
        for listener in &mut listeners {
            assert_eq!(block_on(listener.recv()), Some(()));
        }
    }
    drop(listeners);
    assert!(wakes.try_recv().is_err(), "a waker was woken twice");
}

#[test]
fn ctrl_c_waits_for_sigint() {
    let mut pressed = pin!(ctrl_c());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pressed.as_mut().poll(&mut cx).is_pending());
    raise(SignalKind::interrupt());
    block_on(pressed).unwrap();
}

#[test]
fn signal_that_cannot_be_handled_is_refused() {
    for number in [libc::SIGKILL, libc::SIGSEGV, 0, -1, 1_000] {
        let refused = signal(SignalKind::from_raw(number)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
