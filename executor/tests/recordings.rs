//! Tests of the flight recorder in a runtime: when it saves, and what its files have.
use selvedge_executor::{
    Builder, Capture, LocalRuntime, Recordings, Runtime, runtime::LocalOptions, yield_now,
};
use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};
use task_trace::recorder::Event;

const LONG: Duration = Duration::from_secs(600);

type Reports = Receiver<Result<PathBuf, ErrorKind>>;

/// Settings that save into the folder, without a limit in time, and the reports of the saves.
fn recordings(folder: &Path) -> (Recordings, Reports) {
    let (sender, reports) = channel();
    let hook = move |result: Result<&Path, &io::Error>| {
        // The test may be over.
        let _ = sender.send(result.map(Path::to_owned).map_err(io::Error::kind));
    };
    let recordings = Recordings::new(folder).apart(Duration::ZERO).report(hook);
    (recordings, reports)
}

fn recorded(builder: Builder, recordings: Recordings) -> Builder {
    builder.flight_recorder(LONG).save_recordings(recordings)
}

fn json(path: &Path) -> serde_json::Value {
    let file = serde_json::from_str(&fs::read_to_string(path).unwrap());
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn events(capture: &Capture) -> Vec<Event> {
    let lanes = capture.lanes().iter();
    lanes
        .flat_map(|lane| lane.events.iter().map(|stamped| stamped.event))
        .collect()
}

fn begun_polls(capture: &Capture) -> usize {
    let is_begin = |event: &&Event| matches!(event, Event::PollBegin { .. });
    events(capture).iter().filter(is_begin).count()
}

#[test]
fn flight_recorder_has_the_first_poll_of_each_kind_of_runtime() {
    let flight = |builder: Builder| builder.flight_recorder(Duration::MAX);
    let threads = flight(Builder::new()).workers(2).build().unwrap();
    let current = flight(Builder::new_current_thread()).build().unwrap();
    for runtime in [&threads, &current] {
        runtime.block_on(runtime.spawn(yield_now())).unwrap();
        let tracer = runtime.handle().trace();
        assert!(tracer.is_on());
        assert_eq!(begun_polls(&tracer.capture()), 2);
        assert_eq!(begun_polls(&tracer.capture_last(Duration::MAX)), 2);
        // The join is woken before the last poll has ended, so that poll may go on.
        assert!(begun_polls(&tracer.capture_last(Duration::ZERO)) <= 1);
    }
    let builder = flight(Builder::new_current_thread());
    let local = builder.build_local(LocalOptions::default()).unwrap();
    let handle = local.handle().clone();
    local.block_on(handle.spawn(yield_now())).unwrap();
    assert_eq!(begun_polls(&local.handle().trace().capture()), 2);
}

#[test]
fn zero_time_is_no_flight_recorder() {
    let zero = || Builder::new().flight_recorder(Duration::ZERO);
    assert!(std::panic::catch_unwind(zero).is_err());
}

#[test]
fn last_part_is_saved_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Builder::new()
        .workers(1)
        .flight_recorder(LONG)
        .build()
        .unwrap();
    let tracer = runtime.handle().trace();
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    for name in ["last.json", "last.html"] {
        tracer.save_last(folder.path().join(name), LONG).unwrap();
    }
    let file = json(&folder.path().join("last.json"));
    let polls = file["traceEvents"].as_array().unwrap().iter();
    assert_eq!(polls.filter(|event| event["cat"] == "poll").count(), 2);
    let error = tracer.save_last(folder.path().join("none/last.json"), LONG);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    if cfg!(target_os = "linux") {
        let error = tracer.save_last("/dev/full", LONG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
}

/// Fails if the panic of a kind of user code leads to no file.
#[test]
fn panic_of_a_task_or_closure_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    for current_thread in [false, true] {
        let builder = match current_thread {
            true => Builder::new_current_thread(),
            false => Builder::new().workers(2),
        };
        let (recordings, reports) = recordings(folder.path());
        let runtime = recorded(builder, recordings).build().unwrap();
        let task = runtime.spawn(async { panic!("on purpose") });
        assert!(runtime.block_on(task).is_err());
        let path = reports.recv().unwrap().unwrap();
        let file = json(&path);
        assert_eq!(file["otherData"]["writer"], "selvedge");
        assert_eq!(file["otherData"]["saved because of"], "a panic");
        assert!(path.to_str().unwrap().ends_with("-panic.json"));
        let closure = runtime.spawn_blocking(|| panic!("on purpose"));
        assert!(runtime.block_on(closure).is_err());
        assert!(reports.recv().unwrap().unwrap().exists());
    }
}

#[test]
fn panic_of_a_local_task_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (recordings, reports) = recordings(folder.path());
    let builder = recorded(Builder::new_current_thread(), recordings);
    let runtime: LocalRuntime = builder.build_local(LocalOptions::default()).unwrap();
    let task = runtime.spawn_local(async { panic!("on purpose") });
    assert!(runtime.block_on(task).is_err());
    assert!(reports.recv().unwrap().unwrap().exists());
}

