//! Models of the queues around the processes: a submission against a worker that parks, the deque
//! under the scheduler, and a shutdown against senders. They use the crate's own cores, the queues
//! and the idle protocol as the worker does, in small.
use crate::{
    core::Core,
    lane::{Mailbox, Taken},
    state::{Phase, Wait},
};
use queue_global::ValueInjector;
use queue_spmc::{Steal, deque::Worker};
use sync_shim::{model, sync::Arc, thread};
use worker_idle::{
    Idle,
    park::{Park, ThreadPark, Unpark},
};

struct Token;

type Cell = Core<u32, u32, Token>;

fn waiting() -> Cell {
    let core = Cell::new(Mailbox::Unbounded);
    core.state.begin();
    assert!(core.suspend(Token, Wait::Idle).is_none());
    core
}

/// A sender wakes an idle process, pushes its token to the injector and notifies, while the only
/// worker goes to sleep as `Work::wait` does. The process is run.
///
/// Fails with: a look at the injector before the announcement of the sleep alone.
#[test]
fn submit_against_park_is_run() {
    model(|| {
        struct Shared {
            cell: Cell,
            injector: ValueInjector<Token>,
            idle: Idle,
        }
        let shared = Arc::new(Shared {
            cell: waiting(),
            injector: ValueInjector::new(),
            idle: Idle::new(1),
        });
        let mut park = ThreadPark::new();
        let unparker = park.unparker();
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                let sent = shared.cell.send(7).ok().unwrap();
                shared.injector.requeue(sent.submit.unwrap());
                if shared.idle.notify().is_some() {
                    unparker.unpark();
                }
            })
        };
        let mut searching = false;
        let _token = loop {
            if let Some(token) = shared.injector.pop() {
                break token;
            }
            shared.idle.sleep(0, searching);
            searching = true;
            if shared.injector.is_empty() {
                // If it is chosen before it parks it may not see the item yet: it looks again.
                while !shared.idle.was_notified(0) {
                    park.park();
                }
            } else {
                shared.idle.wake_self(0);
            }
        };
        shared.cell.state.begin();
        let mut taken = Taken::default();
        shared.cell.messages.take(&mut taken);
        assert_eq!(taken.next(), Some(7));
        sender.join().unwrap();
    });
}

/// The owner pops, and a thief steals, two ready processes from a deque that grows: each has one
/// owner at a time, and steps once.
#[test]
fn pop_against_steal_while_growing_runs_each_once() {
    model(|| {
        let cells = Arc::new([waiting(), waiting(), waiting()]);
        let mut deque = Worker::with_capacity(2);
        let stealer = deque.stealer();
        let wake = |deque: &mut Worker<(usize, Token)>, i: usize| {
            let sent = cells[i].send(7).ok().unwrap();
            deque.push((i, sent.submit.unwrap()));
        };
        let run = |cells: &[Cell; 3], i: usize, token: Token| {
            cells[i].state.begin();
            let mut taken = Taken::default();
            cells[i].messages.take(&mut taken);
            let n = taken.count();
            let left = cells[i].suspend(token, Wait::Idle);
            assert!(left.is_none());
            n
        };
        wake(&mut deque, 0);
        wake(&mut deque, 1);
        let thief = {
            let cells = cells.clone();
            thread::spawn(move || match stealer.steal() {
                Steal::Success {
                    first: (i, token), ..
                } => run(&cells, i, token),
                _ => 0,
            })
        };
        wake(&mut deque, 2);
        let mut steps = 0;
        while let Some((i, token)) = deque.pop() {
            steps += run(&cells, i, token);
        }
        steps += thief.join().unwrap();
        while let Some((i, token)) = deque.pop() {
            steps += run(&cells, i, token);
        }
        assert_eq!(steps, 3);
    });
}

/// A shutdown cancels, and then kills, an idle process, while a sender sends: whoever gets the
/// token submits it, the end returns what was not delivered, and one of them has the message.
#[test]
fn shutdown_against_send_ends_the_process_once() {
    model(|| {
        let cell = Arc::new(waiting());
        let sender = {
            let cell = cell.clone();
            thread::spawn(move || match cell.send(7) {
                Ok(sent) => (true, sent.submit),
                Err(_) => (false, None),
            })
        };
        // It is killed at the deadline: by the token, if the sender has not got it.
        let (sent, token) = match cell.kill(true) {
            Some(_token) => {
                cell.state.begin();
                assert!(cell.state.is_final());
                let (_, left) = cell.end();
                let (sent, token) = sender.join().unwrap();
                assert!(token.is_none(), "two tokens");
                assert_eq!(sent, left.count() == 1);
                return;
            }
            None => sender.join().unwrap(),
        };
        assert!(sent && token.is_some(), "no token");
        cell.state.begin();
        assert!(cell.state.is_final());
        let (_, left) = cell.end();
        assert_eq!(left.count(), 1);
        assert_eq!(cell.state.phase(), Phase::Done);
    });
}
