//! The signals that ask for a save. The waker of the listener is called on the thread of the
//! signals, which must not wait: it makes a request. The saving thread polls the listener again.
use super::super::recordings::Reason;
use crate::worker::shared::Shared;
use net_driver::signal::unix::{Signal, SignalKind, signal};
use std::{
    io,
    sync::Weak,
    task::{Context, Poll, Wake, Waker},
};
use sync_shim::sync::Arc;

pub(super) struct Listener {
    signal: Signal,
    waker: Waker,
    /// The only strong reference: the waker may stay registered after the runtime's end.
    _runtime: std::sync::Arc<Runtime>,
}

struct Runtime(Arc<Shared>);

struct Requests(Weak<Runtime>);

impl Wake for Requests {
    fn wake(self: std::sync::Arc<Self>) {
        if let Some(runtime) = self.0.upgrade() {
            runtime.0.trace.saver().request(Reason::Signal);
        }
    }
}

impl Listener {
    /// Listens to the signal. Its first poll is that of `has_come`.
    pub(super) fn new(kind: SignalKind, shared: &Arc<Shared>) -> io::Result<Self> {
        let signal = signal(kind)?;
        let runtime = std::sync::Arc::new(Runtime(shared.clone()));
        let requests = Requests(std::sync::Arc::downgrade(&runtime));
        Ok(Self {
            signal,
            waker: Waker::from(std::sync::Arc::new(requests)),
            _runtime: runtime,
        })
    }

    /// Returns whether a signal has come since the last call, and waits for the next one.
    pub(super) fn has_come(&mut self) -> bool {
        let mut cx = Context::from_waker(&self.waker);
        let mut has_come = false;
        while let Poll::Ready(Some(())) = self.signal.poll_recv(&mut cx) {
            has_come = true;
        }
        has_come
    }
}