#[test]
fn panic_that_drops_the_runtime_is_saved_before_the_drop_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (recordings, reports) = recordings(folder.path());
    let main = thread::spawn(move || {
        let runtime = recorded(Builder::new(), recordings).build().unwrap();
        runtime.block_on(async { panic!("on purpose") })
    });
    assert!(main.join().is_err());
    let path = reports.try_recv().expect("a file").unwrap();
    assert_eq!(json(&path)["otherData"]["saved because of"], "a panic");
}

#[test]
fn stall_is_saved_with_its_long_poll() {
    let folder = tempfile::tempdir().unwrap();
    let (recordings, reports) = recordings(folder.path());
    let builder = recorded(Builder::new().workers(1), recordings);
    let builder = builder.stall_threshold(Duration::from_millis(20));
    let runtime = builder.on_stall(|_| ()).build().unwrap();
    let (end, ends) = channel();
    let task = runtime.spawn(async move { ends.recv().unwrap() });
    let file = json(&reports.recv().unwrap().unwrap());
    assert_eq!(file["otherData"]["saved because of"], "a stall");
    let slices = file["traceEvents"].as_array().unwrap().iter();
    let is_long = |event: &&serde_json::Value| {
        event["ph"] == "X" && event["cat"] == "long" && event["dur"].as_f64() >= Some(5_000.0)
    };
    assert!(slices.clone().any(|event| is_long(&event)), "{file}");
    let in_progress = |event: &serde_json::Value| event["args"]["outcome"] == "in progress";
    assert!(slices.clone().any(in_progress), "{file}");
    end.send(()).unwrap();
    runtime.block_on(task).unwrap();
}

#[test]
fn predicate_that_holds_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (recordings, reports) = recordings(folder.path());
    let recordings = recordings.when(|metrics| metrics.spawns == 3);
    let runtime = recorded(Builder::new_current_thread(), recordings)
        .build()
        .unwrap();
    thread::sleep(Duration::from_millis(1_500));
    assert!(reports.try_recv().is_err());
    (0..3).for_each(|_| runtime.spawn_detached(async {}));
    let file = json(&reports.recv().unwrap().unwrap());
    assert_eq!(file["otherData"]["saved because of"], "a predicate");
}

#[test]
fn predicate_that_panics_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let (recordings, reports) = recordings(folder.path());
    let recordings = recordings.when(|_| panic!("on purpose"));
    let (sender, panics) = channel();
    let builder = Builder::new().on_panic(move |_| sender.send(()).unwrap());
    let runtime = recorded(builder, recordings).build().unwrap();
    assert_eq!(reports.recv().unwrap(), Err(ErrorKind::Other));
    panics.recv().unwrap();
    thread::sleep(Duration::from_millis(2_200));
    assert!(reports.try_recv().is_err() && panics.try_recv().is_err());
    drop(runtime);
}

/// Fails if a storm of panics fills the disk, or if its size is not in a later file.
#[test]
fn storm_has_one_file_and_its_count_is_in_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let apart = Duration::from_millis(400);
    let (recordings, reports) = recordings(folder.path());
    let builder = recorded(Builder::new(), recordings.apart(apart));
    let runtime = builder.build().unwrap();
    let panics = || {
        runtime
            .block_on(runtime.spawn(async { panic!("on purpose") }))
            .is_err()
    };
    let begun = Instant::now();
    let first = reports_after(&panics, &reports);
    while begun.elapsed() < apart / 2 {
        assert!(panics());
        thread::sleep(Duration::from_millis(1));
    }
    // On a busy machine the time may be over by now.
    let early = reports.try_iter().count();
    assert!(early == 0 || begun.elapsed() >= apart);
    thread::sleep(apart);
    let second = reports_after(&panics, &reports);
    assert_ne!(first, second);
    let held_back = &json(&second)["otherData"]["occasions without a file"];
    assert!(early > 0 || held_back.is_string(), "{held_back}");
}

