//! Models of the cell's shared part. The *worker* of a model runs the process as the scheduler
//! does: it begins a run, takes the events of both lanes, and suspends the process. The token is a
//! value that one thread at a time has.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::{
    SendError,
    state::{MESSAGE, Phase},
};
use std::task::Waker;
use sync_shim::{
    atomic::{AtomicBool, AtomicU32, Ordering},
    model, model_must_fail,
    sync::Arc,
    thread,
};

struct Token;

type Cell = ProcessCore<u32, u32, Token>;

/// Suspends a process that the caller runs.
fn suspend(core: &Cell, wait: Wait) -> Option<Token> {
    // SAFETY: the models run the process that they suspend, and keep its core.
    unsafe { ProcessCore::suspend(core, Token, wait) }
}

/// Stops a process that the caller runs.
fn stop(core: &Cell) -> Option<Token> {
    // SAFETY: as above.
    unsafe { ProcessCore::stop(core, Token) }
}

/// Sends a message as the cell does (`cell/notify.rs`), to an unbounded mailbox.
pub(crate) fn send<T>(
    core: &ProcessCore<u32, u32, T>,
    message: u32,
) -> Result<Option<T>, SendError<u32>> {
    let (pushed, dropped) = core.messages.push(message)?;
    assert_eq!(dropped, None);
    Ok(match pushed {
        Pushed::First => core.notify(MESSAGE),
        Pushed::Behind => None,
    })
}

/// A process: its core, and the messages that the owner of the token has taken.
struct Process {
    core: Cell,
    got: UnsafeCell<Vec<u32>>,
    /// The number of tokens that wait in a queue.
    queued: AtomicU32,
}

// SAFETY: only the owner of the token touches `got`. The models check this.
unsafe impl Sync for Process {}
// SAFETY: as above.
unsafe impl Send for Process {}

impl Process {
    /// Makes a process that waits, with its token in the cell.
    fn waiting(wait: Wait) -> Arc<Self> {
        let process = Self {
            core: ProcessCore::new(Mailbox::Unbounded),
            got: UnsafeCell::new(Vec::new()),
            queued: AtomicU32::new(0),
        };
        process.core.state.begin();
        assert!(suspend(&process.core, wait).is_none());
        Arc::new(process)
    }

    /// Makes a process that runs. The caller has the token.
    fn running() -> Arc<Self> {
        let process = Self::waiting(Wait::Idle);
        let _token = process.core.wake().unwrap();
        process.core.state.begin();
        process
    }

