//! The events of a scheduler, and the four words in which a recorder's ring keeps each event.
//!
//! | word | content |
//! |---|---|
//! | 0 | the time of the event, in ticks of the recorder's clock |
//! | 1 | the kind in the low 8 bits, a detail of that kind in the next 8, and a number in the high 32 |
//! | 2 | the task |
//! | 3 | by kind: the task that spawned or woke the task of word 2, or 0; the other worker; the group |
//!
//! In an event `NoCpu`, word 2 has the time in nanoseconds.
//!
//! Words with an unknown kind, outcome or cause are decoded as no event.
use std::{panic::Location, time::Duration};

/// The words of an event in its ring.
pub(super) type Words = [u64; 4];

/// The end of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The task waits.
    Pending,
    /// The task is complete.
    Ready,
    /// The task runs again: it yielded, or it was woken during its poll.
    Again,
    /// The task blocks in place, and another thread runs its worker. The recorder ends the poll
    /// here, although the task has not returned.
    Lent,
}

/// The cause of a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A task, in its poll.
    Task,
    /// A worker between two polls: a driver that delivers, a hook, or the drop of a future.
    Worker,
    /// A thread that is no worker.
    Thread,
    /// Readiness of a file or socket.
    Io,
    /// A timer.
    Timer,
    /// An abort: the task runs once more, to drop its future.
    Abort,
}

/// An event of a scheduler. The event names each task by the task's id.
/// [`Capture::name`](super::Capture) returns the name for an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A task was spawned.
    Spawn {
        /// The new task.
        task: u64,
        /// The task that spawned it, if a task did.
        by: Option<u64>,
        /// The place in the source, if it is known.
        location: Option<&'static Location<'static>>,
    },
    /// A poll begins.
    PollBegin {
        /// The task.
        task: u64,
        /// Whether the task has a name.
        named: bool,
    },
    /// A poll ends.
    PollEnd {
        /// The task.
        task: u64,
        /// How the poll ended.
        outcome: Outcome,
    },
    /// A task that waited was woken, and is queued.
    Wake {
        /// The task that is woken.
        task: u64,
        /// The task that woke it, if a task did.
        by: Option<u64>,
        /// The cause of the wake.
        cause: Cause,
    },
    /// The worker took tasks from another worker's ring.
    Steal {
        /// The index of the other worker.
        from: usize,
        /// The number of tasks.
        tasks: u32,
    },
    /// The worker took the task in another worker's LIFO slot.
    StealSlot {
        /// The index of the other worker.
        from: usize,
        /// The task.
        task: u64,
    },
    /// The worker took tasks from the injector.
    Inject {
        /// The number of tasks.
        tasks: u32,
    },
    /// The worker's ring was full: half of it moved to the injector.
    Overflow,
    /// This thread wakes a sleeping worker, or starts its thread.
    Notify {
        /// The index of that worker.
        worker: usize,
    },
    /// The worker goes to sleep.
    Park,
    /// The worker is awake again.
    Unpark {
        /// Whether a notification ended the sleep.
        notified: bool,
    },
    /// A request ended the worker's time slice.
    Slice,
    /// An exhausted budget, or a nudge, made an operation of the polled task yield.
    ForcedYield,
    /// The worker runs tasks of another group from here on.
    Group {
        /// The group, as its scheduler numbers it.
        group: u64,
    },
    /// An observer of the workers has seen a poll that lasts.
    LongPoll {
        /// The index of the worker.
        worker: usize,
        /// The task.
        task: u64,
        /// How long the poll lasts, at least. The resolution is 1 µs.
        lasted: Duration,
    },
    /// An observer of the workers has seen that a worker's thread was ready to run, and had no
    /// CPU.
    NoCpu {
        /// The index of the worker.
        worker: usize,
        /// How long, up to now or a moment before.
        waited: Duration,
    },
}

const SPAWN: u8 = 1;
const POLL_BEGIN: u8 = 2;
const POLL_END: u8 = 3;
const WAKE: u8 = 4;
const STEAL: u8 = 5;
const STEAL_SLOT: u8 = 6;
const INJECT: u8 = 7;
const OVERFLOW: u8 = 8;
const NOTIFY: u8 = 9;
const PARK: u8 = 10;
const UNPARK: u8 = 11;
const SLICE: u8 = 12;
const FORCED_YIELD: u8 = 13;
const GROUP: u8 = 14;
const LONG_POLL: u8 = 15;
const NO_CPU: u8 = 16;

/// Whether the words encode an event that an observer of the workers has recorded.
pub(super) fn is_of_observer(words: &Words) -> bool {
    matches!(words[1] as u8, LONG_POLL | NO_CPU)
}