fn reports_after(panics: &impl Fn() -> bool, reports: &Reports) -> PathBuf {
    loop {
        assert!(panics());
        if let Ok(report) = reports.recv_timeout(Duration::from_millis(100)) {
            return report.unwrap();
        }
    }
}

#[test]
fn occasion_that_is_off_saves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (recordings, reports) = recordings(folder.path());
    let recordings = recordings.on_panic(false).on_stall(false);
    let builder = recorded(Builder::new().workers(1), recordings);
    let builder = builder.stall_threshold(Duration::from_millis(5));
    let runtime = builder.on_stall(|_| ()).build().unwrap();
    assert!(
        runtime
            .block_on(runtime.spawn(async { panic!("on purpose") }))
            .is_err()
    );
    let stalls = runtime.spawn(async { thread::sleep(Duration::from_millis(50)) });
    runtime.block_on(stalls).unwrap();
    drop(runtime);
    assert_eq!(reports.iter().count(), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn error_of_a_save_is_reported_and_the_runtime_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (recordings, reports) = recordings(&file);
    let runtime = recorded(Builder::new(), recordings).build().unwrap();
    for _ in 0..2 {
        assert!(
            runtime
                .block_on(runtime.spawn(async { panic!("on purpose") }))
                .is_err()
        );
        assert!(reports.recv().unwrap().is_err());
    }
    assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
}

/// Sets the limit of the process's descriptors. Returns the limit that it replaces.
#[cfg(all(feature = "net", target_os = "linux"))]
fn limit_descriptors(limit: libc::rlim_t) -> libc::rlim_t {
    // SAFETY: all zeroes are a valid value of a plain C structure.
    let mut limits: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) };
    assert_eq!(got, 0);
    let before = std::mem::replace(&mut limits.rlim_cur, limit);
    // SAFETY: the pointer is valid for the call.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) };
    assert_eq!(set, 0);
    before
}

/// Fails if the saving thread of a runtime that could not be built still has its settings. Runs in
/// a process of its own, whose descriptors it takes away.
#[cfg(all(feature = "net", target_os = "linux"))]
#[test]
fn failed_build_leaves_no_saving_thread() {
    const CHILD: &str = "SELVEDGE_TEST_OF_A_FAILED_BUILD";
    if std::env::var_os(CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "failed_build_leaves_no_saving_thread";
        let child = child.args([name, "--exact"]).env(CHILD, "1").output();
        let child = child.unwrap();
        assert!(child.status.success(), "{child:?}");
        return;
    }
    for builder in [Builder::new().workers(2), Builder::new_current_thread()] {
        let (recordings, _reports) = recordings(Path::new("never-made"));
        let held = std::sync::Arc::new(());
        let holds = held.clone();
        let recordings = recordings.when(move |_| std::sync::Arc::strong_count(&holds) == 0);
        let builder = recorded(builder, recordings).enable_io();
        let before = limit_descriptors(0);
        let built = builder.build();
        limit_descriptors(before);
        let error = built.err().and_then(|error| error.raw_os_error());
        assert_eq!(error, Some(libc::EMFILE));
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
    }
}

#[test]
fn hook_for_reports_may_panic_and_drop_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, reports) = channel();
    let (give, given) = channel::<Runtime>();
    let given = std::sync::Mutex::new(given);
    let recordings = Recordings::new(folder.path())
        .apart(Duration::ZERO)
        .report(move |result| {
            sender.send(result.map(Path::to_owned).unwrap()).unwrap();
            drop(given.lock().unwrap().try_recv());
            panic!("on purpose");
        });
    let runtime = recorded(Builder::new(), recordings).build().unwrap();
    let handle = runtime.handle().clone();
    handle.spawn_detached(async { panic!("on purpose") });
    reports.recv().unwrap();
    give.send(runtime).unwrap();
    // The runtime is dropped by the hook, or else as the spawn comes first, by a later one.
    loop {
        handle.spawn_detached(async { panic!("on purpose") });
        if reports.recv_timeout(Duration::from_millis(50)).is_err() {
            break;
        }
    }
}

