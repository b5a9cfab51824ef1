//! The checks after a round: the tokens, the process's descriptors, threads and children, the
//! panics, and the time.
use std::{
    any::Any,
    cell::Cell,
    collections::BTreeMap,
    fs, io, mem,
    panic::{self, panic_any},
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU32, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// The most tokens of a round.
const TOKENS: usize = 1 << 16;

/// The number of drops of each token of the current round. The counts are static, so that a second
/// drop is counted, and is no access to freed memory.
static DROPS: [AtomicU8; TOKENS] = [const { AtomicU8::new(0) }; TOKENS];
/// The number of tokens of the current round.
static MADE: AtomicU32 = AtomicU32::new(0);
static ROUND: AtomicU32 = AtomicU32::new(0);
static FAULTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records a fault of the current round.
pub fn fault(what: String) {
    let mut faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    // The first ones say enough.
    if faults.len() < 20 {
        faults.push(what);
    }
}

pub fn take_faults() -> Vec<String> {
    mem::take(&mut FAULTS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A value that must be dropped exactly once in its round.
#[derive(Debug)]
pub struct Token {
    round: u32,
    number: u32,
}

impl Token {
    pub fn new() -> Self {
        let number = MADE.fetch_add(1, SeqCst);
        assert!((number as usize) < TOKENS, "a round is smaller");
        Self {
            round: ROUND.load(SeqCst),
            number,
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.round != ROUND.load(SeqCst) {
            return fault(format!(
                "token {} of an earlier round was dropped",
                self.number
            ));
        }
        if DROPS[self.number as usize].fetch_add(1, SeqCst) > 0 {
            fault(format!("token {} was dropped twice", self.number));
        }
    }
}

/// Begins the next round of tokens.
pub fn begin_tokens() {
    ROUND.fetch_add(1, SeqCst);
    let made = MADE.swap(0, SeqCst) as usize;
    DROPS[..made]
        .iter()
        .for_each(|drops| drops.store(0, SeqCst));
}

pub fn tokens() -> u32 {
    MADE.load(SeqCst)
}

/// A payload of each panic that the plan contains.
pub struct Planned;

pub fn planned_panic() -> ! {
    panic_any(Planned)
}

/// A value whose drop panics, unless the thread panics already: a second panic aborts the process.
#[derive(Debug)]
pub struct Bomb(#[allow(dead_code, reason = "its drop counts")] pub Token);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            planned_panic();
        }
    }
}

/// The panics that the documents of the crates promise to a program that does what a plan may do.
const PROMISED: [&str; 9] = [
    // An executor of the crate `futures` inside another one.
    "cannot execute `LocalPool` executor",
    "block_in_place was called in a LocalSet or LocalRuntime",
    "block_on was called in a task",
    "block_on was called inside block_on",
    "block_on was called by the thread that runs this runtime's tasks",
    "block_on was called in a LocalSet or LocalRuntime",
    "a sleep was polled outside of a runtime",
    "a sleep was polled in a runtime that has shut down",
    "block_on waits in a runtime that was shut down by an unhandled panic",
];

thread_local! {
    static IS_TEST: Cell<bool> = const { Cell::new(false) };
}

/// Makes each panic a fault, unless it is planned or promised, or this thread panics.
pub fn watch_panics() {
    IS_TEST.set(true);
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let payload: &(dyn Any + Send) = info.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a payload that is no text");
        if payload.is::<Planned>() || PROMISED.iter().any(|promised| text.starts_with(promised)) {
            return;
        }
        fault(format!(
            "a panic at {}: {text}",
            info.location().map(|at| at.to_string()).unwrap_or_default()
        ));
        if IS_TEST.try_with(Cell::get).unwrap_or(false) {
            default(info);
        }
    }));
}

/// The things that the process holds in the system.
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    /// Each descriptor, with the name of what it is.
    descriptors: BTreeMap<String, String>,
    /// The id of each thread, with its name.
    threads: BTreeMap<String, String>,
    children: bool,
}

impl Held {
    pub fn now() -> Self {
        Self {
            descriptors: list("/proc/self/fd", |path| {
                fs::read_link(path)
                    .ok()
                    .map(|link| link.to_string_lossy().into_owned())
            }),
            threads: list("/proc/self/task", |path| {
                let name = fs::read_to_string(format!("{path}/comm")).ok()?;
                Some(name.trim().to_owned())
            }),
            children: has_children(),
        }
    }

