//! Tests that make the monitor's rounds themselves: no test here waits for time to pass.
use crate::{
    Cause, Doorbell, Duty, EndSlices, Handoff, Monitor, Observed, Pause, Retake, Round, Sample,
    Stall, Stalls, State, Subject, Workers,
};
use std::{
    sync::{Arc, Mutex, OnceLock, mpsc},
    time::Duration,
};

/// Workers whose words a test sets.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<Vec<Sample>>>);

impl Board {
    fn of(workers: usize) -> Self {
        let board = Self::default();
        board.0.lock().unwrap().resize(workers, Sample::default());
        board
    }

    fn set(&self, worker: usize, state: State, polls: u64) {
        let mut all = self.0.lock().unwrap();
        all[worker] = Sample {
            state,
            polls,
            runs: polls,
            ..all[worker]
        };
    }

    fn call(&self, worker: usize, calls: u64) {
        let mut all = self.0.lock().unwrap();
        all[worker].state = State::Calling;
        all[worker].calls = calls;
    }
}

impl Workers for Board {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn sample(&self, worker: usize) -> Sample {
        self.0.lock().unwrap()[worker]
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Makes rounds from one time to another at the monitor's own pauses. Returns the times of the
/// rounds.
fn rounds(monitor: &mut Monitor<Board>, from: u64, to: u64) -> Vec<u64> {
    let (mut now, mut times) = (ms(from), Vec::new());
    while now <= ms(to) {
        times.push(now.as_millis() as u64);
        match monitor.round(now) {
            Pause::For(pause) => now += pause,
            Pause::UntilBusy => break,
        }
    }
    times
}

#[test]
fn pauses_double_while_workers_are_busy() {
    let board = Board::of(1);
    let mut monitor = Monitor::new(board.clone());
    board.set(0, State::Polling, 1);
    assert_eq!(rounds(&mut monitor, 0, 50), [0, 2, 6, 14, 24, 34, 44]);
}

#[test]
fn monitor_sleeps_once_all_workers_were_idle_for_a_while() {
    let board = Board::of(2);
    let mut monitor = Monitor::new(board.clone());
    board.set(0, State::Polling, 1);
    rounds(&mut monitor, 0, 100);
    board.set(0, State::Idle, 1);
    let times = rounds(&mut monitor, 100, 1_000);
    assert!(*times.last().unwrap() <= 300, "{times:?}");
    // A worker becomes busy: the pauses are short again.
    board.set(1, State::Polling, 1);
    assert_eq!(monitor.round(ms(5_000)), Pause::For(ms(1)));
}

#[test]
fn idle_worker_that_has_polled_since_keeps_the_monitor_awake() {
    let board = Board::of(1);
    let mut monitor = Monitor::new(board.clone());
    for round in 0..100 {
        board.set(0, State::Idle, round);
        assert!(matches!(monitor.round(ms(10 * round)), Pause::For(_)));
    }
}

fn slices(board: &Board) -> (Monitor<Board>, mpsc::Receiver<usize>) {
    let (sender, ended) = mpsc::channel();
    let duty = EndSlices::new(move |worker| sender.send(worker).unwrap());
    (Monitor::new(board.clone()).duty(duty), ended)
}

#[test]
fn run_of_10_ms_is_asked_to_end_once() {
    let board = Board::of(2);
    let (mut monitor, ended) = slices(&board);
    board.set(1, State::Polling, 7);
    board.set(0, State::Idle, 7);
    for now in 0..10 {
        let _ = monitor.round(ms(now));
    }
    assert!(ended.try_recv().is_err());
    for now in 10..100 {
        let _ = monitor.round(ms(now));
    }
    assert_eq!(ended.try_iter().collect::<Vec<_>>(), [1]);
    // The duty requests the end of the next run after another 10 ms.
    board.set(1, State::Polling, 8);
    for now in 100..120 {
        let _ = monitor.round(ms(now));
    }
    assert_eq!(ended.try_iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn round_comes_when_a_slice_ends() {
    let board = Board::of(1);
    let (mut monitor, ended) = slices(&board);
    board.set(0, State::Polling, 1);
    assert_eq!(rounds(&mut monitor, 0, 12), [0, 2, 6, 10]);
    assert_eq!(ended.try_iter().count(), 1);
}

#[test]
fn polls_that_inherit_a_slice_count_as_one_run() {
    let board = Board::of(1);
    let (mut monitor, ended) = slices(&board);
    for now in 0..=10 {
        board.0.lock().unwrap()[0] = Sample {
            state: State::Polling,
            polls: now,
            runs: 1,
            calls: 0,
        };
        let _ = monitor.round(ms(now));
    }
    assert_eq!(ended.try_iter().count(), 1);
}

fn retakes(board: &Board, has_work: bool) -> (Monitor<Board>, mpsc::Receiver<usize>) {
    let (sender, retaken) = mpsc::channel();
    let duty = Retake::new(
        move |_| has_work,
        move |worker| sender.send(worker).unwrap(),
    );
    (Monitor::new(board.clone()).duty(duty), retaken)
}

#[test]
fn call_with_work_waiting_is_retaken_after_two_rounds() {
    let board = Board::of(1);
    let (mut monitor, retaken) = retakes(&board, true);
    board.call(0, 1);
    assert_eq!(rounds(&mut monitor, 0, 1), [0, 1]);
    assert_eq!(retaken.try_iter().count(), 1);
}

#[test]
fn call_without_work_is_retaken_after_10_ms() {
    let board = Board::of(1);
    let (mut monitor, retaken) = retakes(&board, false);
    board.call(0, 1);
    rounds(&mut monitor, 0, 9);
    assert_eq!(retaken.try_iter().count(), 0);
    rounds(&mut monitor, 10, 10);
    assert_eq!(retaken.try_iter().count(), 1);
}

#[test]
fn short_calls_are_not_retaken() {
    let board = Board::of(1);
    let (mut monitor, retaken) = retakes(&board, true);
    for now in 0..100 {
        board.call(0, now + 1);
        assert_eq!(
            monitor.round(ms(now)),
            Pause::For(ms(1)),
            "the next may be long"
        );
    }
    assert_eq!(retaken.try_iter().count(), 0);
}

fn stalls(board: &Board) -> (Monitor<Board>, mpsc::Receiver<Stall>) {
    let (sender, reports) = mpsc::channel();
    let subject = |_| Some(Subject::default());
    let duty = Stalls::new(subject, move |stall: &Stall| {
        sender.send(stall.clone()).unwrap()
    });
    (Monitor::new(board.clone()).duty(duty), reports)
}

fn lasted(reports: &mpsc::Receiver<Stall>) -> Vec<u128> {
    reports
        .try_iter()
        .map(|stall| stall.lasted.as_millis())
        .collect()
}

#[test]
fn stalled_poll_is_reported_each_time_its_age_doubles() {
    let board = Board::of(1);
    let (mut monitor, reports) = stalls(&board);
    board.set(0, State::Polling, 3);
    rounds(&mut monitor, 0, 450);
    assert_eq!(lasted(&reports), [25, 50, 100, 200, 400]);
}

/// The poll begins right after a round, when the pauses are longest.
#[test]
fn stall_of_50_ms_is_reported_within_40() {
    let board = Board::of(1);
    let (mut monitor, reports) = stalls(&board);
    for now in 0..10 {
        board.set(0, State::Polling, now);
        let _ = monitor.round(ms(10 * now));
    }
    // The round at 90 ms saw the earlier poll. This one began at 91 ms.
    board.set(0, State::Polling, 11);
    let times = rounds(&mut monitor, 100, 131);
    assert_eq!(lasted(&reports), [25], "{times:?}");
}

#[test]
fn workers_that_poll_other_tasks_or_none_are_not_reported() {
    let board = Board::of(3);
    let (mut monitor, reports) = stalls(&board);
    board.set(1, State::Idle, 1);
    board.set(2, State::Awake, 1);
    for now in 0..500 {
        board.set(0, State::Polling, now);
        let _ = monitor.round(ms(now));
    }
    board.call(0, 1);
    rounds(&mut monitor, 500, 900);
    assert_eq!(lasted(&reports), [0; 0]);
}

/// Makes rounds of 60 ms in one poll, with this answer for each question about its subject. Returns
/// the reports. The first question comes at half of the threshold. A report asks before and after
/// it reads the cause.
fn reports_of_a_poll(answer: impl Fn(u64) -> Option<Subject> + Send + 'static) -> Vec<Stall> {
    let board = Board::of(1);
    let (sender, reports) = mpsc::channel();
    let mut asked = 0;
    let subject = move |_| {
        asked += 1;
        answer(asked)
    };
    let duty = Stalls::new(subject, move |stall: &Stall| {
        sender.send(stall.clone()).unwrap()
    });
    let mut monitor = Monitor::new(board.clone()).duty(duty);
    board.set(0, State::Polling, 3);
    rounds(&mut monitor, 0, 60);
    reports.try_iter().collect()
}

/// Returns a thread that sleeps for ever: a busy machine takes no CPU from it.
fn sleeping() -> Option<u32> {
    static THREAD: OnceLock<Option<u32>> = OnceLock::new();
    *THREAD.get_or_init(|| {
        let (sender, id) = mpsc::channel();
        std::thread::spawn(move || {
            sender.send(crate::thread_id()).unwrap();
            loop {
                std::thread::park();
            }
        });
        let id = id.recv().unwrap();
        // Until it sleeps it may wait for a CPU.
        while id.is_some_and(|id| !matches!(Cause::of(id, None), Cause::Blocked { .. })) {
            std::thread::yield_now();
        }
        id
    })
}

fn polls(task: u64, calls: u64) -> Option<Subject> {
    let thread = sleeping();
    Some(Subject {
        task: Some(task),
        thread,
        calls,
    })
}

#[test]
fn poll_that_is_in_a_call_at_its_report_is_not_reported() {
    for last in [1, 2] {
        let reports = reports_of_a_poll(move |asked| polls(7, 0).filter(|_| asked <= last));
        assert_eq!(reports, []);
    }
}

#[test]
fn poll_that_ends_during_its_report_is_not_reported() {
    // The poll ends during its first report. The poll after it is as old at the second report.
    let reports = reports_of_a_poll(|asked| polls(if asked <= 2 { 7 } else { 8 }, 0));
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].subject.task, Some(8));
}

/// Fails if a report has the cause of a call that began after the report did, and has ended. Also
/// fails if a poll is not reported because it always makes short calls.
#[test]
fn poll_that_makes_calls_during_its_report_has_no_cause() {
    let reports = reports_of_a_poll(|asked| polls(7, asked));
    assert_eq!(reports.len(), 2);
    for stall in reports {
        assert_eq!((stall.cause, stall.times), (Cause::Unknown, None));
    }
    let without_calls = reports_of_a_poll(|_| polls(7, 3));
    assert_eq!(without_calls.len(), 2);
    for stall in without_calls {
        assert_eq!(
            stall.cause == Cause::Unknown,
            crate::thread_id().is_none(),
            "{stall:?}"
        );
    }
}

/// The monitor has no CPU until the poll has lasted for 200 ms.
///
/// Fails if the only reading counts as both readings: then the report has times of nearly zero, and
/// a cause. Also fails if the poll is never reported.
#[test]
#[cfg(target_os = "linux")]
fn poll_first_looked_at_late_is_reported_by_the_next_look() {
    let board = Board::of(1);
    let (sender, reports) = mpsc::channel();
    let report = move |stall: &Stall| sender.send(stall.clone()).unwrap();
    let mut monitor = Monitor::new(board.clone()).duty(Stalls::new(|_| polls(7, 0), report));
    board.set(0, State::Polling, 3);
    for now in [1, 201] {
        let _ = monitor.round(ms(now));
    }
    assert!(reports.try_recv().is_err());
    let _ = monitor.round(ms(214));
    let stall = reports.try_recv().unwrap();
    assert_eq!(stall.lasted, ms(213));
    assert!(stall.times.is_some());
}

#[test]
fn reports_of_a_minute_are_limited_and_counted() {
    let board = Board::of(1);
    let (mut monitor, reports) = stalls(&board);
    for poll in 0..20 {
        board.set(0, State::Polling, poll);
        rounds(&mut monitor, 100 * poll, 100 * poll + 30);
    }
    assert_eq!(reports.try_iter().count(), 5);
    board.set(0, State::Polling, 100);
    rounds(&mut monitor, 61_000, 61_030);
    let report = reports.try_recv().unwrap();
    assert_eq!(report.held_back, 15);
}

#[test]
fn duty_that_panics_is_dropped_and_the_others_go_on() {
    struct Panics;
    impl Duty for Panics {
        fn look(&mut self, _: &Round<'_>) -> Option<Duration> {
            panic!("a duty");
        }
    }
    struct Counts(mpsc::Sender<()>);
    impl Duty for Counts {
        fn look(&mut self, _: &Round<'_>) -> Option<Duration> {
            self.0.send(()).unwrap();
            None
        }
    }
    let (sender, looks) = mpsc::channel();
    let mut monitor = Monitor::new(Board::of(1)).duty(Panics).duty(Counts(sender));
    let _ = monitor.round(ms(0));
    let _ = monitor.round(ms(10));
    assert_eq!(looks.try_iter().count(), 2);
}

/// Fails if a panic in the drop of a duty that has failed comes out of the round, or if a duty is
/// skipped because one before it is dropped.
#[test]
fn duty_that_panics_again_in_its_drop_leaves_the_others() {
    struct Loud(mpsc::Sender<&'static str>, &'static str);
    impl Duty for Loud {
        fn look(&mut self, _: &Round<'_>) -> Option<Duration> {
            self.0.send(self.1).unwrap();
            assert!(self.1 == "kept", "a duty");
            None
        }
    }
    impl Drop for Loud {
        fn drop(&mut self) {
            self.0.send("dropped").unwrap();
            assert!(self.1 == "kept", "a drop");
        }
    }
    let (sender, events) = mpsc::channel();
    let loud = |name| Loud(sender.clone(), name);
    let monitor = Monitor::new(Board::of(1)).duty(loud("first"));
    let mut monitor = monitor.duty(loud("second")).duty(loud("kept"));
    let _ = monitor.round(ms(0));
    let _ = monitor.round(ms(10));
    let events: Vec<_> = events.try_iter().collect();
    assert_eq!(
        events,
        ["first", "dropped", "second", "dropped", "kept", "kept"]
    );
}

#[test]
fn monitor_thread_ends_when_it_is_stopped() {
    let bell = Arc::new(Doorbell::new());
    let monitor = Monitor::new(Board::of(1));
    let thread = {
        let bell = bell.clone();
        std::thread::spawn(move || monitor.run(&bell))
    };
    bell.ring();
    bell.stop();
    thread.join().unwrap();
}

/// Fails if a difference of times overflows, or if a look at the longest age does not end.
#[test]
fn times_that_go_back_or_are_extreme_are_harmless() {
    let board = Board::of(1);
    board.set(0, State::Polling, 1);
    let duty = Stalls::new(|_| Some(Subject::default()), |_: &Stall| {}).threshold(Duration::ZERO);
    let mut monitor = Monitor::new(board.clone())
        .duty(EndSlices::new(|_| {}).limit(Duration::MAX))
        .duty(duty);
    for now in [Duration::MAX, Duration::ZERO, Duration::MAX] {
        let _ = monitor.round(now);
    }
    board.set(0, State::Polling, 2);
    for now in [Duration::ZERO, Duration::MAX, Duration::MAX] {
        let _ = monitor.round(now);
    }
    let seen = Observed::default();
    assert_eq!(seen.sample.state, State::Idle);
}

#[test]
fn value_left_in_a_cell_is_dropped_with_it() {
    let value = Arc::new(7);
    let cell = Handoff::new();
    cell.enter(Box::new(value.clone()));
    assert!(cell.is_inside());
    drop(cell);
    assert_eq!(Arc::strong_count(&value), 1);
}