/// Fails if the end of a runtime leaves a file that is not whole, or waits beyond its limit.
#[test]
fn end_of_a_runtime_waits_for_the_save_within_its_limit() {
    for limited in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (begun, begins) = channel();
        let (go_on, goes_on) = channel::<()>();
        let goes_on = std::sync::Mutex::new(goes_on);
        let recordings = Recordings::new(folder.path()).report(move |_| {
            begun.send(()).unwrap();
            let _ = goes_on.lock().unwrap().recv();
        });
        let runtime = recorded(Builder::new(), recordings).build().unwrap();
        runtime.spawn_detached(async { panic!("on purpose") });
        begins.recv().unwrap();
        if limited {
            // The thread is in the hook.
            assert!(!runtime.shutdown_timeout(Duration::from_millis(50)));
            drop(go_on);
        } else {
            let drops = thread::spawn(move || drop(runtime));
            thread::sleep(Duration::from_millis(20));
            assert!(!drops.is_finished());
            drop(go_on);
            drops.join().unwrap();
        }
        let names = fs::read_dir(folder.path()).unwrap();
        let is_whole = |path: PathBuf| path.extension().is_some_and(|ending| ending == "json");
        assert!(names.map(|entry| entry.unwrap().path()).all(is_whole));
    }
}

#[test]
fn two_runtimes_save_their_own_events() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str| {
        let (recordings, reports) = recordings(folder.path());
        let builder = recorded(Builder::new(), recordings).name(name);
        (builder.build().unwrap(), reports)
    };
    let ((one, ones), (two, twos)) = (named("one"), named("two"));
    assert!(
        two.block_on(two.spawn(async { panic!("on purpose") }))
            .is_err()
    );
    let file = json(&twos.recv().unwrap().unwrap());
    assert!(
        file["otherData"]["runtime"]
            .as_str()
            .unwrap()
            .contains("\"two\"")
    );
    drop((one, two));
    assert_eq!(ones.iter().count(), 0);
}

#[cfg(all(unix, feature = "signal"))]
#[test]
fn each_signal_is_saved() {
    use net_driver::signal::unix::SignalKind;

    let folder = tempfile::tempdir().unwrap();
    let (recordings, reports) = recordings(folder.path());
    let recordings = recordings
        .apart(LONG)
        .on_signal(SignalKind::user_defined1());
    let runtime = recorded(Builder::new_current_thread(), recordings)
        .build()
        .unwrap();
    let mut saved = 0;
    let mut next = || loop {
        // SAFETY: `raise` has no preconditions.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        // The first signals may come before the thread listens: the test has its own handler.
        if let Ok(report) = reports.recv_timeout(Duration::from_millis(200)) {
            assert!(report.unwrap().to_str().unwrap().ends_with("-signal.json"));
            saved += 1;
            break;
        }
    };
    let _handler = net_driver::signal::unix::signal(SignalKind::user_defined1()).unwrap();
    next();
    next();
    drop(runtime);
    assert_eq!(saved, 2);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
}

/// A program that was not prepared, and that the next test runs. Otherwise it does nothing.
#[test]
fn unprepared_program_has_trouble() {
    if std::env::var_os("SELVEDGE_OBSERVE").is_none() {
        return;
    }
    let runtime = Builder::new().workers(2).build().unwrap();
    let stalls = runtime.spawn(async { thread::sleep(Duration::from_millis(200)) });
    runtime.block_on(stalls).unwrap();
    assert!(
        runtime
            .block_on(runtime.spawn(async { panic!("on purpose") }))
            .is_err()
    );
    runtime.block_on(std::future::pending::<()>());
}

