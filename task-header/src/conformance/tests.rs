//! Each check finds its own fault, and the message of its panic begins with the check's name.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use super::{Order, Subject, schedule, wakes_from_two_other_threads_are_not_lost};
use crate::{Id, Notified, Ran, Schedule, WakeKind};
use alloc::{collections::VecDeque, string::String, sync::Arc};
use std::{
    ops::DerefMut,
    panic::catch_unwind,
    thread::{self, ThreadId},
};
use sync_shim::conformance::{Unseen, bury};

const RIGHT: u8 = 0;
const DROPS: u8 = 1;
const QUEUES_TWICE: u8 = 2;
const LAST_IN_FIRST_OUT: u8 = 3;
const REFUSES_IN_A_POLL: u8 = 4;
const DROPS_TASK_THAT_WAKES_ITSELF: u8 = 5;
const KEEPS_ABORTED_TASK: u8 = 6;
const KEEPS_ORPHAN: u8 = 7;
const ENDS_WITHOUT_A_DROP: u8 = 8;
const TAKES_TASKS_AFTER_THE_END: u8 = 9;
const KEEPS_TASK_WOKEN_BY_ANOTHER_THREAD: u8 = 10;
const LOSES_ONE_OF_TWO_THREADS_TASKS: u8 = 11;
const KEEPS_SECOND_TASK_OF_ANOTHER_THREAD: u8 = 12;
const KEEPS_TASK_ABORTED_BY_ANOTHER_THREAD: u8 = 13;
const KEEPS_TASK_SPAWNED_BY_ANOTHER_THREAD: u8 = 14;

/// A locked queue with a fault, and its worker.
struct Faulty<const FAULT: u8>(Arc<Unseen<State<FAULT>>>);

struct State<const FAULT: u8> {
    tasks: VecDeque<Notified<Faulty<FAULT>>>,
    /// Tasks that other threads pushed.
    outside: VecDeque<Notified<Faulty<FAULT>>>,
    /// Tasks that other threads have scheduled.
    known: Vec<Id>,
    /// Tasks that were run.
    polled: Vec<Id>,
    owner: ThreadId,
    polls: bool,
    closed: bool,
    meeting: Meeting,
}

/// The meeting of two other threads in `schedule`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    Nobody,
    /// The first thread has arrived, and waits for the second.
    First,
    Over,
}

impl<const FAULT: u8> Faulty<FAULT> {
    fn lock(&self) -> impl DerefMut<Target = State<FAULT>> {
        self.0.lock()
    }
}

impl<const FAULT: u8> Schedule for Faulty<FAULT> {
    fn schedule(task: Notified<Self>, why: WakeKind) {
        let queue = Self(task.scheduler().0.clone());
        let mut state = queue.lock();
        let elsewhere = thread::current().id() != state.owner;
        let keeps = match FAULT {
            KEEPS_ABORTED_TASK => why == WakeKind::Abort,
            KEEPS_ORPHAN => why == WakeKind::Orphan,
            KEEPS_TASK_WOKEN_BY_ANOTHER_THREAD => elsewhere,
            KEEPS_SECOND_TASK_OF_ANOTHER_THREAD => elsewhere && state.known.contains(&task.id()),
            KEEPS_TASK_ABORTED_BY_ANOTHER_THREAD => elsewhere && why == WakeKind::Abort,
            KEEPS_TASK_SPAWNED_BY_ANOTHER_THREAD => elsewhere && !state.polled.contains(&task.id()),
            _ => false,
        };
        if keeps {
            return bury(task);
        }
        let refuses = match FAULT {
            DROPS => true,
            REFUSES_IN_A_POLL => state.polls,
            TAKES_TASKS_AFTER_THE_END => false,
            _ => state.closed,
        };
        if refuses {
            drop(state);
            return drop(task);
        }
        if elsewhere {
            state.known.push(task.id());
        }
        if FAULT == LOSES_ONE_OF_TWO_THREADS_TASKS && elsewhere {
            if state.meeting == Meeting::First {
                // The first thread will put back the list that it found, which lacks this task.
                state.meeting = Meeting::Over;
                drop(state);
                return drop(task);
            }
            state.meeting = Meeting::First;
            drop(state);
            while queue.lock().meeting != Meeting::Over {
                thread::yield_now();
            }
            return queue.lock().outside.push_back(task);
        }
        if FAULT == QUEUES_TWICE && !state.tasks.is_empty() {
            // SAFETY: the copy breaks the rule of one `Notified` on purpose. The kit finds the
            // double before it runs the task.
            let twin = unsafe { core::ptr::read(&raw const state.tasks[0]) };
            state.tasks.push_back(twin);
        }
        state.tasks.push_back(task);
    }
}

impl<const FAULT: u8> Subject for Faulty<FAULT> {
    type Scheduler = Self;
    const ORDER: Order = Order::Fifo;

