//! Models of one task with more threads than the model checker takes.
//!
//! Two threads wake the task, one by value and one by reference. A third thread aborts the task, or
//! drops its abort handle; a fourth awaits the task; two more run it. If a wake is lost, the
//! threads that run or await the task wait forever.
use crate::{JoinHandle, Notified, Ran, Schedule, WakeKind};
use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Wake, Waker},
};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    model,
    sync::{Arc, Condvar, Mutex},
    thread::{self, Thread},
};

/// A queue with room for one task, at which runners wait.
#[derive(Clone)]
struct Line(Arc<(Mutex<Place>, Condvar)>);

enum Place {
    Empty,
    Task(Notified<Line>),
    /// The task is complete.
    Over,
}

impl Line {
    fn put(&self, task: Notified<Self>) {
        let (place, changed) = &*self.0;
        let before = std::mem::replace(&mut *place.lock(), Place::Task(task));
        assert!(
            matches!(before, Place::Empty),
            "two `Notified` of one task, or one of a task that is done"
        );
        changed.notify_all();
    }

    fn take(&self) -> Option<Notified<Self>> {
        let (place, changed) = &*self.0;
        let mut place = place.lock();
        loop {
            match std::mem::replace(&mut *place, Place::Empty) {
                Place::Task(task) => return Some(task),
                Place::Empty => place = changed.wait(place),
                Place::Over => {
                    *place = Place::Over;
                    return None;
                }
            }
        }
    }

    /// Runs the task until it is complete.
    fn run(&self) {
        while let Some(task) = self.take() {
            match task.run() {
                Ran::Notified(task) => self.put(task),
                Ran::Pending => {}
                Ran::Complete => {
                    *self.0.0.lock() = Place::Over;
                    self.0.1.notify_all();
                }
            }
        }
    }
}

impl Schedule for Line {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let line = task.scheduler().clone();
        line.put(task);
    }
}

const CONDITIONS: usize = 4;

#[derive(Default)]
struct Record {
    conditions: [AtomicBool; CONDITIONS],
    /// Whether a thread polls the task now.
    polled: AtomicBool,
    futures_dropped: AtomicUsize,
    outputs_made: AtomicUsize,
    outputs_dropped: AtomicUsize,
}

impl Record {
    /// Sets a condition. The store is Relaxed, so that only the wake that follows orders it.
    fn meet(&self, condition: usize) {
        self.conditions[condition].store(true, Relaxed);
    }
}

/// A future that is ready when all conditions are set. Its first poll stores a waker for the other
/// threads.
struct All {
    record: Arc<Record>,
    waker: Arc<Mutex<Option<Waker>>>,
    asked: bool,
}

impl Future for All {
    type Output = Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        let record = self.record.clone();
        let other = record.polled.swap(true, Relaxed);
        assert!(!other, "two polls at once");
        if !self.asked {
            self.asked = true;
            *self.waker.lock() = Some(cx.waker().clone());
        }
        let all = record.conditions.iter().all(|met| met.load(Relaxed));
        record.polled.store(false, Relaxed);
        if !all {
            return Poll::Pending;
        }
        record.outputs_made.fetch_add(1, Relaxed);
        Poll::Ready(Output(record))
    }
}

impl Drop for All {
    fn drop(&mut self) {
        self.record.futures_dropped.fetch_add(1, Relaxed);
    }
}

struct Output(Arc<Record>);

impl Drop for Output {
    fn drop(&mut self) {
        self.0.outputs_dropped.fetch_add(1, Relaxed);
    }
}

struct Unpark {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        // Ordering: SeqCst, because the flag is no part of the protocol.
        self.woken.store(true, SeqCst);
        self.thread.unpark();
    }
}

/// Waits for the task and returns whether the task had an output. After a lost wake, the thread
/// stays parked.
fn wait(join: JoinHandle<Output>) -> bool {
    let mut join = pin!(join);
    let unpark = std::sync::Arc::new(Unpark {
        woken: AtomicBool::new(false),
        thread: thread::current(),
    });
    let waker = Waker::from(unpark.clone());
    let mut poll = |waker| join.as_mut().poll(&mut Context::from_waker(waker));
    // Registers another waker first, so that the waker changes while the task completes.
    let mut answer = poll(Waker::noop());
    loop {
        if let Poll::Ready(answer) = answer {
            return answer.is_ok();
        }
        answer = poll(&waker);
        if answer.is_pending() {
            while !unpark.woken.swap(false, SeqCst) {
                thread::park();
            }
        }
    }
}

fn hands(aborts: bool) {
    let line = Line(Arc::new((Mutex::new(Place::Empty), Condvar::new())));
    let (record, waker) = (Arc::new(Record::default()), Arc::new(Mutex::new(None)));
    let all = All {
        record: record.clone(),
        waker: waker.clone(),
        asked: false,
    };
    let (task, join) = crate::new(all, line.clone());
    let abort = join.abort_handle();
    assert!(matches!(task.run(), Ran::Pending));
    let by_value = waker.lock().take().expect("the task was polled");
    let by_ref = by_value.clone();
    let (first, second) = (record.clone(), record.clone());
    let runner = line.clone();
    let threads = [
        thread::spawn(move || {
            let again = by_value.clone();
            first.meet(0);
            again.wake();
            first.meet(1);
            by_value.wake();
        }),
        thread::spawn(move || {
            second.meet(2);
            by_ref.wake_by_ref();
            second.meet(3);
            by_ref.wake_by_ref();
        }),
        thread::spawn(move || {
            if aborts {
                abort.abort();
            }
        }),
        thread::spawn(move || runner.run()),
    ];
    let joiner = thread::spawn(move || wait(join));
    line.run();
    let has_output = joiner.join().unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(has_output || aborts);
    assert_eq!(record.futures_dropped.load(Relaxed), 1);
    let outputs = usize::from(has_output);
    assert_eq!(record.outputs_made.load(Relaxed), outputs);
    assert_eq!(record.outputs_dropped.load(Relaxed), outputs);
    drop(waker);
    assert_eq!(Arc::strong_count(&line.0), 1, "the task is still there");
}

/// Fails if `pend` ignores NOTIFIED, if a task is submitted although NOTIFIED was set, if
/// `set_join_waker` does not check COMPLETE, or if a completion does not wake the join waker.
#[test]
fn task_with_many_threads_completes_once() {
    model(|| hands(false));
}

/// Fails if an abort sets CANCELLED without NOTIFIED, or if a wake by value does not check whether
/// its reference was the last.
#[test]
fn task_with_many_threads_completes_or_aborts_once() {
    model(|| hands(true));
}
