//! A kernel for models and fault tests. A test makes the kernel's events: they may come late, twice
//! or without cause.
use super::{Fd, Sys};
use crate::Ready;
use std::{collections::VecDeque, io, mem, time::Duration};
use sync_shim::sync::{Condvar, Mutex};

#[derive(Debug)]
pub(crate) struct Kernel {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    registered: Vec<Entry>,
    events: VecDeque<(u64, Ready)>,
    is_woken: bool,
}

#[derive(Debug)]
struct Entry {
    fd: Fd,
    token: u64,
}

impl Kernel {
    /// Makes a registered source ready. Without a registration nothing happens.
    pub(crate) fn event(&self, fd: Fd, ready: Ready) {
        let mut state = self.state.lock();
        let token = state
            .registered
            .iter()
            .find(|entry| entry.fd == fd)
            .map(|entry| entry.token);
        if let Some(token) = token {
            state.events.push_back((token, ready));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Closes the only descriptor of a source: its entry ends.
    pub(crate) fn close(&self, fd: Fd) {
        self.state.lock().registered.retain(|entry| entry.fd != fd);
    }
}

impl Sys for Kernel {
    const CLOSE_DEREGISTERS: bool = true;
    const REPORTS_CLOSE: bool = true;

    fn open() -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        })
    }

    fn register(&self, fd: Fd, token: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.registered.iter().any(|entry| entry.fd == fd) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.registered.push(Entry { fd, token });
        Ok(())
    }

    fn replace(&self, fd: Fd, token: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let mut entries = state.registered.iter_mut();
        let entry = entries.find(|entry| entry.fd == fd);
        entry.ok_or(io::ErrorKind::NotFound)?.token = token;
        Ok(())
    }

    fn deregister(&self, fd: Fd, _: u64) -> io::Result<()> {
        self.state.lock().registered.retain(|entry| entry.fd != fd);
        Ok(())
    }

    /// Waits. The limit only decides whether to wait at all: no time passes in a model.
    fn wait(
        &self,
        limit: Option<Duration>,
        max: usize,
        mut on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool> {
        let mut state = self.state.lock();
        while limit.is_none() && state.events.is_empty() && !state.is_woken {
            state = self.changed.wait(state);
        }
        let was_woken = mem::take(&mut state.is_woken);
        let count = state.events.len().min(max);
        let events: Vec<_> = state.events.drain(..count).collect();
        drop(state);
        for (token, ready) in events {
            on_event(token, ready);
        }
        Ok(was_woken)
    }

    fn wake(&self) {
        let mut state = self.state.lock();
        state.is_woken = true;
        drop(state);
        self.changed.notify_all();
    }
}
