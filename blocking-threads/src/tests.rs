use crate::{Job, Pool, Settings};
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

type Boxed = Box<dyn FnOnce() + Send>;

fn pool(change: impl FnOnce(&mut Settings)) -> sync_shim::sync::Arc<Pool<Boxed>> {
    let mut settings = Settings::default();
    change(&mut settings);
    sync_shim::sync::Arc::new(Pool::new(settings))
}

fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "in vain");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_more_threads_run_than_the_cap_and_every_job_runs() {
    let pool = pool(|settings| settings.cap = 3);
    let (now, most, ran) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let counts = Arc::new((now, most, ran));
    for _ in 0..50 {
        let counts = counts.clone();
        let job: Boxed = Box::new(move || {
            let (now, most, ran) = &*counts;
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            thread::sleep(Duration::from_micros(200));
            now.fetch_sub(1, SeqCst);
            ran.fetch_add(1, SeqCst);
        });
        Pool::submit(&pool, job).unwrap();
    }
    until(|| counts.2.load(SeqCst) == 50);
    assert_eq!(counts.1.load(SeqCst), 3);
    assert!(pool.close().is_empty());
    assert!(pool.wait(Some(Duration::from_secs(20))));
}

#[test]
fn an_idle_thread_ends_after_the_keep_alive_and_the_next_job_has_a_new_one() {
    let pool = pool(|settings| settings.keep_alive = Duration::from_millis(5));
    for _ in 0..2 {
        let (done, wait) = mpsc::channel();
        Pool::submit(&pool, Box::new(move || done.send(()).unwrap())).unwrap();
        wait.recv().unwrap();
        until(|| pool.counts().threads == 0);
    }
}

#[test]
fn a_panic_of_a_job_or_a_hook_leaves_the_thread_to_the_next() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("a payload's drop");
        }
    }
    let pool = pool(|settings| {
        settings.cap = 1;
        settings.on_start = Arc::new(|| panic!("a hook"));
        settings.on_stop = Arc::new(|| panic!("a hook"));
    });
    Pool::submit(&pool, Box::new(|| panic!("a job"))).unwrap();
    Pool::submit(&pool, Box::new(|| std::panic::panic_any(Loud))).unwrap();
    let (done, wait) = mpsc::channel();
    Pool::submit(&pool, Box::new(move || done.send(()).unwrap())).unwrap();
    wait.recv().unwrap();
    pool.close();
    assert!(pool.wait(Some(Duration::from_secs(20))));
}

#[test]
fn without_a_thread_the_job_comes_back_and_with_one_it_waits_for_it() {
    let may = Arc::new(AtomicUsize::new(0));
    let left = may.clone();
    let pool = pool(|settings| {
        settings.spawn = Arc::new(move |builder, run| {
            left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1))
                .map_err(|_| io::Error::other("no thread"))?;
            builder.spawn(run)
        });
    });
    let (ran, done) = mpsc::channel();
    let job = |n| -> Boxed {
        let ran = ran.clone();
        Box::new(move || ran.send(n).unwrap())
    };
    let refused = Pool::submit(&pool, job(1)).unwrap_err();
    let refused = Pool::submit_now(&pool, refused.0, "now").unwrap_err();
    assert!(Pool::start(&pool, job(2), "never").is_err());
    assert!(pool.wait(Some(Duration::ZERO)), "no thread is counted");

    may.store(1, SeqCst);
    let (gate, held) = mpsc::channel::<()>();
    Pool::submit(&pool, Box::new(move || held.recv().unwrap_or(()))).unwrap();
    Pool::submit(&pool, refused.0).unwrap();
    drop(gate);
    assert_eq!(done.recv().unwrap(), 1);
    pool.close();
    assert!(pool.wait(Some(Duration::from_secs(20))));
}

#[test]
fn a_closed_pool_hands_back_what_has_not_begun_but_for_what_outlasts_it() {
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
        fn outlasts_close(&self) -> bool {
            self.0 == "kept"
        }
    }
    let settings = Settings {
        cap: 1,
        ..Settings::default()
    };
    let pool = sync_shim::sync::Arc::new(Pool::new(settings));
    let (ran, order) = mpsc::channel();
    let (gate, held) = mpsc::channel();
    Pool::submit(&pool, Named("first", ran.clone(), Some(held))).unwrap();
    Pool::submit(&pool, Named("left", ran.clone(), None)).unwrap();
    Pool::submit(&pool, Named("kept", ran.clone(), None)).unwrap();
    until(|| pool.counts().queue == 2);
    let left = pool.close();
    assert_eq!(left.iter().map(|job| job.0).collect::<Vec<_>>(), ["left"]);
    let refused = Pool::submit(&pool, Named("late", ran.clone(), None)).unwrap_err();
    assert_eq!(refused.0.0, "late");
    Pool::submit_now(&pool, Named("now", ran.clone(), None), "now").unwrap();
    assert!(
        !pool.wait(Some(Duration::from_millis(5))),
        "the first is in hand"
    );
    drop(gate);
    assert!(pool.wait(Some(Duration::from_secs(20))));
    drop((ran, left, refused));
    let mut order: Vec<_> = order.iter().collect();
    order.sort_unstable();
    assert_eq!(order, ["first", "kept", "now"]);
}

#[test]
fn threads_for_long_jobs_are_not_counted_against_the_cap() {
    let pool = pool(|settings| {
        settings.cap = 1;
        settings.long = 1;
    });
    let (gate, held) = mpsc::channel::<()>();
    let worker = Pool::start(&pool, Box::new(move || held.recv().unwrap_or(())), "worker").unwrap();
    let names = Arc::new(Mutex::new(Vec::new()));
    let (done, wait) = mpsc::channel();
    let seen = names.clone();
    let job: Boxed = Box::new(move || {
        seen.lock()
            .unwrap()
            .push(thread::current().name().map(String::from));
        done.send(()).unwrap();
    });
    Pool::submit(&pool, job).unwrap();
    wait.recv().unwrap();
    assert_eq!(*names.lock().unwrap(), [Some("blocking".to_owned())]);
    assert_eq!(pool.counts().threads, 1);
    pool.close();
    drop(gate);
    worker.join().unwrap();
    assert!(pool.wait(Some(Duration::from_secs(20))));
}