impl Event {
    /// Returns the words of this event. `place` is for the event of a spawn: the position of its
    /// location in the recorder's list, counted from 1, or 0 if it has none.
    #[inline]
    pub(super) fn encode(self, tick: u64, place: u32) -> Words {
        let words = |kind: u8, detail: u8, number: u32, task: u64, other: u64| {
            let head = u64::from(kind) | u64::from(detail) << 8 | u64::from(number) << 32;
            [tick, head, task, other]
        };
        match self {
            Self::Spawn { task, by, .. } => words(SPAWN, 0, place, task, by.unwrap_or(0)),
            Self::PollBegin { task, named } => words(POLL_BEGIN, u8::from(named), 0, task, 0),
            Self::PollEnd { task, outcome } => words(POLL_END, outcome as u8, 0, task, 0),
            Self::Wake { task, by, cause } => words(WAKE, cause as u8, 0, task, by.unwrap_or(0)),
            Self::Steal { from, tasks } => words(STEAL, 0, tasks, 0, from as u64),
            Self::StealSlot { from, task } => words(STEAL_SLOT, 0, 0, task, from as u64),
            Self::Inject { tasks } => words(INJECT, 0, tasks, 0, 0),
            Self::Overflow => words(OVERFLOW, 0, 0, 0, 0),
            Self::Notify { worker } => words(NOTIFY, 0, 0, 0, worker as u64),
            Self::Park => words(PARK, 0, 0, 0, 0),
            Self::Unpark { notified } => words(UNPARK, u8::from(notified), 0, 0, 0),
            Self::Slice => words(SLICE, 0, 0, 0, 0),
            Self::ForcedYield => words(FORCED_YIELD, 0, 0, 0, 0),
            Self::Group { group } => words(GROUP, 0, 0, 0, group),
            Self::LongPoll {
                worker,
                task,
                lasted,
            } => {
                let micros = u32::try_from(lasted.as_micros()).unwrap_or(u32::MAX);
                words(LONG_POLL, 0, micros, task, worker as u64)
            }
            Self::NoCpu { worker, waited } => {
                let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
                words(NO_CPU, 0, 0, nanos, worker as u64)
            }
        }
    }

    /// Returns the event that the words encode, or `None` if they encode none.
    pub(super) fn decode(words: Words, places: &[&'static Location<'static>]) -> Option<Self> {
        let [_, head, task, other] = words;
        let (detail, number) = ((head >> 8) as u8, (head >> 32) as u32);
        let by = (other != 0).then_some(other);
        let from = other as usize;
        Some(match head as u8 {
            SPAWN => Self::Spawn {
                task,
                by,
                location: places.get((number as usize).wrapping_sub(1)).copied(),
            },
            POLL_BEGIN => Self::PollBegin {
                task,
                named: detail != 0,
            },
            POLL_END => Self::PollEnd {
                task,
                outcome: *Outcome::ALL.get(usize::from(detail))?,
            },
            WAKE => Self::Wake {
                task,
                by,
                cause: *Cause::ALL.get(usize::from(detail))?,
            },
            STEAL => Self::Steal {
                from,
                tasks: number,
            },
            STEAL_SLOT => Self::StealSlot { from, task },
            INJECT => Self::Inject { tasks: number },
            OVERFLOW => Self::Overflow,
            NOTIFY => Self::Notify { worker: from },
            PARK => Self::Park,
            UNPARK => Self::Unpark {
                notified: detail != 0,
            },
            SLICE => Self::Slice,
            FORCED_YIELD => Self::ForcedYield,
            GROUP => Self::Group { group: other },
            LONG_POLL => Self::LongPoll {
                worker: from,
                task,
                lasted: Duration::from_micros(u64::from(number)),
            },
            NO_CPU => Self::NoCpu {
                worker: from,
                waited: Duration::from_nanos(task),
            },
            _ => return None,
        })
    }
}

impl Outcome {
    /// All outcomes, by their numbers.
    const ALL: [Self; 4] = [Self::Pending, Self::Ready, Self::Again, Self::Lent];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Again => "runs again",
            Self::Lent => "blocks in place",
        }
    }
}

impl Cause {
    /// All causes, by their numbers.
    const ALL: [Self; 6] = [
        Self::Task,
        Self::Worker,
        Self::Thread,
        Self::Io,
        Self::Timer,
        Self::Abort,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Worker => "worker",
            Self::Thread => "thread",
            Self::Io => "I/O",
            Self::Timer => "timer",
            Self::Abort => "abort",
        }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_event_survives_its_encoding() {
        let location = Location::caller();
        let places = [location];
        let by = Some(2);
        let mut events = vec![
            Event::Spawn {
                task: 1,
                by,
                location: Some(location),
            },
            Event::PollBegin {
                task: 1,
                named: true,
            },
            Event::Steal { from: 3, tasks: 4 },
            Event::StealSlot { from: 3, task: 1 },
            Event::Inject { tasks: 5 },
            Event::Overflow,
            Event::Notify { worker: 6 },
            Event::Park,
            Event::Unpark { notified: true },
            Event::Slice,
            Event::ForcedYield,
            Event::Group { group: 7 },
            Event::LongPoll {
                worker: 8,
                task: 1,
                lasted: Duration::from_micros(9),
            },
            Event::NoCpu {
                worker: 8,
                waited: Duration::from_nanos(9),
            },
        ];
        let task = 1;
        events.extend(Outcome::ALL.map(|outcome| Event::PollEnd { task, outcome }));
        events.extend(Cause::ALL.map(|cause| Event::Wake { task, by, cause }));
        for event in events {
            assert_eq!(Event::decode(event.encode(9, 1), &places), Some(event));
        }
    }

    #[test]
    fn words_that_encode_no_event_decode_to_none() {
        assert_eq!(Event::decode([0; 4], &[]), None);
        assert_eq!(Event::decode([0, u64::MAX, 0, 0], &[]), None);
        assert_eq!(
            Event::decode([0, u64::from(POLL_END) | 4 << 8, 0, 0], &[]),
            None
        );
        let unknown = Event::decode([0, u64::from(SPAWN) | 9 << 32, 1, 0], &[]);
        let spawn = Event::Spawn {
            task: 1,
            by: None,
            location: None,
        };
        assert_eq!(unknown, Some(spawn));
    }
}
