//! Tests of the attributes of threads that start late, by a push or a blocking closure of another
//! thread.
use selvedge::Builder;
use std::{fs, mem, sync::mpsc, thread};

/// Returns this thread's blocked signals, CPU affinity, niceness, real-time priority and policy.
fn attributes() -> Vec<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let lines = status.lines().filter(|line| {
        let name = line.split(':').next();
        name == Some("SigBlk") || name == Some("Cpus_allowed")
    });
    let mut attributes: Vec<_> = lines.map(str::to_owned).collect();
    // The third field follows the name, which is in parentheses and may contain any character.
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
    // SAFETY: `signals` is valid to read, and with null the call does not write the old mask.
    let set = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals, std::ptr::null_mut()) };
    assert_eq!(set, 0);
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: a `sigset_t` is an array of integers, for which zeros are valid.
    unsafe { mem::zeroed() }
}

fn block_one() {
    let mut one = no_signals();
    // SAFETY: the pointer is valid, and `one` is a set.
    unsafe { libc::sigaddset(&raw mut one, libc::SIGUSR1) };
    block(&one);
}

fn block_all() {
    let mut all = no_signals();
    // SAFETY: the pointer is valid, and `all` is a set.
    unsafe { libc::sigfillset(&raw mut all) };
    block(&all);
}

/// Pins this thread to the CPU on which it runs.
fn pin() {
    // SAFETY: `sched_getcpu` has no premise.
    let here = usize::try_from(unsafe { libc::sched_getcpu() }).unwrap();
    // SAFETY: a `cpu_set_t` is an array of integers, for which zeros are valid.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the system has returned this CPU, and the set has room for it.
    unsafe { libc::CPU_SET(here, &mut set) };
    // SAFETY: 0 is this thread, and the size is that of the set.
    let pinned = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(pinned, 0);
}

/// Changes this thread's scheduling policy. If the process is root's, which may lower a niceness
/// again, also raises this thread's niceness.
fn lower_priority() {
    // SAFETY: a `sched_param` consists of integers, for which zeros are valid.
    let parameters: libc::sched_param = unsafe { mem::zeroed() };
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: 0 is this thread, and the parameters are valid to read.
    let set = unsafe { libc::syscall(call, 0, libc::SCHED_BATCH, &raw const parameters) };
    assert_eq!(set, 0);
    // SAFETY: `geteuid` has no premise.
    if unsafe { libc::geteuid() } == 0 {
        // SAFETY: 0 is this thread. There is no other premise.
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
            lower_priority();
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
