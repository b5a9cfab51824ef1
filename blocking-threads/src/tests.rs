use crate::{Job, Pool, Settings};
use std::{
    error::Error,
    io,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

type Boxed = Box<dyn FnOnce() + Send>;

fn pool(change: impl FnOnce(&mut Settings)) -> Pool<Boxed> {
    let mut settings = Settings::default();
    change(&mut settings);
    Pool::new(settings)
}

/// The limit of a wait. Even on a busy machine, only a wait that hangs takes longer.
const LONG: Duration = Duration::from_secs(600);

fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "waited too long");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn cap_bounds_running_jobs_and_every_job_runs() {
    let pool = pool(|settings| settings.cap = 3);
    let (now, most, ran) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let counts = Arc::new((now, most, ran));
    let three = Arc::new(Barrier::new(3));
    for _ in 0..51 {
        let (counts, three) = (counts.clone(), three.clone());
        let job: Boxed = Box::new(move || {
            let (now, most, ran) = &*counts;
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            three.wait();
            now.fetch_sub(1, SeqCst);
            ran.fetch_add(1, SeqCst);
        });
        pool.submit(job).unwrap();
    }
    until(|| counts.2.load(SeqCst) == 51);
    assert_eq!(counts.1.load(SeqCst), 3);
    assert!(pool.close().is_empty());
    assert!(pool.wait(Some(LONG)));
}

#[test]
fn idle_thread_ends_after_keep_alive_and_next_job_starts_one() {
    let pool = pool(|settings| settings.keep_alive = Duration::from_millis(5));
    for _ in 0..2 {
        let (done, wait) = mpsc::channel();
        pool.submit(Box::new(move || done.send(()).unwrap()))
            .unwrap();
        wait.recv().unwrap();
        until(|| pool.counts().threads == 0);
    }
}

#[test]
fn panic_of_job_or_hook_keeps_the_thread() {
    let pool = pool(|settings| {
        settings.cap = 1;
        settings.on_start = Some(Arc::new(|| panic!("a hook")));
        settings.on_stop = Some(Arc::new(|| panic!("a hook")));
    });
    pool.submit(Box::new(|| panic!("a job"))).unwrap();
    pool.submit(Box::new(|| std::panic::panic_any(Loud)))
        .unwrap();
    let (done, wait) = mpsc::channel();
    pool.submit(Box::new(move || done.send(()).unwrap()))
        .unwrap();
    wait.recv().unwrap();
    pool.close();
    assert!(pool.wait(Some(LONG)));
}

/// A payload of a panic whose drop panics again.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        panic!("a payload's drop");
    }
}

/// Runs three jobs at a time, and waits for the threads.
fn run_three_and_join(pool: &Pool<Boxed>, after_wait: impl FnOnce()) {
    let all = Arc::new(Barrier::new(3));
    for _ in 0..3 {
        let all = all.clone();
        let job: Boxed = Box::new(move || {
            all.wait();
        });
        pool.submit(job).unwrap();
    }
    pool.finish();
    assert!(pool.wait(Some(LONG)));
    after_wait();
    pool.join();
}

/// The hook of each thread panics when it is dropped. Fails if a panic comes out of `join`, or if
/// `wait` returns before the hooks are dropped.
#[test]
fn panic_in_the_drop_of_a_hook_is_caught() {
    struct Hook(Arc<AtomicUsize>);
    impl Drop for Hook {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            std::panic::panic_any(Loud);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let hooks = dropped.clone();
    let pool = pool(|settings| {
        settings.before_park = Some(Arc::new(move || {
            let hook = Hook(hooks.clone());
            Box::new(move |_| {
                let _ = &hook;
            })
        }));
    });
    run_three_and_join(&pool, || assert_eq!(dropped.load(SeqCst), 3));
}

/// The threads end with a panic whose payload panics again. Fails if a panic comes out of `join`,
/// which then leaves threads unjoined.
#[test]
fn panic_of_a_payload_does_not_come_out_of_join() {
    let pool = pool(|settings| {
        settings.spawn = Some(Arc::new(|builder, run| {
            builder.spawn(|| {
                run();
                std::panic::panic_any(Loud);
            })
        }));
    });
    run_three_and_join(&pool, || {});
}

#[test]
fn job_without_any_thread_is_returned_else_queued() {
    let may = Arc::new(AtomicUsize::new(0));
    let left = may.clone();
    let pool = pool(|settings| {
        settings.spawn = Some(Arc::new(move |builder, run| {
            left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1))
                .map_err(|_| io::Error::other("no thread"))?;
            builder.spawn(run)
        }));
    });
    let (ran, done) = mpsc::channel();
    let job = |n| -> Boxed {
        let ran = ran.clone();
        Box::new(move || ran.send(n).unwrap())
    };
    let refused = pool.submit(job(1)).unwrap_err();
    let refused = pool.submit_now(refused.job, "now").unwrap_err();
    let refused = pool.start(refused.job, "own").unwrap_err();
    assert_eq!(refused.source().unwrap().to_string(), "no thread");
    assert!(pool.wait(Some(Duration::ZERO)), "no thread is counted");

    may.store(1, SeqCst);
    let (gate, held) = mpsc::channel::<()>();
    pool.submit(Box::new(move || held.recv().unwrap_or(())))
        .unwrap();
    pool.submit(refused.job).unwrap();
    drop(gate);
    assert_eq!(done.recv().unwrap(), 1);
    pool.close();
    assert!(pool.wait(Some(LONG)));
}

