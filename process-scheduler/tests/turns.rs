//! The order in which one worker runs its processes, and the number of steps that each makes in a
//! row. The first process holds the worker until all others are queued, so the order is the same on
//! each machine.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use process_scheduler::{
    Address, Event, EventsOf, Handle, NoCommand, OutputOf, Process, Scheduler, Step, StepOf,
};
use std::sync::{Arc, Mutex, mpsc};

/// The numbers of the processes, in the order of their steps.
type Log = Arc<Mutex<Vec<usize>>>;

/// A process that always continues, until all processes together have made `most` steps.
struct Busy {
    number: usize,
    log: Log,
    most: usize,
    done: mpsc::Sender<usize>,
}

impl Process for Busy {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        assert!(!events.any(|event| matches!(event, Event::Cancel(_))));
        let mut log = self.log.lock().unwrap();
        if log.len() >= self.most {
            self.done.send(self.number).unwrap();
            return Step::Done;
        }
        log.push(self.number);
        Step::Continue
    }
}

/// Blocks the only worker in a step until the sender is dropped.
fn block_worker(scheduler: &Scheduler) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let gate = scheduler
        .spawn_fn(move |(), _| {
            begin.send(()).unwrap();
            let _ = held.recv();
        })
        .unwrap();
    gate.try_send(()).unwrap();
    begun.recv().unwrap();
    release
}

fn one_worker(budget: u32) -> Scheduler {
    let builder = Scheduler::builder().workers(1);
    builder.step_budget(budget).build()
}

/// Runs `count` busy processes, and returns the lengths of the runs of steps of one process.
fn runs_of_busy(scheduler: &Scheduler, count: usize, most: usize) -> Vec<(usize, usize)> {
    let (log, (done, ended)) = (Log::default(), mpsc::channel());
    let release = block_worker(scheduler);
    for number in 0..count {
        let (log, done) = (log.clone(), done.clone());
        let busy = Busy {
            number,
            log,
            most,
            done,
        };
        scheduler.spawn(busy).unwrap();
    }
    drop((release, done));
    assert_eq!(ended.iter().count(), count);
    let log = log.lock().unwrap();
    let runs = log.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len())).collect()
}

/// Three processes fit into one batch of the injector, 17 fill it, and 40 take three.
///
/// Fails if a fair pick cuts a slice short, or if it takes a process before older ones.
#[test]
fn processes_that_always_continue_take_turns_of_a_whole_slice() {
    for budget in [1, 7, 32, 61] {
        for count in [2, 3, 17, 40] {
            let scheduler = one_worker(budget);
            let budget = budget as usize;
            let rounds = 6;
            let runs = runs_of_busy(&scheduler, count, rounds * count * budget);
            let turns = (0..rounds * count).map(|turn| (turn % count, budget));
            assert!(runs.iter().copied().eq(turns), "{budget} {count}: {runs:?}");
        }
    }
}

/// Queues `count` processes from outside, each of which logs its number once.
fn queue_from_outside(scheduler: &Scheduler, count: usize, log: &mpsc::Sender<usize>) {
    for number in 0..count {
        let log = log.clone();
        let process = scheduler
            .spawn_fn(move |(), _| log.send(number).unwrap())
            .unwrap();
        process.try_send(()).unwrap();
    }
}

/// Fails if the worker takes the newest process of a batch before the others, or one of the
/// injector before an older one of its deque.
#[test]
fn processes_from_outside_run_in_the_order_of_their_wakes() {
    let scheduler = one_worker(32);
    let (log, order) = mpsc::channel();
    let release = block_worker(&scheduler);
    queue_from_outside(&scheduler, 200, &log);
    drop((release, log));
    assert!(order.iter().take(200).eq(0..200));
}

/// Makes two processes that send each message to each other, less one, until it is 0. So the
/// worker's deque always has a fresh process. Each logs `number` for each message.
fn ping_pong(handle: &Handle, log: &Log, number: usize) -> [Address<u32>; 2] {
    let players = Arc::<Mutex<Vec<Address<u32>>>>::default();
    let pair = [1, 0].map(|rival: usize| {
        let (players, log) = (players.clone(), log.clone());
        let player = handle.spawn_fn(move |left: u32, _| {
            log.lock().unwrap().push(number);
            match left {
                0 => players.lock().unwrap().clear(),
                _ => players.lock().unwrap()[rival].try_send(left - 1).unwrap(),
            }
        });
        player.unwrap()
    });
    players.lock().unwrap().extend(pair.iter().cloned());
    pair
}

/// Two processes wake each other all the time, and 100 processes from outside were ready before.
///
/// Fails if a fair pick takes the newest process of a batch, or if there is no fair pick.
#[test]
fn processes_from_outside_keep_their_order_beside_wakes() {
    let scheduler = one_worker(32);
    let (log, order) = mpsc::channel();
    let release = block_worker(&scheduler);
    let [player, _] = ping_pong(&scheduler.handle(), &Log::default(), 0);
    player.try_send(100_000).unwrap();
    queue_from_outside(&scheduler, 100, &log);
    drop((release, log));
    let order: Vec<_> = order.iter().take(100).collect();
    assert!(order.iter().copied().eq(0..100), "{order:?}");
}

/// A process that always continues is the oldest of the deque, beside two that wake each other, and
/// the injector is empty.
///
/// Fails if a fair pick takes the deque's oldest process, and then the same one from the injector.
#[test]
fn process_that_always_continues_makes_no_second_slice_in_a_row() {
    let scheduler = one_worker(32);
    let (log, (done, ended)) = (Log::default(), mpsc::channel());
    let handle = scheduler.handle();
    let spawner = scheduler
        .spawn_fn({
            let log = log.clone();
            move |(), _| {
                let (log, done) = (log.clone(), done.clone());
                let busy = Busy {
                    number: 0,
                    log: log.clone(),
                    most: 5_000,
                    done,
                };
                handle.spawn(busy).unwrap();
                let [player, _] = ping_pong(&handle, &log, 1);
                player.try_send(5_000).unwrap();
            }
        })
        .unwrap();
    spawner.try_send(()).unwrap();
    assert_eq!(ended.recv(), Ok(0));
    let log = log.lock().unwrap();
    let last_wake = log.iter().rposition(|number| *number == 1).unwrap();
    let beside = log[..last_wake].chunk_by(|a, b| a == b);
    let longest = beside.filter(|run| run[0] == 0).map(<[_]>::len).max();
    assert_eq!(longest, Some(32));
}