    /// Describes what `self` has more than `before`, and which descriptors it has less. The system
    /// may list a thread for a moment after its end, so `before` may have one thread too many.
    fn differences(&self, before: &Self) -> Vec<String> {
        let threads = missing(&before.threads, &self.threads);
        let threads = threads.map(|(id, name)| format!("thread {id} is left: {name}"));
        let more = missing(&before.descriptors, &self.descriptors);
        let more = more.map(|(fd, name)| format!("descriptor {fd} is left: {name}"));
        let less = missing(&self.descriptors, &before.descriptors);
        let less = less.map(|(fd, name)| format!("descriptor {fd} is gone: {name}"));
        let mut all: Vec<_> = threads.chain(more).chain(less).collect();
        if self.children && !before.children {
            all.push("a child is left, or was not reaped".into());
        }
        all
    }
}

/// Returns the entries of `those` that `these` does not have.
fn missing<'a>(
    these: &'a BTreeMap<String, String>,
    those: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a String, &'a String)> {
    those.iter().filter(|(key, _)| !these.contains_key(*key))
}

fn list(folder: &str, name: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("proc is mounted").flatten() {
        let key = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = name(&format!("{folder}/{key}")) else {
            continue; // It ended meanwhile.
        };
        // The descriptor of this very listing.
        if !name.contains("/proc/") || !name.ends_with("/fd") {
            all.insert(key, name);
        }
    }
    all
}

/// Returns whether this process has a child, running or not reaped.
fn has_children() -> bool {
    // SAFETY: all zeroes are a valid value of a plain C structure.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is valid for the call. With `WNOWAIT` no child is reaped.
    let found = unsafe { libc::waitid(libc::P_ALL, 0, &mut info, options) };
    found == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

/// Waits until each token was dropped, and the process holds what it held before. After `limit`
/// records what is left.
pub fn settle(before: &Held, limit: Duration) {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        let made = tokens() as usize;
        let left: Vec<_> = (0..made).filter(|&n| DROPS[n].load(SeqCst) == 0).collect();
        if left.is_empty() {
            let all = Held::now().differences(before);
            if all.is_empty() {
                return;
            }
            if begun.elapsed() > limit {
                return all.into_iter().for_each(fault);
            }
        } else if begun.elapsed() > limit {
            for number in left {
                fault(format!("token {number} was never dropped"));
            }
            return Held::now().differences(before).into_iter().for_each(fault);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Ends the process if a round takes too long.
#[derive(Default)]
pub struct Watchdog {
    /// The current round's begin, and its description.
    round: Mutex<Option<(Instant, String)>>,
}

impl Watchdog {
    /// Starts the watchdog's thread, which lasts as long as the process.
    pub fn start(limit: Duration) -> &'static Self {
        let watchdog: &Self = Box::leak(Box::default());
        thread::spawn(move || {
            loop {
                thread::sleep(limit.min(Duration::from_secs(1)));
                let round = watchdog.round.lock().expect("no panic here");
                let late = round.as_ref().filter(|(begun, _)| begun.elapsed() > limit);
                if let Some((_, description)) = late {
                    println!("the round hangs, after {limit:?}:\n{description}");
                    for what in take_faults() {
                        println!("fault: {what}");
                    }
                    println!("{:#?}", Held::now());
                    stop_for_a_debugger();
                    // The hung threads may hold anything, so nothing else runs.
                    process::abort();
                }
            }
        });
        watchdog
    }

    pub fn begin(&self, description: String) {
        *self.round.lock().expect("no panic here") = Some((Instant::now(), description));
    }

    pub fn end(&self) {
        self.round.lock().expect("no panic here").take();
    }
}

/// With `SELVEDGE_CHAOS_STOP`, lets the process wait, so that a debugger can be attached.
pub fn stop_for_a_debugger() {
    if std::env::var_os("SELVEDGE_CHAOS_STOP").is_some() {
        println!("process {} waits for a debugger", process::id());
        loop {
            thread::park();
        }
    }
}