    fn submit(&self, token: Option<Token>) {
        if token.is_some() {
            // Ordering: AcqRel, as a push to a queue has it. Pairs with the swap of `run_queued`.
            self.queued.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn send(&self, value: u32) {
        if let Ok(token) = send(&self.core, value) {
            self.submit(token);
        }
    }

    fn complete(&self, value: u32) {
        if let Ok(token) = self.core.signal(value) {
            self.submit(token);
        }
    }

    /// Takes all signals and messages, as a step does. The caller has the token.
    fn step(&self) {
        self.got.with_mut(|got| {
            // SAFETY: the caller has the token.
            let got = unsafe { &mut *got };
            got.extend(self.core.take_urgent());
            let mut taken = Taken::default();
            self.core.messages.take(&mut taken);
            got.extend(taken);
        });
    }

    /// Runs the process as long as its token is queued. Returns the number of runs.
    fn run_queued(&self, wait: Wait) -> u32 {
        let mut runs = 0;
        // Ordering: AcqRel, as a pop from a queue has it. Pairs with the addition of `submit`.
        while self.queued.swap(0, Ordering::AcqRel) > 0 {
            runs += 1;
            self.core.state.begin();
            self.step();
            self.submit(suspend(&self.core, wait));
        }
        runs
    }

    fn got(&self) -> Vec<u32> {
        // SAFETY: the other threads have ended, or this thread has seen that the process is done.
        self.got.with(|got| unsafe { (*got).clone() })
    }
}

/// A completion arrives while the worker steps the process and then blocks it.
///
/// Fails if a suspension ignores the bits that notifiers set.
#[test]
fn complete_against_running_to_blocked_is_delivered() {
    model(|| completes_against(Wait::Blocked));
}

/// A completion arrives while the worker steps the process and then makes it idle.
///
/// Fails if a suspension ignores the bits that notifiers set.
#[test]
fn complete_against_running_to_idle_is_delivered() {
    model(|| completes_against(Wait::Idle));
}

fn completes_against(wait: Wait) {
    let process = Process::running();
    let handler = {
        let process = process.clone();
        thread::spawn(move || process.complete(7))
    };
    process.step();
    process.submit(suspend(&process.core, wait));
    process.run_queued(wait);
    handler.join().unwrap();
    process.run_queued(wait);
    assert_eq!(process.got(), [7]);
}

/// A completion arrives while the worker requeues the process, whose next step blocks.
#[test]
fn complete_against_running_to_ready_is_delivered() {
    model(|| {
        let process = Process::running();
        let handler = {
            let process = process.clone();
            thread::spawn(move || process.complete(7))
        };
        process.core.state.requeue();
        process.submit(Some(Token));
        process.run_queued(Wait::Blocked);
        handler.join().unwrap();
        process.run_queued(Wait::Blocked);
        assert_eq!(process.got(), [7]);
    });
}

/// Fails if the worker puts the token into the cell after its exchange.
#[test]
fn send_against_running_to_idle_is_delivered() {
    model(|| {
        let process = Process::running();
        let sender = {
            let process = process.clone();
            thread::spawn(move || process.send(1))
        };
        process.step();
        process.submit(suspend(&process.core, Wait::Idle));
        sender.join().unwrap();
        process.run_queued(Wait::Idle);
        assert_eq!(process.got(), [1]);
    });
}

/// Fails if each push notifies, or if each notifier submits a token.
#[test]
fn two_senders_to_an_idle_process_wake_it_once() {
    model(|| {
        let process = Process::waiting(Wait::Idle);
        let senders = [1, 2].map(|value| {
            let process = process.clone();
            thread::spawn(move || process.send(value))
        });
        for sender in senders {
            sender.join().unwrap();
        }
        // Ordering: Relaxed, after the joins.
        assert_eq!(process.queued.load(Ordering::Relaxed), 1);
        process.run_queued(Wait::Idle);
        let mut got = process.got();
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
    });
}

/// Messages do not wake a blocked process; a signal does, and the process then receives both.
#[test]
fn message_and_signal_to_a_blocked_process_wake_it_once() {
    model(|| {
        let process = Process::waiting(Wait::Blocked);
        let sender = {
            let process = process.clone();
            thread::spawn(move || process.send(1))
        };
        process.complete(2);
        sender.join().unwrap();
        assert_eq!(process.run_queued(Wait::Blocked), 1);
        process.complete(3);
        process.run_queued(Wait::Blocked);
        assert_eq!(process.got(), [2, 1, 3]);
    });
}

/// A thread kills the process while the worker steps and suspends it: the worker or the killer gets
/// the token, once.
///
/// Fails if a suspension ignores KILL.
#[test]
fn kill_against_step_leaves_one_token() {
    model(|| {
        let process = Process::running();
        let killer = {
            let process = process.clone();
            thread::spawn(move || {
                let token = process.core.kill(false);
                process.submit(token);
            })
        };
        process.step();
        process.submit(suspend(&process.core, Wait::Idle));
        killer.join().unwrap();
        // Ordering: Relaxed, after the join.
        assert_eq!(process.queued.load(Ordering::Relaxed), 1);
        assert!(process.core.state.is_killed());
        process.core.state.begin();
        let _ = process.core.end();
        assert_eq!(process.core.state.phase(), Phase::Done);
    });
}

/// One thread kills a stopped process for good while the supervisor restarts it: one of them gets
/// the token, and the kill is not lost.
#[test]
fn kill_against_revive_leaves_one_token() {
    model(|| {
        let process = Process::running();
        assert!(stop(&process.core).is_none());
        let killer = {
            let process = process.clone();
            thread::spawn(move || process.core.kill(true).is_some())
        };
        let revived = process.core.revive().is_some();
        let killed = killer.join().unwrap();
        assert!(revived != killed, "one token");
        assert!(process.core.state.is_killed());
    });
}

/// A thread that sees that a process has ended also sees the writes of the process's steps.
///
/// Fails if `RunState::phase` is Relaxed.
#[test]
fn phase_of_an_ended_process_shows_what_it_did() {
    model(|| {
        let process = Process::running();
        let worker = {
            let process = process.clone();
            thread::spawn(move || {
                process.step();
                let _ = process.core.end();
            })
        };
        if process.core.state.phase() == Phase::Done {
            assert!(process.got().is_empty());
        }
        worker.join().unwrap();
    });
}

/// A completion of the first incarnation arrives while the process restarts: the second incarnation
/// can tell that the completion is stale.
///
/// Fails if a completer reads the incarnation only when it completes.
#[test]
fn full_stale_completion_against_restart_is_told() {
    model(|| {
        let process = Process::running();
        let asked_by = process.core.state.incarnation();
        let handler = {
            let process = process.clone();
            thread::spawn(move || {
                // `Complete` for the cell does the same: it rejects a completion that is stale
                // already, and marks any other with its incarnation.
                if process.core.state.incarnation() == asked_by {
                    process.complete(asked_by);
                }
            })
        };
        assert!(stop(&process.core).is_none());
        let token = process.core.revive();
        process.submit(token);
        process.run_queued(Wait::Idle);
        handler.join().unwrap();
        process.run_queued(Wait::Idle);
        let now = process.core.state.incarnation();
        assert_eq!(now, 1);
        assert!(process.got().iter().all(|incarnation| *incarnation != now));
    });
}

/// A thread sends while the process ends: the message is handed back, or the end returns it.
///
/// Fails if the end takes the lane and then closes it.
#[test]
fn send_against_end_is_returned_or_a_dead_letter() {
    model(|| {
        let process = Process::running();
        let sender = {
            let process = process.clone();
            thread::spawn(move || match send(&process.core, 1) {
                Ok(token) => {
                    assert!(token.is_none(), "an ended process has no token");
                    true
                }
                Err(refused) => {
                    assert_eq!(refused, SendError::Closed(1));
                    false
                }
            })
        };
        process.step();
        let (_, left) = process.core.end();
        let taken = process.got().len() + left.count();
        assert_eq!(taken == 1, sender.join().unwrap());
    });
}

/// A sender waits for room in a bounded lane: the take wakes it.
#[test]
fn bounded_send_against_take_gets_room() {
    model(|| {
        let core = Arc::new(ProcessCore::<u32, u32, Token>::new(Mailbox::Bounded(1)));
        assert_eq!(send(&core, 0).map(|token| token.is_some()), Ok(false));
        let woken = std::sync::Arc::new(Woken::default());
        let sender = {
            let (core, woken) = (core.clone(), woken.clone());
            thread::spawn(move || {
                let mut message = Some(1);
                let polled = core
                    .messages
                    .poll_push(&mut message, &mut None, &Waker::from(woken));
                polled.is_ready()
            })
        };
        let mut taken = Taken::default();
        core.messages.take(&mut taken);
        let sent = sender.join().unwrap();
        let woken = woken.0.load(std::sync::atomic::Ordering::Relaxed);
        assert!(sent || woken, "the sender waits forever");
    });
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// This protocol has a bug. The wake-up is a flag that one exchange takes, and the phase is another
/// atomic. The worker clears the flag before it publishes that the process waits, so a notification
/// in between is lost.
#[test]
fn single_shot_wake_beside_the_phase_loses_an_event() {
    model_must_fail("the event is lost", || {
        struct SingleShot {
            waits: AtomicBool,
            wake: AtomicBool,
            events: Queue<u32>,
        }
        let process = Arc::new(SingleShot {
            waits: AtomicBool::new(false),
            wake: AtomicBool::new(false),
            events: Queue::new(),
        });
        let handler = {
            let process = process.clone();
            thread::spawn(move || {
                let _ = process.events.push(7);
                process.wake.swap(true, Ordering::AcqRel);
                // True if it woke the process.
                process.waits.swap(false, Ordering::AcqRel)
            })
        };
        let mut got = process.events.take().count();
        if !process.wake.swap(false, Ordering::AcqRel) {
            process.waits.swap(true, Ordering::AcqRel);
        } else {
            got += process.events.take().count();
        }
        let woken = handler.join().unwrap();
        assert!(got > 0 || woken, "the event is lost");
    });
}
