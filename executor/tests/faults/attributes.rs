//! What threads that are started late have from the thread whose push or closure calls for them.
use selvedge::Builder;
use std::{fs, mem, sync::mpsc, thread};

/// This thread's blocked signals, processors, and niceness, real-time priority and policy.
fn attributes() -> Vec<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let lines = status.lines().filter(|line| {
        let name = line.split(':').next();
        name == Some("SigBlk") || name == Some("Cpus_allowed")
    });
    let mut attributes: Vec<_> = lines.map(str::to_owned).collect();
    // After the name in parentheses, whatever that holds, comes the third field.
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let scheduling = [19, 40, 41].map(|field| fields[field - 3]);
    attributes.push(format!("Scheduling: {}", scheduling.join(" ")));
    assert_eq!(attributes.len(), 3);
    attributes
}

fn block(signals: &libc::sigset_t) {
    // SAFETY: of this thread, from a set that is there.
    let set = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals, std::ptr::null_mut()) };
    assert_eq!(set, 0);
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: a set of signals is an array of integers.
    unsafe { mem::zeroed() }
}

fn block_one() {
    let mut one = no_signals();
    // SAFETY: a set that is there.
    unsafe { libc::sigaddset(&raw mut one, libc::SIGUSR1) };
    block(&one);
}

fn block_all() {
    let mut all = no_signals();
    // SAFETY: a set that is there.
    unsafe { libc::sigfillset(&raw mut all) };
    block(&all);
}

/// Has this thread run where it is now, and nowhere else.
fn pin() {
    // SAFETY: it has no premises.
    let here = usize::try_from(unsafe { libc::sched_getcpu() }).unwrap();
    // SAFETY: a set of processors is an array of integers.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the system has named the processor, and the set has room for it.
    unsafe { libc::CPU_SET(here, &mut set) };
    // SAFETY: of this thread, and the set is as large as said.
    let pinned = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(pinned, 0);
}

/// Another policy, and, where it can be undone, less of the processor.
fn give_way() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: of this thread, read from a place that is there.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    assert_eq!(set, 0);
    // SAFETY: it has no premises.
    if unsafe { libc::geteuid() } == 0 {
        // SAFETY: as above; of this thread.
        assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 7) }, 0);
    }
}

fn in_a_thread<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    thread::spawn(f).join().unwrap()
}

#[test]
fn threads_started_late_have_the_attributes_of_the_builder() {
    in_a_thread(|| {
        block_one();
        let builders = attributes();
        let runtime = Builder::new().workers(2).build().unwrap();
        let (release, released) = mpsc::channel::<()>();
        let (sender, begun) = mpsc::channel();
        let first = runtime.spawn(async move {
            sender.send(()).unwrap();
            released.recv().unwrap_err();
        });
        begun.recv().unwrap();
        let handle = runtime.handle().clone();
        let (late, closure) = in_a_thread(move || {
            block_all();
            pin();
            give_way();
            let here = || (thread::current().name().map(str::to_owned), attributes());
            (
                handle.spawn(async move { here() }),
                handle.spawn_blocking(here),
            )
        });
        for (task, name) in [(late, "selvedge-1"), (closure, "selvedge-blocking")] {
            let (thread, attributes) = runtime.block_on(task).unwrap();
            assert_eq!(thread.as_deref(), Some(name));
            assert_eq!(attributes, builders, "{name}");
        }
        drop(release);
        runtime.block_on(first).unwrap();
    });
}
