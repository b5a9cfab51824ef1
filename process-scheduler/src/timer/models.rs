//! Models of the role of the keeper. The deadlines are so far away that no model reaches one: a
//! worker that parks with a limit would serve its deadline.
use super::*;
use sync_shim::{Model, model, model_must_fail, sync::Arc, thread};
use worker_idle::{
    Idle,
    park::{Park, ThreadPark},
};

/// A tick that never comes.
const FAR: u64 = 1 << 40;

struct Sleepers {
    timer: Timer,
    idle: Idle,
    wakers: Vec<Waker>,
}

impl Sleepers {
    fn new(parks: &[ThreadPark]) -> Arc<Self> {
        Arc::new(Self {
            timer: Timer::new(),
            idle: Idle::new(parks.len()),
            wakers: parks.iter().map(Park::waker).collect(),
        })
    }

    fn notify(&self) {
        if let Some(worker) = self.idle.notify() {
            self.wakers[worker].wake_by_ref();
        }
    }

    /// Arms a deadline, as `Deadline::poll` does.
    fn arm(&self) {
        let (_, alert) = self.timer.insert(FAR, Waker::noop().clone()).unwrap();
        match alert {
            Alert::Nobody => {}
            Alert::Keeper(worker) => self.wakers[worker].wake_by_ref(),
            Alert::Sleeper => self.notify(),
        }
    }

    /// Goes to sleep, as `Worker::park` does. Returns once this worker waits for the deadline, or
    /// sleeps beside a keeper.
    fn sleep(&self, worker: usize, mut park: ThreadPark) {
        self.idle.sleep(worker, false);
        loop {
            match self.timer.keep(worker) {
                Some(Duration::MAX) => park.park(),
                Some(_) | None => return,
            }
            if self.idle.was_notified(worker) {
                self.idle.sleep(worker, true);
            }
        }
    }
}

/// A thread arms the first deadline while the only worker goes to sleep: the worker waits for it.
///
/// Fails if a thread that arms a deadline wakes no keeper, or notifies nobody if there is none.
#[test]
fn first_deadline_against_the_sleep_of_a_worker_is_kept() {
    model(|| {
        let park = ThreadPark::new();
        let sleepers = Sleepers::new(std::slice::from_ref(&park));
        let arms = {
            let sleepers = sleepers.clone();
            thread::spawn(move || sleepers.arm())
        };
        sleepers.sleep(0, park);
        arms.join().unwrap();
    });
}

/// Two workers go to sleep while a thread arms a deadline: one of them waits for it.
///
/// The model has a bound. It does not finish in a minute without one.
///
/// Fails if a worker leaves the role when it parks again for another deadline.
#[test]
fn deadline_against_two_sleeps_has_one_keeper() {
    Model::new().bound(2).check(|| {
        let parks = [ThreadPark::new(), ThreadPark::new()];
        let sleepers = Sleepers::new(&parks);
        let [first, second] = parks;
        let other = {
            let sleepers = sleepers.clone();
            thread::spawn(move || sleepers.sleep(1, second))
        };
        let arms = {
            let sleepers = sleepers.clone();
            thread::spawn(move || sleepers.arm())
        };
        sleepers.sleep(0, first);
        other.join().unwrap();
        arms.join().unwrap();
        assert!(!sleepers.timer.lacks_keeper());
    });
}

/// The keeper was woken for a process. It leaves the role and its search, while a thread arms a
/// deadline. The other worker sleeps, and must be woken to keep the time. If `looks`, the keeper
/// looks whether the timer lacks a keeper, as `Worker::serve` does.
fn leave_against_an_arm(looks: bool) {
    let sleepers = Sleepers::new(&[ThreadPark::new(), ThreadPark::new()]);
    sleepers.idle.sleep(0, false);
    assert!(sleepers.timer.keep(0).is_some());
    sleepers.idle.sleep(1, false);
    assert_eq!(sleepers.timer.keep(1), None);
    assert_eq!(sleepers.idle.notify(), Some(0));
    let arms = {
        let sleepers = sleepers.clone();
        thread::spawn(move || sleepers.arm())
    };
    sleepers.timer.leave();
    sleepers.idle.stop_searching();
    if looks && sleepers.timer.lacks_keeper() {
        sleepers.notify();
    }
    arms.join().unwrap();
    let is_woken = sleepers.idle.was_notified(1);
    assert!(is_woken, "nobody keeps the time");
}

/// Fails if the store of `insert` or of `leave` comes after the notification, or if `leave` forgets
/// the entries of the wheel.
#[test]
fn deadline_against_the_leave_of_the_keeper_wakes_a_sleeper() {
    model(|| leave_against_an_arm(true));
}

/// If the worker that leaves the role does not look, nobody keeps the time during its step.
#[test]
fn keeper_that_leaves_without_a_look_is_not_replaced() {
    model_must_fail("nobody keeps the time", || leave_against_an_arm(false));
}