/// Fails if `SELVEDGE_OBSERVE=record` alone leaves no file of a stall, of a panic or of a signal.
#[cfg(all(unix, feature = "signal"))]
#[test]
fn environment_turns_the_recorder_on() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("new");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "unprepared_program_has_trouble"])
        .env("SELVEDGE_OBSERVE", format!("record={}", below.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let file_of = |reason: &str| {
        let is_one = |path: &PathBuf| path.to_str().unwrap().ends_with(&format!("-{reason}.json"));
        let entries = fs::read_dir(&below).into_iter().flatten();
        let path = entries.map(|entry| entry.unwrap().path()).find(is_one)?;
        let file = json(&path);
        assert_eq!(file["otherData"]["saved because of"], format!("a {reason}"));
        Some(file)
    };
    let wait_for = |reason: &str, meanwhile: &dyn Fn()| loop {
        if let Some(file) = file_of(reason) {
            break file;
        }
        meanwhile();
        thread::sleep(Duration::from_millis(20));
    };
    let stall = wait_for("stall", &|| ());
    let events = stall["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["cat"] == "long"), "{stall}");
    wait_for("panic", &|| ());
    let pid = child.id().try_into().unwrap();
    let signals = || {
        // SAFETY: the child was not waited for, so the number is still that of the child.
        let sent = unsafe { libc::kill(pid, libc::SIGQUIT) };
        assert_eq!(sent, 0);
    };
    wait_for("signal", &signals);
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("selvedge: saved a recording: "), "{said}");
}

/// The monitor sees, by the system's count, that a worker's thread had no CPU.
#[cfg(target_os = "linux")]
#[test]
fn thread_without_a_cpu_is_recorded() {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    };

    /// Binds this thread, and those that it starts, to the CPU that it runs on.
    fn bind() {
        // SAFETY: zeros are a valid set, the empty one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the call has no preconditions.
        let cpu = unsafe { libc::sched_getcpu() };
        // SAFETY: the system has returned the number.
        unsafe { libc::CPU_SET(cpu.try_into().unwrap(), &mut set) };
        // SAFETY: the set is valid for a read of its size.
        let bound = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
        assert_eq!(bound, 0);
    }

    let test = || {
        bind();
        let ended = Arc::new(AtomicBool::new(false));
        let spins = |ended: Arc<AtomicBool>| {
            // Ordering: Relaxed, as the flag publishes nothing.
            while !ended.load(Relaxed) {
                std::hint::spin_loop();
            }
        };
        let builder = Builder::new()
            .workers(1)
            .monitor(true)
            .flight_recorder(LONG);
        let runtime = builder.build().unwrap();
        let rival = thread::spawn({
            let ended = ended.clone();
            move || spins(ended)
        });
        let task = runtime.spawn({
            let ended = ended.clone();
            async move { spins(ended) }
        });
        let tracer = runtime.handle().trace();
        let waited = loop {
            thread::sleep(Duration::from_millis(50));
            let waits = events(&tracer.capture())
                .into_iter()
                .find_map(|event| match event {
                    Event::NoCpu { worker: 0, waited } => Some(waited),
                    _ => None,
                });
            if let Some(waited) = waits {
                break waited;
            }
        };
        assert!(waited >= Duration::from_millis(1));
        // Ordering: Relaxed, as above.
        ended.store(true, Relaxed);
        rival.join().unwrap();
        runtime.block_on(task).unwrap();
    };
    // The binding ends with this thread.
    thread::spawn(test).join().unwrap();
}

/// Fails if a program that makes events as fast as it can has no pauses, or if it has no events
/// after its first pause.
#[test]
fn flood_of_events_is_recorded_in_windows() {
    flood(Builder::new().workers(1));
    flood(Builder::new_current_thread());
}

fn flood(builder: Builder) {
    let runtime = builder.flight_recorder(LONG).build().unwrap();
    let tracer = runtime.handle().trace();
    loop {
        let yields = runtime.spawn(async {
            for _ in 0..20_000 {
                yield_now().await;
            }
        });
        runtime.block_on(yields).unwrap();
        assert!(tracer.is_on());
        let capture = tracer.capture();
        let Some(&(_, end)) = capture.gaps().first() else {
            continue;
        };
        let lane = &capture.lanes()[0];
        if lane.events.iter().any(|stamped| stamped.at > end) {
            break;
        }
    }
    tracer.stop();
    assert!(!tracer.is_on());
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    let before = tracer.capture().lanes()[0].events.len();
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    assert_eq!(tracer.capture().lanes()[0].events.len(), before);
    tracer.start();
    assert!(tracer.is_on() && tracer.capture().gaps().is_empty());
}