    fn new() -> Self {
        Self(Arc::new(Unseen::new(State {
            tasks: VecDeque::new(),
            outside: VecDeque::new(),
            known: Vec::new(),
            polled: Vec::new(),
            owner: thread::current().id(),
            polls: false,
            closed: false,
            meeting: Meeting::Nobody,
        })))
    }

    fn scheduler(&self) -> Self {
        Self(self.0.clone())
    }

    fn next(&mut self) -> Option<Notified<Self>> {
        let mut state = self.lock();
        match FAULT {
            LAST_IN_FIRST_OUT => state.tasks.pop_back(),
            _ => state
                .tasks
                .pop_front()
                .or_else(|| state.outside.pop_front()),
        }
    }

    fn run(&mut self, task: Notified<Self>) {
        self.lock().polls = true;
        self.lock().polled.push(task.id());
        let ran = task.run();
        self.lock().polls = false;
        if let Ran::Notified(again) = ran {
            match FAULT {
                DROPS_TASK_THAT_WAKES_ITSELF => drop(again),
                _ => again.schedule(),
            }
        }
    }

    fn end(self) {
        let mut state = self.lock();
        state.closed = true;
        let left = (
            core::mem::take(&mut state.tasks),
            core::mem::take(&mut state.outside),
        );
        drop(state);
        match FAULT {
            ENDS_WITHOUT_A_DROP => bury(left),
            _ => drop(left),
        }
        if FAULT == TAKES_TASKS_AFTER_THE_END {
            bury(self);
        }
    }
}

fn said<const FAULT: u8>() -> String {
    let kit = match FAULT {
        // In the other checks there is only one other thread, which would wait forever.
        LOSES_ONE_OF_TWO_THREADS_TASKS => {
            wakes_from_two_other_threads_are_not_lost::<Faulty<FAULT>>
        }
        _ => schedule::<Faulty<FAULT>>,
    };
    let panic = catch_unwind(kit).expect_err("the kit must find the fault");
    *panic.downcast::<String>().expect("the panic has a message")
}

#[test]
fn kit_passes_a_queue_without_a_fault() {
    schedule::<Faulty<RIGHT>>();
}

#[test]
fn each_fault_is_found_and_named() {
    // The run on a faulty queue, the check that finds the fault, and a part of its message.
    type Case = (fn() -> String, &'static str, &'static str);
    let cases: [Case; 14] = [
        (
            said::<DROPS>,
            "a_task_is_queued_once_for_its_wakes: ",
            "lost",
        ),
        (
            said::<QUEUES_TWICE>,
            "tasks_run_in_the_promised_order: ",
            "doubled",
        ),
        (
            said::<LAST_IN_FIRST_OUT>,
            "tasks_run_in_the_promised_order: ",
            "order",
        ),
        (
            said::<REFUSES_IN_A_POLL>,
            "a_wake_in_a_poll_is_not_lost: ",
            "lost: a task that was woken by another",
        ),
        (
            said::<DROPS_TASK_THAT_WAKES_ITSELF>,
            "a_wake_in_a_poll_is_not_lost: ",
            "lost: a task that was woken by itself",
        ),
        (
            said::<KEEPS_ABORTED_TASK>,
            "an_abort_and_the_last_waker_end_a_task: ",
            "lost",
        ),
        (
            said::<KEEPS_ORPHAN>,
            "an_abort_and_the_last_waker_end_a_task: ",
            "leaked",
        ),
        (
            said::<ENDS_WITHOUT_A_DROP>,
            "tasks_queued_at_the_end_are_dropped: ",
            "leaked: a woken task",
        ),
        (
            said::<TAKES_TASKS_AFTER_THE_END>,
            "a_wake_after_the_end_leaks_nothing: ",
            "leaked",
        ),
        (
            said::<KEEPS_TASK_WOKEN_BY_ANOTHER_THREAD>,
            "a_wake_from_another_thread_is_not_lost: ",
            "lost: a task",
        ),
        (
            said::<LOSES_ONE_OF_TWO_THREADS_TASKS>,
            "wakes_from_two_other_threads_are_not_lost: ",
            "lost",
        ),
        (
            said::<KEEPS_SECOND_TASK_OF_ANOTHER_THREAD>,
            "a_wake_from_another_thread_is_not_lost: ",
            "lost: a poll",
        ),
        (
            said::<KEEPS_TASK_ABORTED_BY_ANOTHER_THREAD>,
            "a_spawn_and_an_abort_from_another_thread_are_not_lost: ",
            "lost: an aborted",
        ),
        (
            said::<KEEPS_TASK_SPAWNED_BY_ANOTHER_THREAD>,
            "a_spawn_and_an_abort_from_another_thread_are_not_lost: ",
            "lost: a spawned",
        ),
    ];
    // The kits run at the same time.
    thread::scope(|scope| {
        let cases = cases.map(|(said, check, what)| (scope.spawn(said), check, what));
        for (said, check, what) in cases {
            let said = said.join().expect("the kit finds the fault");
            assert!(
                said.starts_with(check) && said.contains(what),
                "{said:?}, not {check}{what}"
            );
        }
    });
}
