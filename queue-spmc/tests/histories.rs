//! Checks that rings and growable queues are linearizable: on real threads, and under shuttle's
//! schedules.
#![cfg(not(selvedge_loom))]
use queue_spmc::ring::{Full, Steal, StealLimit};
use std::{collections::VecDeque, sync::Mutex};
use sync_shim::{
    history::{Clock, Event, Log, Sequential, check},
    model,
    sync::Arc,
    thread,
};

#[derive(Clone, Debug)]
enum Call {
    Push(u32),
    Pop,
    Steal,
    StealHalf,
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Done,
    Full,
    Empty,
    Retry,
    Items(Vec<u32>),
}

use Answer::{Done, Empty, Items, Retry};

impl Answer {
    fn popped(item: Option<u32>) -> Self {
        item.map_or(Empty, |item| Items(vec![item]))
    }
}

/// The sequential object: a bounded FIFO queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fifo {
    items: VecDeque<u32>,
    capacity: usize,
}

impl Fifo {
    fn takes(&mut self, n: usize, got: &[u32]) -> bool {
        got.len() <= n && self.items.drain(..got.len()).eq(got.iter().copied())
    }
}

impl Sequential for Fifo {
    type Call = Call;
    type Answer = Answer;

    fn allows(&mut self, call: &Call, answer: &Answer) -> bool {
        let len = self.items.len();
        match (call, answer) {
            (Call::Push(item), Done) => {
                self.items.push_back(*item);
                len < self.capacity
            }
            // A thief that copies also keeps the slots of items that were popped since. So a push
            // may find the ring full at any length. `full_for_a_reason` checks each such push.
            (Call::Push(_), Answer::Full) => true,
            (Call::Pop | Call::Steal | Call::StealHalf, Empty) => len == 0,
            (Call::Steal | Call::StealHalf, Retry) => true,
            (Call::Pop | Call::Steal, Items(got)) => got.len() == 1 && self.takes(len.min(1), got),
            (Call::StealHalf, Items(got)) => !got.is_empty() && self.takes(len - len / 2, got),
            _ => false,
        }
    }
}

/// Records a few calls of the owner, and three calls of each of `thieves` thieves, on a ring of 4.
/// With `half`, a thief's second call steals half.
fn ring(thieves: usize, half: bool) -> Vec<Vec<Event<Fifo>>> {
    use queue_spmc::ring::Worker;
    let clock = Clock::default();
    let mut worker = Worker::new(4);
    let logs = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..thieves)
        .map(|_| {
            let (stealer, clock, logs) = (worker.stealer(), clock.clone(), logs.clone());
            thread::spawn(move || {
                let (mut log, mut mine) = (Log::<Fifo>::new(&clock), Worker::new(4));
                for turn in 0..3 {
                    if half && turn == 1 {
                        log.call(Call::StealHalf, || {
                            match stealer.steal_into_and_pop(&mut mine, StealLimit::Half) {
                                Steal::Success { first, .. } => {
                                    Items([first].into_iter().chain(mine.drain()).collect())
                                }
                                Steal::Empty => Empty,
                                Steal::Retry => Retry,
                            }
                        });
                    } else {
                        log.call(Call::Steal, || match stealer.steal() {
                            Steal::Success { first, .. } => Items(vec![first]),
                            Steal::Empty => Empty,
                            Steal::Retry => Retry,
                        });
                    }
                }
                logs.lock().unwrap().push(log.done());
            })
        })
        .collect();
    let mut log = Log::<Fifo>::new(&clock);
    for item in 0..7 {
        log.call(Call::Push(item), || match worker.push(item) {
            Ok(()) => Done,
            Err(Full(_)) => Answer::Full,
        });
        if item % 3 == 2 {
            log.call(Call::Pop, || Answer::popped(worker.pop()));
        }
    }
    log.call(Call::Pop, || Answer::popped(worker.pop()));
    threads.into_iter().for_each(|thief| thief.join().unwrap());
    while log.call(Call::Pop, || Answer::popped(worker.pop())) != Empty {}
    let mut all = std::mem::take(&mut *logs.lock().unwrap());
    all.push(log.done());
    all
}

fn empty_ring() -> Fifo {
    Fifo {
        items: VecDeque::new(),
        capacity: 4,
    }
}

fn judge<S: Sequential + std::fmt::Debug>(object: S, history: Vec<Vec<Event<S>>>) {
    if let Err(wrong) = check(object, history) {
        panic!("{wrong}");
    }
}

/// Returns whether every refused push had a reason: the ring was full, or a steal that took items
/// was in progress at some time during the push.
fn full_for_a_reason(history: &[Vec<Event<Fifo>>]) -> bool {
    let all = || history.iter().flatten();
    let full = |event: &&Event<Fifo>| event.answer == Answer::Full;
    all().filter(full).all(|push| {
        let copies = all().any(|steal| {
            let stole = matches!(steal.call, Call::Steal | Call::StealHalf);
            let took = matches!(steal.answer, Items(_));
            stole && took && steal.from < push.to && push.from < steal.to
        });
        let before = |event: &&Event<Fifo>| event.to < push.from;
        let pushed = all().filter(before).filter(|event| event.answer == Done);
        let taken = all().filter(before).map(|event| match &event.answer {
            Items(got) => got.len(),
            _ => 0,
        });
        copies || pushed.count() - taken.sum::<usize>() >= 4
    })
}

fn judge_ring(history: Vec<Vec<Event<Fifo>>>) {
    assert!(full_for_a_reason(&history), "{history:?}");
    judge(empty_ring(), history);
}