/// The pools of [`failing_once`]. A hook that had its own pool would leak.
static FAILING: Mutex<Vec<Pool<Boxed>>> = Mutex::new(Vec::new());

/// An error of a spawn hook. Its drop uses the pools, and then panics.
#[derive(Debug)]
struct Bomb;

impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no thread")
    }
}

impl Error for Bomb {}

impl Drop for Bomb {
    fn drop(&mut self) {
        let pools = FAILING.lock().unwrap().clone();
        for pool in pools {
            pool.counts();
        }
        panic!("the drop of an error");
    }
}

/// Makes a pool whose spawn hook fails at this call, counted from 0, with a [`Bomb`].
fn failing_once(at: usize, change: impl FnOnce(&mut Settings)) -> Pool<Boxed> {
    let calls = AtomicUsize::new(0);
    let pool = pool(|settings| {
        settings.eager = 1;
        settings.spawn = Some(Arc::new(move |builder, run| {
            if calls.fetch_add(1, SeqCst) == at {
                return Err(io::Error::other(Bomb));
            }
            builder.spawn(run)
        }));
        change(settings);
    });
    FAILING.lock().unwrap().push(pool.clone());
    pool
}

/// Fails if the watcher ends by the panic, or drops the error under the lock: then the jobs wait
/// for each other and get no third thread.
#[test]
fn watcher_survives_the_drop_of_a_spawn_hooks_error() {
    let pool = failing_once(2, |_| ());
    let (three, ran) = (Arc::new(Barrier::new(3)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..3 {
        let (three, ran) = (three.clone(), ran.clone());
        let job = move || {
            three.wait();
            ran.fetch_add(1, SeqCst);
        };
        pool.submit(Box::new(job)).unwrap();
    }
    until(|| ran.load(SeqCst) == 3);
}

#[test]
fn submission_contains_the_drop_of_a_spawn_hooks_error() {
    let (gate, held) = mpsc::channel::<()>();
    let pool = failing_once(1, |settings| settings.grow_after = Duration::ZERO);
    pool.submit(Box::new(move || held.recv().unwrap_or(())))
        .unwrap();
    // No second thread starts, so this job waits for the first.
    pool.submit(Box::new(|| ())).unwrap();
    drop(gate);
    pool.finish();
    pool.join();
}

#[test]
fn raised_cap_contains_the_drop_of_a_spawn_hooks_error() {
    let (gate, held) = mpsc::channel::<()>();
    let pool = failing_once(1, |settings| {
        settings.grow_after = Duration::ZERO;
        settings.cap = 1;
    });
    pool.submit(Box::new(move || held.recv().unwrap_or(())))
        .unwrap();
    pool.submit(Box::new(|| ())).unwrap();
    pool.set_cap(2);
    assert_eq!(pool.cap(), 2);
    drop(gate);
    pool.finish();
    pool.join();
}

/// A job that reports its drop.
struct Dropped(mpsc::Sender<()>);

impl Job for Dropped {
    fn run(self) {}
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn failed_thread_start_leaves_no_trace() {
    let named = Settings {
        name: "a\0b".into(),
        ..Settings::default()
    };
    let panics = Settings {
        spawn: Some(Arc::new(|_, _| panic!("no thread"))),
        ..Settings::default()
    };
    for (settings, name, kind) in [
        (named, "a\0b", io::ErrorKind::InvalidInput),
        (panics, "a", io::ErrorKind::Other),
    ] {
        let pool = Pool::new(settings);
        let (sender, dropped) = mpsc::channel();
        let job = pool.submit(Dropped(sender)).unwrap_err().job;
        let refused = pool.submit_now(job, name).unwrap_err();
        assert_eq!(refused.why.unwrap().kind(), kind);
        let refused = pool.start(refused.job, name).unwrap_err();
        assert!(dropped.try_recv().is_err(), "the job came back whole");
        assert_eq!(refused.why.unwrap().kind(), kind);
        let counts = pool.counts();
        assert_eq!((counts.threads, counts.idle, counts.queue), (0, 0, 0));
        assert!(pool.close().is_empty());
        assert!(pool.wait(Some(Duration::ZERO)), "no thread is counted");
    }
}

#[test]
fn cap_of_zero_returns_jobs_and_runs_urgent_ones() {
    let pool = pool(|settings| settings.cap = 0);
    let (ran, done) = mpsc::channel();
    let job = Box::new(move || ran.send(()).unwrap());
    let refused = pool.submit(job).unwrap_err();
    assert!(refused.why.is_none(), "no thread was to be started");
    pool.submit_now(refused.job, "now").unwrap();
    done.recv().unwrap();
    until(|| pool.counts().idle == 1);
    // With a cap of zero, an existing thread does not take the job either.
    assert!(pool.submit(Box::new(|| ())).is_err());
    assert!(pool.close().is_empty());
    assert!(pool.wait(Some(LONG)));
}

#[test]
fn close_returns_queued_jobs_and_runs_urgent_ones() {
    struct Named(
        &'static str,
        mpsc::Sender<&'static str>,
        Option<mpsc::Receiver<()>>,
    );
    impl Job for Named {
        fn run(self) {
            if let Some(gate) = self.2 {
                let _ = gate.recv();
            }
            self.1.send(self.0).unwrap();
        }
    }
    let settings = Settings {
        cap: 1,
        ..Settings::default()
    };
    let pool = Pool::new(settings);
    let (ran, order) = mpsc::channel();
    let (gate, held) = mpsc::channel();
    pool.submit(Named("first", ran.clone(), Some(held)))
        .unwrap();
    pool.submit(Named("left", ran.clone(), None)).unwrap();
    until(|| pool.counts().queue == 1);
    let left = pool.close();
    assert_eq!(left.iter().map(|job| job.0).collect::<Vec<_>>(), ["left"]);
    let refused = pool.submit(Named("late", ran.clone(), None)).unwrap_err();
    assert_eq!(refused.job.0, "late");
    let refused = pool.start(refused.job, "own").unwrap_err();
    assert!(refused.why.is_none(), "it is closed");
    pool.submit_now(Named("now", ran.clone(), None), "now")
        .unwrap();
    assert!(
        !pool.wait(Some(Duration::from_millis(5))),
        "the first job runs"
    );
    drop(gate);
    assert!(pool.wait(Some(LONG)));
    drop((ran, left, refused));
    let mut order: Vec<_> = order.iter().collect();
    order.sort_unstable();
    assert_eq!(order, ["first", "now"]);
}

#[test]
fn finished_pool_runs_queued_jobs_and_refuses_new_ones() {
    let pool = pool(|settings| settings.cap = 1);
    let (gate, held) = mpsc::channel::<()>();
    pool.submit(Box::new(move || held.recv().unwrap_or(())))
        .unwrap();
    let (ran, order) = mpsc::channel();
    for n in 0..3 {
        let ran = ran.clone();
        pool.submit(Box::new(move || ran.send(n).unwrap())).unwrap();
    }
    drop(ran);
    pool.finish();
    assert!(pool.submit(Box::new(|| ())).is_err());
    assert!(!pool.wait(Some(Duration::ZERO)), "the first job runs");
    drop(gate);
    assert!(pool.wait(Some(Duration::from_secs(20))));
    assert_eq!(order.iter().collect::<Vec<_>>(), [0, 1, 2]);
    assert!(pool.close().is_empty());
}

#[test]
fn urgent_jobs_take_no_room_of_the_cap() {
    let pool = pool(|settings| settings.cap = 1);
    let (gate, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let long = || -> Boxed {
        let held = held.clone();
        Box::new(move || held.lock().unwrap().recv().unwrap_or(()))
    };
    pool.start(long(), "worker").unwrap();
    for _ in 0..3 {
        pool.submit_now(long(), "another").unwrap();
    }
    // Now each job has begun. So no thread called `worker` or `another` is free for the jobs below.
    until(|| pool.counts().idle == 0);
    let (done, wait) = mpsc::channel();
    for _ in 0..2 {
        let done = done.clone();
        let job = move || {
            done.send(thread::current().name().map(String::from))
                .unwrap()
        };
        pool.submit(Box::new(job)).unwrap();
        assert_eq!(wait.recv().unwrap().as_deref(), Some("blocking"));
    }
    until(|| pool.counts().idle == 1);
    assert_eq!(pool.counts().threads, 1);
    pool.close();
    drop(gate);
    assert!(pool.wait(Some(LONG)));
}

#[test]
fn thread_after_urgent_job_respects_the_cap() {
    let pool = pool(|settings| {
        settings.cap = 1;
        settings.keep_alive = LONG;
    });
    let (gate, held) = mpsc::channel::<()>();
    pool.submit_now(Box::new(move || held.recv().unwrap_or(())), "long")
        .unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (ran, done) = mpsc::channel();
    for _ in 0..20 {
        let (now, most, ran) = (now.clone(), most.clone(), ran.clone());
        let job = move || {
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            thread::sleep(Duration::from_millis(1));
            now.fetch_sub(1, SeqCst);
            ran.send(()).unwrap();
        };
        pool.submit(Box::new(job)).unwrap();
    }
    drop((gate, ran));
    assert_eq!(done.iter().count(), 20);
    assert_eq!(most.load(SeqCst), 1);
    until(|| pool.counts().idle == 2);
    pool.close();
    assert!(pool.wait(Some(LONG)));
}

#[test]
fn join_waits_for_thread_local_destructors() {
    struct Slow(Arc<AtomicUsize>);
    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(50));
            self.0.fetch_add(1, SeqCst);
        }
    }
    thread_local! {
        static SLOW: std::cell::OnceCell<Slow> = const { std::cell::OnceCell::new() };
    }
    let pool = pool(|_| ());
    let dropped = Arc::new(AtomicUsize::new(0));
    let both = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let (dropped, both) = (dropped.clone(), both.clone());
        let job = move || {
            SLOW.with(|slow| slow.get_or_init(|| Slow(dropped)).0.load(SeqCst));
            both.wait();
        };
        pool.submit(Box::new(job)).unwrap();
    }
    until(|| pool.counts().queue == 0);
    pool.close();
    pool.join();
    assert_eq!(dropped.load(SeqCst), 2);
}

