//! Captures the stacks of other threads, wherever those threads are interrupted.
#![cfg(all(
    feature = "backtrace",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use sched_monitor::{Frame, Stack};
use std::{
    collections::HashSet,
    fs::File,
    hint::black_box,
    io::Read,
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// The limit of a capture. It is long, because the machine may be busy: a thread answers once it
/// has a CPU.
const LIMIT: Duration = Duration::from_secs(20);

/// The lock of the tests: the signal and its handler belong to the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A thread that runs a closure, and its id. The drop asks the closure to end, and waits for that.
struct Stuck {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
    id: u32,
}

impl Stuck {
    fn new(f: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (sender, id)) = (stop.clone(), mpsc::channel());
        let thread = thread::spawn(move || {
            sender.send(sched_monitor::thread_id().unwrap()).unwrap();
            f(&stopped);
        });
        Self {
            stop,
            thread: Some(thread),
            id: id.recv().unwrap(),
        }
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn has(frames: &[Frame], name: &str) -> bool {
    let mut names = frames.iter().filter_map(|frame| frame.function.as_deref());
    names.any(|function| function.contains(name))
}

/// Captures stacks until the thread is in the function `name`.
fn capture_in(stuck: &Stuck, name: &str) -> Vec<Frame> {
    loop {
        let frames = Stack::capture(stuck.id, LIMIT).unwrap().resolve();
        if has(&frames, name) {
            return frames;
        }
    }
}

#[inline(never)]
fn spins_until(stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        std::hint::spin_loop();
    }
    black_box(stop);
}

#[inline(never)]
fn outer_of_spin(stop: &AtomicBool) {
    spins_until(stop);
    black_box(stop);
}

#[test]
fn stack_of_a_spin_has_its_function_and_its_callers() {
    let _lock = ONE_AT_A_TIME.lock();
    let stuck = Stuck::new(outer_of_spin);
    // The compiler gives a few instructions no line. So a hundred captures find one with a line.
    let found = (0..100).any(|_| {
        let frames = capture_in(&stuck, "spins_until");
        let at = |name: &str| {
            let is = |frame: &Frame| {
                let function = frame.function.as_deref();
                function.is_some_and(|function| function.contains(name))
            };
            frames.iter().position(is)
        };
        let (inner, outer) = (at("spins_until").unwrap(), at("outer_of_spin").unwrap());
        assert!(inner < outer, "{frames:#?}");
        // In a build without optimisation the loads of the flag are functions of their own.
        assert!(inner <= 3, "{frames:#?}");
        let file = frames[inner].file.as_ref().unwrap();
        assert!(file.ends_with("tests/stack.rs"), "{frames:#?}");
        frames[inner].line.is_some()
    });
    assert!(found, "no capture has a line");
}

/// The read begins again after the signal: it returns the byte that is written later.
#[test]
fn read_interrupted_by_a_capture_begins_again() {
    #[inline(never)]
    fn reads_a_byte(mut from: impl Read) -> u8 {
        let mut byte = [0];
        // `Read::read` does not try again, as `read_exact` would.
        assert_eq!(from.read(&mut byte).unwrap(), 1);
        black_box(byte[0])
    }
    let _lock = ONE_AT_A_TIME.lock();
    let (reader, mut writer) = UnixStream::pair().unwrap();
    // A `File` reads by the system call `read`; a `UnixStream` would use `recv`.
    let reader = File::from(OwnedFd::from(reader));
    let (sender, read) = mpsc::channel();
    let stuck = Stuck::new(move |_| sender.send(reads_a_byte(reader)).unwrap());
    let frames = capture_in(&stuck, "reads_a_byte");
    for _ in 0..100 {
        let stack = Stack::capture(stuck.id, LIMIT).unwrap();
        assert!(stack.addresses().len() > 3, "{frames:#?}");
    }
    std::io::Write::write_all(&mut writer, &[7]).unwrap();
    assert_eq!(read.recv().unwrap(), 7);
}

#[inline(never)]
fn allocates_until(stop: &AtomicBool) {
    let mut kept = Vec::new();
    let mut size = 1_usize;
    while !stop.load(SeqCst) {
        size = size.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        kept.push(vec![0_u8; 1 + (size >> 33) % 5_000]);
        if kept.len() > 100 {
            kept.clear();
        }
    }
}

/// The thread is interrupted in the allocator most of the time. A handler that allocated would hang
/// there. With wrong tables, the unwinder would not find the callers.
///
/// The environment variable `SELVEDGE_CAPTURES` sets the number of captures.
#[test]
fn captures_in_a_storm_of_allocations_name_the_function() {
    let _lock = ONE_AT_A_TIME.lock();
    let captures = std::env::var("SELVEDGE_CAPTURES");
    let captures = captures.map_or(300, |number| number.parse().unwrap());
    let stuck = [(); 2].map(|()| Stuck::new(allocates_until));
    capture_in(&stuck[0], "allocates_until");
    capture_in(&stuck[1], "allocates_until");
    let (mut named, mut depths, mut unanswered) = (0, 0, 0);
    // A look-up is slow in a build without optimisation. So `known` has the addresses in
    // `allocates_until` that were found, and a stack with one of them is not looked up.
    let mut known = HashSet::new();
    for capture in 0..captures {
        let begun = Instant::now();
        let Some(stack) = Stack::capture(stuck[capture % 2].id, LIMIT) else {
            unanswered += 1;
            println!("capture {capture}: no answer in {:?}", begun.elapsed());
            continue;
        };
        depths += stack.addresses().len();
        let is_known = stack.addresses().iter().any(|at| known.contains(at));
        let frames = if is_known {
            Vec::new()
        } else {
            stack.resolve()
        };
        let in_storm = frames.iter().filter(|frame| {
            let function = frame.function.as_deref();
            function.is_some_and(|function| function.contains("allocates_until"))
        });
        known.extend(in_storm.map(|frame| frame.address));
        let is_known = stack.addresses().iter().any(|at| known.contains(at));
        named += usize::from(is_known);
    }
    println!(
        "{named} of {captures} named, {} deep, {unanswered} unanswered",
        depths / captures
    );
    assert!(named * 100 >= captures * 99, "{named} of {captures}");
}

#[test]
fn capture_of_a_thread_that_has_ended_returns_none() {
    let _lock = ONE_AT_A_TIME.lock();
    let id = Stuck::new(|_| {}).id;
    assert_eq!(Stack::capture(id, LIMIT), None);
}

#[test]
fn capture_of_a_thread_that_blocks_the_signal_gives_up() {
    let _lock = ONE_AT_A_TIME.lock();
    let mask = |how| {
        // SAFETY: a `sigset_t` consists of integers, for which zeros are valid.
        let mut set = unsafe { std::mem::zeroed::<libc::sigset_t>() };
        // SAFETY: `set` is valid to write.
        unsafe { libc::sigaddset(&raw mut set, libc::SIGURG) };
        // SAFETY: `set` is valid to read, and null says not to write the old mask.
        unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
    };
    let (sender, blocked) = mpsc::channel();
    let (unblock, unblocked) = mpsc::channel();
    let stuck = Stuck::new(move |stop| {
        mask(libc::SIG_BLOCK);
        sender.send(()).unwrap();
        unblocked.recv().unwrap();
        mask(libc::SIG_UNBLOCK);
        spins_until(stop);
    });
    blocked.recv().unwrap();
    assert_eq!(Stack::capture(stuck.id, Duration::from_millis(5)), None);
    // The signal that comes late does nothing, and the thread answers later signals.
    unblock.send(()).unwrap();
    capture_in(&stuck, "spins_until");
}

/// A signal that another sender sends reaches the handler that was installed before. `errno` is
/// kept.
#[test]
fn signal_of_another_sender_reaches_the_previous_handler() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn before(_: libc::c_int) {
        CALLS.fetch_add(1, SeqCst);
    }
    let _lock = ONE_AT_A_TIME.lock();
    // The first capture of a process installs the handler. So the test runs in a process of its
    // own.
    if std::env::var_os("SELVEDGE_HANDLER_BEFORE").is_none() {
        let name = "signal_of_another_sender_reaches_the_previous_handler";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact"])
            .env("SELVEDGE_HANDLER_BEFORE", "1")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    // SAFETY: `before` has the type that `signal` expects, and only counts.
    unsafe { libc::signal(libc::SIGURG, before as *const () as usize) };
    let stuck = Stuck::new(spins_until);
    capture_in(&stuck, "spins_until");
    assert_eq!(
        CALLS.load(SeqCst),
        0,
        "a capture's signal reached the old handler"
    );
    // SAFETY: this call has no premise.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: `errno` is this thread's own.
    unsafe { *errno = 77 };
    // SAFETY: this call has no premise. The signal is handled on this thread before `raise`
    // returns.
    unsafe { libc::raise(libc::SIGURG) };
    // SAFETY: as above.
    assert_eq!(unsafe { *errno }, 77);
    assert_eq!(CALLS.load(SeqCst), 1);
}
