//! Models of a worker beside a watcher and three thieves, which sleep and are notified: more
//! threads than the model checker takes.
//!
//! The worker stops in the middle of an item, and does not continue until the other threads have
//! run all other items.
use crate::{
    QueueHooks, Stealer,
    models::{Item, Queue, assert_each_once, item, rest, run},
};
use queue_global::List;
use std::{boxed::Box, vec::Vec};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    model,
    sync::{Arc, Condvar, Mutex},
    thread,
};

const THIEVES: usize = 3;

struct Scheduler {
    asleep: AtomicUsize,
    over: AtomicBool,
    /// The number of notifications that no sleeper has taken yet.
    calls: Mutex<usize>,
    called: Condvar,
    ran: Mutex<Vec<usize>>,
    more_ran: Condvar,
}

impl Scheduler {
    fn run(&self, item: Box<Item>) {
        self.ran.lock().push(run(item));
        self.more_ran.notify_all();
    }

    /// Waits until `n` items have run.
    fn wait_for(&self, n: usize) {
        let mut ran = self.ran.lock();
        while ran.len() < n {
            ran = self.more_ran.wait(ran);
        }
    }

    fn call(&self) {
        *self.calls.lock() += 1;
        self.called.notify_one();
    }

    fn end(&self) {
        // Ordering: SeqCst, because the flag is no part of the protocol.
        self.over.store(true, SeqCst);
        (0..THIEVES).for_each(|_| self.call());
    }

    /// Takes a thief's last look, and sleeps if the ring is empty.
    fn sleep(&self, stealer: &Stealer<Item>) {
        // Ordering: Relaxed; the fence orders it.
        self.asleep.fetch_add(1, Relaxed);
        // Ordering: SeqCst pairs with the fence of `notify`.
        fence(SeqCst);
        if stealer.is_empty() && !self.over.load(SeqCst) {
            let mut calls = self.calls.lock();
            while *calls == 0 {
                calls = self.called.wait(calls);
            }
            *calls -= 1;
        }
        // Ordering: Relaxed; a count.
        self.asleep.fetch_sub(1, Relaxed);
    }
}

impl QueueHooks<Item> for Scheduler {
    fn overflow(&self, items: List<Item>) {
        items.into_iter().for_each(|item| self.run(item));
    }

    fn notify(&self) {
        // Ordering: SeqCst pairs with the fence of a sleeper.
        fence(SeqCst);
        // Ordering: Relaxed; the fence orders it.
        if self.asleep.load(Relaxed) > 0 {
            self.call();
        }
    }
}

fn steal(stealer: &Stealer<Item>, hooks: &Scheduler) {
    let own = Queue::new(4);
    // Ordering: SeqCst, as in `end`.
    while !hooks.over.load(SeqCst) {
        match own.steal_from(stealer) {
            None => hooks.sleep(stealer),
            Some(batch) => {
                hooks.run(batch.first);
                while let Some(item) = own.take_any() {
                    hooks.run(item);
                }
            }
        }
    }
}

fn watch(stealer: &Stealer<Item>, hooks: &Scheduler) {
    for _ in 0..4 {
        let seen = stealer.look();
        thread::yield_now();
        if let Some(item) = seen.and_then(|seen| stealer.steal_slot(seen)) {
            hooks.run(item);
        }
    }
}

/// Each item is run once: by the worker, by a thief, by the watcher, or from the overflow.
///
/// Fails if the owner opens the slot and does not notify, if a displaced item or an overflow is
/// dropped, if the slot stays full at shutdown, or if a thief steals with a load and a store.
#[test]
fn a_worker_among_thieves_and_a_watcher_has_each_item_run_once() {
    model(|| {
        let queue = Queue::new(2);
        let hooks = Arc::new(Scheduler {
            asleep: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            calls: Mutex::new(0),
            called: Condvar::new(),
            ran: Mutex::new(Vec::new()),
            more_ran: Condvar::new(),
        });
        let beside = |work: fn(&Stealer<Item>, &Scheduler)| {
            let (stealer, hooks) = (queue.stealer(), hooks.clone());
            thread::spawn(move || work(&stealer, &hooks))
        };
        let others = [steal, steal, steal, watch].map(beside);
        for n in [0, 2, 4] {
            queue.push_back(item(n), &*hooks);
            queue.push_next(item(n + 1), &*hooks);
        }
        // One item runs and yields, and then the next one does the same.
        for _ in 0..2 {
            if let Some(next) = queue.next(&*hooks) {
                queue.requeue(next.item, &*hooks);
            }
        }
        // The worker stops in the middle of this item.
        let long = queue.next(&*hooks);
        queue.push_next(item(6), &*hooks);
        queue.open_slot(&*hooks);
        hooks.wait_for(if long.is_some() { 6 } else { 7 });
        if let Some(long) = long {
            hooks.run(long.item);
        }
        // The worker shuts down while the other threads still run.
        queue.push_next(item(7), &*hooks);
        queue.push_next(item(8), &*hooks);
        hooks.end();
        let mut ran = rest(&queue);
        assert!(queue.is_empty());
        for other in others {
            other.join().unwrap();
        }
        ran.append(&mut hooks.ran.lock());
        assert_each_once(ran, 9);
    });
}