/// The only ready thread is needed for an urgent job, which may never end.
#[test]
fn job_is_refused_if_the_only_thread_is_for_an_urgent_job() {
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let pool = pool(|settings| {
        settings.name = "a\0b".into(); // No thread can have that name.
        settings.on_start = Some(Arc::new(move || held.lock().unwrap().recv().unwrap()));
    });
    let (done, wait) = mpsc::channel();
    let urgent: Boxed = Box::new(move || done.send(()).unwrap());
    assert!(pool.submit_now(urgent, "a").is_ok());
    assert!(pool.submit(Box::new(|| {})).is_err());
    release.send(()).unwrap();
    wait.recv().unwrap();
    assert!(pool.close().is_empty());
    assert!(pool.wait(Some(LONG)));
}

#[test]
fn started_thread_runs_its_own_job_first() {
    let pool = pool(|settings| settings.cap = 1);
    let (done, name) = mpsc::channel();
    let job = || -> Boxed {
        let done = done.clone();
        Box::new(move || {
            done.send(thread::current().name().map(String::from))
                .unwrap()
        })
    };
    pool.submit(job()).unwrap();
    assert_eq!(name.recv().unwrap().as_deref(), Some("blocking"));
    until(|| pool.counts().idle == 1);
    pool.start(job(), "own").unwrap();
    assert_eq!(name.recv().unwrap().as_deref(), Some("own"));
    until(|| pool.counts().idle == 2);
    pool.close();
    pool.join();
}

