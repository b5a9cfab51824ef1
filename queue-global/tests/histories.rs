//! Pushers and consumers use an injector, on real threads and under shuttle's schedules. Their
//! results are checked against those of a single-threaded queue.
#![cfg(not(selvedge_loom))]
use queue_global::{Boxed, Injector, List};
use std::{collections::VecDeque, sync::Mutex};
use sync_shim::{
    history::{Clock, Event, Log, Sequential, check},
    model,
    sync::Arc,
    thread,
};

#[derive(Clone, Debug)]
enum Call {
    Push(Vec<u32>),
    /// Pops up to this many items.
    Pop(usize),
    Close,
}

/// The result of a call: items handed back, or popped.
type Answer = Vec<u32>;

/// The specification: a FIFO queue that refuses pushes once it is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Fifo {
    items: VecDeque<u32>,
    closed: bool,
}

impl Sequential for Fifo {
    type Call = Call;
    type Answer = Answer;

    fn allows(&mut self, call: &Call, answer: &Answer) -> bool {
        match call {
            Call::Push(items) if answer.is_empty() => {
                self.items.extend(items);
                !self.closed
            }
            Call::Push(items) => self.closed && items == answer,
            Call::Pop(n) => {
                let n = self.items.len().min(*n);
                self.items.drain(..n).eq(answer.iter().copied())
            }
            Call::Close => {
                self.closed = true;
                true
            }
        }
    }
}

/// Runs `pushers` pushers and as many consumers, with three calls each. Meanwhile the caller closes
/// the queue. After the threads have ended, the caller empties the queue.
fn history(pushers: u32) -> Vec<Vec<Event<Fifo>>> {
    let clock = Clock::default();
    let queue = Arc::new(Injector::<Boxed<u32>>::new());
    let logs = Arc::new(Mutex::new(Vec::new()));
    let node = |item| Box::new(Boxed::new(item));
    let values = |list: List<Boxed<u32>>| list.into_iter().map(|node| node.value).collect();
    let threads: Vec<_> = (0..2 * pushers)
        .map(|number| {
            let (queue, clock, logs) = (queue.clone(), clock.clone(), logs.clone());
            thread::spawn(move || {
                let mut log = Log::<Fifo>::new(&clock);
                for turn in 0..3 {
                    let item = 10 * number + turn;
                    if number >= pushers {
                        log.call(Call::Pop(if turn == 1 { 2 } else { 1 }), || match turn {
                            1 => values(queue.pop_n(2)),
                            _ => queue.pop().map(|node| node.value).into_iter().collect(),
                        });
                    } else if turn == 1 {
                        log.call(Call::Push(vec![item, item + 5]), || {
                            let batch = [item, item + 5].map(node).into_iter().collect();
                            let back = queue.push_batch(batch);
                            back.map_or_else(|closed| values(closed.0), |()| Vec::new())
                        });
                    } else {
                        log.call(Call::Push(vec![item]), || {
                            let back = queue.push(node(item));
                            back.map_or_else(|closed| vec![closed.0.value], |()| Vec::new())
                        });
                    }
                }
                logs.lock().unwrap().push(log.done());
            })
        })
        .collect();
    let mut log = Log::<Fifo>::new(&clock);
    log.call(Call::Close, || {
        queue.close();
        Vec::new()
    });
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    while !log
        .call(Call::Pop(1), || {
            queue.pop().map(|node| node.value).into_iter().collect()
        })
        .is_empty()
    {}
    let mut all = std::mem::take(&mut *logs.lock().unwrap());
    all.push(log.done());
    all
}

fn judge(history: Vec<Vec<Event<Fifo>>>) {
    if let Err(wrong) = check(Fifo::default(), history) {
        panic!("{wrong}");
    }
}

/// Fails if a node counts as the only item while older nodes are in the list, or if a queue is
/// marked empty while its list is not empty.
#[test]
fn injector_with_two_pushers_and_consumers_is_a_queue() {
    model(|| judge(history(2)));
}

#[test]
fn injector_with_three_pushers_and_consumers_is_a_queue() {
    model(|| judge(history(3)));
}

/// The checker refuses a history of the injector in which the result of one pop was changed: it was
/// emptied, replaced by another item, or extended by an item.
#[test]
fn a_history_with_one_answer_changed_is_refused() {
    model(|| {
        let history = history(2);
        judge(history.clone());
        let popped =
            |event: &Event<Fifo>| matches!(event.call, Call::Pop(_)) && !event.answer.is_empty();
        let count = history
            .iter()
            .flatten()
            .filter(|event| popped(event))
            .count();
        for number in 0..count {
            for change in [
                |_| vec![],
                |_| vec![99],
                |mut got: Answer| {
                    got.push(99);
                    got
                },
            ] as [fn(Answer) -> Answer; 3]
            {
                let mut wrong = history.clone();
                let mut events = wrong.iter_mut().flatten().filter(|event| popped(event));
                let event = events.nth(number).unwrap();
                event.answer = change(event.answer.clone());
                assert!(check(Fifo::default(), wrong).is_err(), "call {number}");
            }
        }
    });
}