/// Fails if a thief takes more than half, if a push overwrites a slot that a thief copies, or if a
/// pop passes the tail.
#[test]
fn ring_with_three_thieves_is_linearizable() {
    model(|| judge_ring(ring(3, true)));
}

#[test]
fn ring_with_seven_thieves_is_linearizable() {
    model(|| judge_ring(ring(7, false)));
}

/// A history of the ring is rejected if one of its answers is changed: to `Empty`, to another item,
/// or to one item more.
#[test]
fn history_with_one_answer_changed_is_rejected() {
    model(|| {
        let history = ring(3, true);
        judge_ring(history.clone());
        let taken = |event: &Event<Fifo>| matches!(event.answer, Items(_));
        let count = history
            .iter()
            .flatten()
            .filter(|event| taken(event))
            .count();
        assert!(count > 0, "no item was taken");
        for number in 0..count {
            for change in [
                |_| Empty,
                |_| Items(vec![99]),
                |got| match got {
                    Items(got) => Items([got, vec![99]].concat()),
                    other => other,
                },
            ] as [fn(Answer) -> Answer; 3]
            {
                let mut wrong = history.clone();
                let mut events = wrong.iter_mut().flatten().filter(|event| taken(event));
                let event = events.nth(number).unwrap();
                event.answer = change(event.answer.clone());
                assert!(check(empty_ring(), wrong).is_err(), "call {number}");
            }
        }
    });
}

#[cfg(feature = "deque")]
mod growable {
    use super::*;
    use queue_spmc::{LocalQueue, LocalStealer, deque, fifo};

    /// The sequential object: a queue whose owner takes the newest item, and whose thieves take the
    /// oldest.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    struct Lifo(VecDeque<u32>);

    impl Sequential for Lifo {
        type Call = Call;
        type Answer = Answer;

        fn allows(&mut self, call: &Call, answer: &Answer) -> bool {
            match (call, answer) {
                (Call::Push(item), Done) => {
                    self.0.push_back(*item);
                    true
                }
                (Call::Pop, _) => Answer::popped(self.0.pop_back()) == *answer,
                (Call::Steal, Retry) => true,
                (Call::Steal, _) => Answer::popped(self.0.pop_front()) == *answer,
                _ => false,
            }
        }
    }

    /// Records a few calls of the owner, and three calls of each of `thieves` thieves, on a queue
    /// that grows. With `half`, a thief's second call steals half.
    fn run<Q, S>(new: fn() -> Q, thieves: usize, half: bool) -> Vec<Vec<Event<S>>>
    where
        Q: LocalQueue<u32> + 'static,
        Q::Stealer: LocalStealer<u32, Worker = Q> + 'static,
        S: Sequential<Call = Call, Answer = Answer> + Send + 'static,
    {
        let clock = Clock::default();
        let mut worker = new();
        let logs = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..thieves)
            .map(|_| {
                let (stealer, clock, logs) = (worker.stealer(), clock.clone(), logs.clone());
                thread::spawn(move || {
                    let (mut log, mut mine) = (Log::<S>::new(&clock), new());
                    for turn in 0..3 {
                        let (call, limit) = match half && turn == 1 {
                            true => (Call::StealHalf, StealLimit::Half),
                            false => (Call::Steal, StealLimit::AtMost(1)),
                        };
                        log.call(call, || {
                            match stealer.steal_into_and_pop(&mut mine, limit) {
                                Steal::Success { first, .. } => {
                                    let moved = std::iter::from_fn(|| mine.pop());
                                    Items([first].into_iter().chain(moved).collect())
                                }
                                Steal::Empty => Empty,
                                Steal::Retry => Retry,
                            }
                        });
                    }
                    logs.lock().unwrap().push(log.done());
                })
            })
            .collect();
        let mut log = Log::<S>::new(&clock);
        for item in 0..6 {
            log.call(Call::Push(item), || {
                assert!(worker.push(item).is_ok());
                Done
            });
            if item % 2 == 1 {
                log.call(Call::Pop, || Answer::popped(worker.pop()));
            }
        }
        for _ in 0..2 {
            log.call(Call::Pop, || Answer::popped(worker.pop()));
        }
        threads.into_iter().for_each(|thief| thief.join().unwrap());
        while log.call(Call::Pop, || Answer::popped(worker.pop())) != Empty {}
        let mut all = std::mem::take(&mut *logs.lock().unwrap());
        all.push(log.done());
        all
    }

    fn judge_deque(thieves: usize) {
        let new = || deque::Worker::with_capacity(2);
        judge(Lifo::default(), run(new, thieves, false));
    }

    fn judge_fifo(thieves: usize) {
        let any_length = Fifo {
            items: VecDeque::new(),
            capacity: usize::MAX,
        };
        let new = || fifo::Worker::with_capacity(2);
        judge(any_length, run(new, thieves, true));
    }

    /// Fails if a pop takes the last item without its exchange.
    #[test]
    fn deque_with_three_thieves_is_linearizable() {
        model(|| judge_deque(3));
    }

    #[test]
    fn deque_with_seven_thieves_is_linearizable() {
        model(|| judge_deque(7));
    }

    /// Fails if a thief takes more than half, or if a pop takes an item without its exchange.
    #[test]
    fn fifo_with_three_thieves_is_linearizable() {
        model(|| judge_fifo(3));
    }

    #[test]
    fn fifo_with_seven_thieves_is_linearizable() {
        model(|| judge_fifo(7));
    }
}
