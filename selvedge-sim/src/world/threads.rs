//! The threads of a run, and what each waits for.
use super::network::CLIENTS;
use crate::net::HostId;
use corosensei::{Coroutine, Yielder, stack::DefaultStack};
use std::{
    mem,
    ops::{Deref, DerefMut},
    panic::Location,
    sync::Arc,
};
use sync_shim::sim::{Fiber, Wait};

/// The bit that tells a wait for a word of memory from one for a file. No address and no number of
/// a file has it.
pub(super) const WORD: u64 = 1 << 62;

pub(super) type Body = Coroutine<(), (), (), DefaultStack>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    Waiting(Wait),
    Over,
}

pub(super) struct Thread {
    pub(super) fiber: Box<Fiber>,
    pub(super) state: State,
    /// `None` while the thread runs, and when it is over.
    pub(super) body: Option<Body>,
    pub(super) yielder: *const Yielder<(), ()>,
    /// Whether the next park ends at once.
    pub(super) has_token: bool,
    pub(super) timed_out: bool,
    /// Counts the waits, so that a time limit ends only its own wait.
    pub(super) waits: u64,
    pub(super) waits_at: &'static Location<'static>,
    /// The panics that have begun in this thread, and may still go on: the second one begins in a
    /// drop while the first one unwinds.
    pub(super) panics: Vec<Panic>,
    pub(super) host: HostId,
    /// The name in the events.
    pub(super) label: Option<Arc<str>>,
}

/// The threads of a run. The drop leaks those that have not ended, and frees the others. A drop of
/// an unfinished body would unwind its stack, which runs code of the program on a fiber that is no
/// longer there. A static of the program may also refer to a pinned value on that stack.
#[derive(Default)]
pub(super) struct Threads(Vec<Thread>);

impl Deref for Threads {
    type Target = Vec<Thread>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Threads {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            if let Some(body) = thread.body {
                mem::forget(body);
                mem::forget(thread.fiber);
            }
        }
    }
}

/// A panic that has begun.
#[derive(Clone)]
pub(super) struct Panic {
    pub(super) message: String,
    pub(super) place: Option<String>,
    /// Counts the panics of the run.
    pub(super) number: u64,
}

impl Thread {
    /// Returns whether this is the wait with this number, and goes on.
    pub(super) fn is_in_wait(&self, number: u64) -> bool {
        self.waits == number && matches!(self.state, State::Waiting(_))
    }

    /// Returns whether the thread neither runs, nor can run, nor will run by itself after a time.
    pub(super) fn is_passive(&self) -> bool {
        match self.state {
            State::Ready | State::Waiting(Wait::Busy) => false,
            State::Waiting(_) | State::Over => true,
        }
    }

    /// Returns the thread's name, for a report.
    pub(super) fn name(&self) -> &str {
        self.fiber.name().map_or("unnamed", |name| name)
    }

    /// Describes the thread and its wait.
    pub(super) fn describe(&self) -> String {
        let what = match self.state {
            State::Ready => "can run".to_owned(),
            State::Over => "has ended".to_owned(),
            State::Waiting(Wait::Park) => "is parked".to_owned(),
            State::Waiting(Wait::Lock(_)) => "waits for a lock".to_owned(),
            State::Waiting(Wait::Condvar(_)) => "waits for a condition variable".to_owned(),
            State::Waiting(Wait::Join(id)) => format!("waits for the end of thread {id}"),
            State::Waiting(Wait::Busy) => "is busy".to_owned(),
            State::Waiting(Wait::Sleep) => "sleeps".to_owned(),
            State::Waiting(Wait::System(on)) if on & WORD != 0 && on != CLIENTS => {
                "waits for a lock of std".to_owned()
            }
            State::Waiting(Wait::System(_)) => "waits in a call of the system".to_owned(),
        };
        let (id, name, at) = (self.fiber.id(), self.name(), self.waits_at);
        format!("thread {id} ({name}) {what}, at {at}")
    }
}