#[test]
fn concurrent_joins_both_wait_for_all_threads() {
    // One thread, so that one of the two callers finds no handle.
    let pool = pool(|settings| settings.cap = 1);
    let ended = Arc::new(AtomicUsize::new(0));
    let end = ended.clone();
    let job = move || {
        thread::sleep(Duration::from_millis(50));
        end.fetch_add(1, SeqCst);
    };
    pool.submit(Box::new(job)).unwrap();
    until(|| pool.counts().queue == 0);
    pool.close();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                pool.join();
                assert_eq!(ended.load(SeqCst), 1);
            });
        }
    });
}

#[cfg(feature = "task-header")]
#[test]
fn closure_whose_future_is_not_ready_is_cancelled_by_a_wake() {
    let waker = Arc::new(Mutex::new(None));
    let kept = waker.clone();
    let future = std::future::poll_fn(move |cx| {
        *kept.lock().unwrap() = Some(cx.waker().clone());
        std::task::Poll::<()>::Pending
    });
    let (job, mut join) = crate::Closure::new(future);
    job.run();
    assert!(!join.is_finished());
    let waker: Option<std::task::Waker> = waker.lock().unwrap().take();
    waker.unwrap().wake();
    assert!(join.try_join().unwrap().unwrap_err().is_cancelled());
}
