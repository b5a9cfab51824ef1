//! An executor with two classes of tasks, from the parts. Urgent tasks run first. One turn in eight
//! is for the rest, so that no task starves.
mod cli;

use queue_global::Injector;
use std::{cell::RefCell, future::Future, pin::pin, rc::Rc, sync::Arc, task::Context, thread};
use task_header::{JoinHandle, Node, Notified, Owned, Ran, Schedule, WakeKind};

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Urgent,
    Rest,
}

struct Queues {
    urgent: Injector<Node<Scheduler>>,
    rest: Injector<Node<Scheduler>>,
    thread: thread::Thread,
}

impl Queues {
    fn of(&self, class: Class) -> &Injector<Node<Scheduler>> {
        match class {
            Class::Urgent => &self.urgent,
            Class::Rest => &self.rest,
        }
    }
}

impl waker_vtable::WakeRef for Queues {
    fn wake(&self) {
        self.thread.unpark();
    }
}

/// Scheduler of a task. It holds the task's class, so that a wake finds the right queue.
#[derive(Clone)]
struct Scheduler {
    queues: Arc<Queues>,
    class: Class,
}

impl Schedule for Scheduler {
    fn schedule(task: Notified<Self>, _why: WakeKind) {
        let Self { queues, class } = task.scheduler().clone();
        queues.of(class).requeue(task);
        queues.thread.unpark();
    }
}

struct Executor {
    queues: Arc<Queues>,
    owned: Owned<Scheduler>,
    turn: u32,
}

impl Executor {
    fn new() -> Self {
        let queues = Arc::new(Queues {
            urgent: Injector::new(),
            rest: Injector::new(),
            thread: thread::current(),
        });
        let owned = Owned::new(waker_vtable::from_arc(queues.clone()));
        Self {
            queues,
            owned,
            turn: 0,
        }
    }

    fn spawn<F>(&self, class: Class, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let queues = self.queues.clone();
        let scheduler = Scheduler { queues, class };
        let (task, join) = task_header::new(future, scheduler);
        task.schedule();
        join
    }

    /// Takes the next task. In seven of eight turns it looks for an urgent task first.
    fn next(&mut self) -> Option<Notified<Scheduler>> {
        self.turn = self.turn.wrapping_add(1);
        let Queues { urgent, rest, .. } = &*self.queues;
        if self.turn % 8 == 0 {
            rest.pop().or_else(|| urgent.pop())
        } else {
            urgent.pop().or_else(|| rest.pop())
        }
    }

    fn block_on<T>(&mut self, main: JoinHandle<T>) -> T {
        let waker = waker_vtable::from_arc(self.queues.clone());
        let mut main = pin!(main);
        loop {
            if let std::task::Poll::Ready(output) =
                main.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return output.expect("no task panics here");
            }
            while let Some(task) = self.next() {
                if let Ran::Notified(again) = self.owned.run(task) {
                    again.schedule();
                }
            }
            thread::park();
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.owned.watch_releases();
        loop {
            self.owned.cancel_all();
            while let Some(task) = self.next() {
                self.owned.cancel(task);
            }
            self.owned.drain();
            if self.owned.is_empty() {
                return;
            }
            thread::yield_now(); // Another thread has woken a task, and is about to queue it.
        }
    }
}

fn main() -> std::process::ExitCode {
    cli::demo(
        "Runs tasks of two classes: one turn in eight is for the rest.\n\nUsage: assemble_priority",
        demo,
    )
}

fn demo() {
    thread_local!(static RAN: Rc<RefCell<Vec<Class>>> = Rc::default());
    let mut executor = Executor::new();
    let all: Vec<_> = [(Class::Rest, 20), (Class::Urgent, 21)]
        .into_iter()
        .flat_map(|(class, n)| (0..n).map(move |_| class))
        .map(|class| {
            executor.spawn(class, async move {
                RAN.with(|ran| ran.borrow_mut().push(class))
            })
        })
        .collect();
    let main = executor.spawn(Class::Rest, async move {
        for task in all {
            task.await.unwrap();
        }
    });
    executor.block_on(main);
    let ran = RAN.with(|ran| ran.take());
    let letters: String = ran
        .iter()
        .map(|class| if *class == Class::Urgent { 'U' } else { 'r' })
        .collect();
    println!("spawned: 20 of the rest, then 21 urgent ones\nran:     {letters}");
    assert_eq!(&letters[..16], "UUUUUUUrUUUUUUUr");
    assert_eq!(ran.len(), 41);
}
