//! Tests of `process::exit` in a poll.
//!
//! `process::exit` runs the destructors of the calling thread's thread-locals, while the stack
//! frames of the poll stay. So a runtime in a thread-local is dropped in the middle of its own
//! poll, and a later destructor may ask which runtime the thread is in.
//!
//! Each test runs itself again, in a child process that exits in this way. The child does not free
//! memory, but fills each block that it would free with a pattern. A last destructor checks that no
//! code has written to these blocks since.
#![cfg(target_os = "linux")]
#![cfg(not(any(selvedge_plain_alloc, selvedge_tsan, selvedge_loom, selvedge_shuttle)))]
use selvedge::{
    Builder, Handle, LocalRuntime, Runtime, Tick, Worker,
    park::{Park, ThreadPark},
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::RefCell,
    env, fs,
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    process::{Command, exit},
    ptr::{self, null_mut},
    slice,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

const CHILD: &str = "SELVEDGE_EXITS";
const FREED: u8 = 0xdd;
const BLOCKS: usize = 1 << 16;

static KEEPS: AtomicBool = AtomicBool::new(false);
static FREED_BLOCKS: [(AtomicPtr<u8>, AtomicUsize); BLOCKS] =
    [const { (AtomicPtr::new(null_mut()), AtomicUsize::new(0)) }; BLOCKS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Allocator that frees no memory once `KEEPS` is set.
struct Keeper;

#[global_allocator]
static KEEPER: Keeper = Keeper;

// SAFETY: the blocks are those of `System`, and are freed there or kept for good.
unsafe impl GlobalAlloc for Keeper {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the premises of `System` are those of this method, which the caller upholds.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !KEEPS.load(SeqCst) {
            // SAFETY: the premises of `System` are those of this method, which the caller upholds.
            return unsafe { System.dealloc(block, layout) };
        }
        // SAFETY: the block has `layout.size()` bytes, and the caller no longer uses them.
        unsafe { ptr::write_bytes(block, FREED, layout.size()) };
        if let Some((at, len)) = FREED_BLOCKS.get(NEXT.fetch_add(1, SeqCst)) {
            len.store(layout.size(), SeqCst);
            at.store(block, SeqCst);
        }
    }
}

/// Exits with status 9 if a block has changed since it was freed.
fn check_freed_blocks() {
    for (at, len) in &FREED_BLOCKS {
        let at = at.load(SeqCst);
        if at.is_null() {
            continue;
        }
        // SAFETY: the block is kept for good. A write to the block is the fault that this function
        // looks for.
        let block = unsafe { slice::from_raw_parts(at, len.load(SeqCst)) };
        if block.iter().any(|byte| *byte != FREED) {
            eprintln!(
                "a block of {} bytes was used after it was freed",
                block.len()
            );
            // SAFETY: `_exit` has no premise.
            unsafe { libc::_exit(9) };
        }
    }
}

/// Runs `case` in a process of its own. That process must exit with `status`, and must not hang.
fn exits_with(test: &str, status: i32, case: impl FnOnce()) {
    if env::var_os(CHILD).is_some() {
        LAST.with(|_| ());
        KEEPS.store(true, SeqCst);
        return case();
    }
    let program = env::current_exe().unwrap();
    let mut child = Command::new("timeout");
    child.args(["600"]).arg(program).args(["--exact", test]);
    let output = child.args(["--nocapture"]).env(CHILD, "1").output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(said.contains("the last destructor"), "{said}");
}

/// Whether the runtime's threads end during the exit. Then two threads are left: the harness's and
/// the test's.
static ENDS_THREADS: AtomicBool = AtomicBool::new(false);

struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        if env::var_os(CHILD).is_none() {
            return;
        }
        // The exit does not wait for the runtime's threads. They end by themselves, and this loop
        // waits for them.
        while ENDS_THREADS.load(SeqCst) && fs::read_dir("/proc/self/task").unwrap().count() > 2 {
            thread::yield_now();
        }
        let here = Handle::try_current();
        if here.is_ok() {
            selvedge::spawn_detached(async {});
        }
        check_freed_blocks();
        if VALUE.try_get().is_ok_and(|value| value != 7) {
            eprintln!("a task-local value was read after it was freed");
            // SAFETY: `_exit` has no premise.
            unsafe { libc::_exit(9) };
        }
        drop(here);
        eprintln!("the last destructor");
    }
}

thread_local! {
    // `exits_with` uses this thread-local first, so that its destructor runs last.
    static LAST: Last = const { Last };
    static RUNTIME: Runtime = Runtime::new().unwrap();
    static LOCAL: LocalRuntime = LocalRuntime::new().unwrap();
    static SET: task_set::LocalSet = task_set::LocalSet::new();
    static DRIVEN: RefCell<Option<(Runtime, Worker<ThreadPark>)>> = const { RefCell::new(None) };
    static EXITING: RefCell<Option<Worker<Exiting>>> = const { RefCell::new(None) };
    static FUTURE: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>> = const { RefCell::new(None) };
}

selvedge::task_local! {
    static VALUE: u64;
}

#[test]
fn runtime_dropped_in_its_block_on_is_kept() {
    exits_with("runtime_dropped_in_its_block_on_is_kept", 7, || {
        ENDS_THREADS.store(true, SeqCst);
        RUNTIME.with(|runtime| runtime.block_on(async { exit(7) }));
    });
}

#[test]
fn local_runtime_dropped_in_its_block_on_is_kept() {
    exits_with("local_runtime_dropped_in_its_block_on_is_kept", 7, || {
        LOCAL.with(|runtime| runtime.block_on(async { exit(7) }));
    });
}

#[test]
fn local_set_dropped_in_its_task_does_not_wait() {
    exits_with("local_set_dropped_in_its_task_does_not_wait", 7, || {
        SET.with(|set| {
            set.spawn_detached(async { exit(7) });
            let mut cx = Context::from_waker(Waker::noop());
            let _ = pin!(set.run_until(pending::<()>())).poll(&mut cx);
        });
    });
}

#[test]
fn worker_dropped_in_its_tick_is_kept() {
    exits_with("worker_dropped_in_its_tick_is_kept", 7, || {
        let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
        runtime.spawn_detached(async { exit(7) });
        DRIVEN.with(|at| *at.borrow_mut() = Some((runtime, workers.remove(0))));
        DRIVEN.with(|at| {
            let mut at = at.borrow_mut();
            let _ = at.as_mut().unwrap().1.tick();
        });
    });
}

#[test]
fn worker_dropped_while_its_task_blocks_is_kept() {
    exits_with("worker_dropped_while_its_task_blocks_is_kept", 7, || {
        let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
        runtime.spawn_detached(async { selvedge::block_in_place(|| exit(7)) });
        DRIVEN.with(|at| *at.borrow_mut() = Some((runtime, workers.remove(0))));
        DRIVEN.with(|at| {
            let mut at = at.borrow_mut();
            let _ = at.as_mut().unwrap().1.tick();
        });
    });
}

static ARMED: AtomicBool = AtomicBool::new(false);

/// Parker whose waker exits the process if `ARMED` is set.
struct Exiting(ThreadPark);

struct ExitingWake(Waker);

impl Park for Exiting {
    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::new(ExitingWake(self.0.waker())))
    }
}

impl Wake for ExitingWake {
    fn wake(self: Arc<Self>) {
        if ARMED.swap(false, SeqCst) {
            exit(7);
        }
        self.0.wake_by_ref();
    }
}

#[test]
fn worker_dropped_in_a_wake_does_not_wait() {
    exits_with("worker_dropped_in_a_wake_does_not_wait", 7, || {
        let parks = [ThreadPark::new(), ThreadPark::new()].map(Exiting);
        let (runtime, mut workers) = Builder::new().build_driven(parks);
        let (other, mut mine) = (workers.remove(1), workers.remove(0));
        let slot = Arc::new(Mutex::new(None::<Waker>));
        let to = slot.clone();
        runtime.spawn_detached(poll_fn(move |cx| {
            *to.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        while mine.tick() == Tick::Ran {}
        thread::spawn(move || other.run());
        EXITING.with(|at| *at.borrow_mut() = Some(mine));
        let waker = slot.lock().unwrap().take().unwrap();
        // A wake from outside unparks the other worker, once that worker has parked.
        loop {
            ARMED.store(true, SeqCst);
            waker.wake_by_ref();
            thread::yield_now();
        }
    });
}

/// Fails if the slot of the key points into the future, which the exit frees.
#[test]
fn task_local_value_is_valid_after_the_drop_of_its_future() {
    exits_with(
        "task_local_value_is_valid_after_the_drop_of_its_future",
        7,
        || {
            FUTURE.with(|at| {
                let inner = VALUE.scope(7, async { exit(7) });
                let mut at = at.borrow_mut();
                let future = at.insert(Box::pin(VALUE.scope(7, inner)));
                let _ = future
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
            });
        },
    );
}

/// Parker whose park exits the process.
struct ExitingPark(ThreadPark);

impl Park for ExitingPark {
    fn park(&mut self) {
        exit(7);
    }

    fn park_timeout(&mut self, _: Duration) {
        exit(7);
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

#[test]
fn worker_dropped_in_its_park_does_not_wait() {
    thread_local! {
        static PARKED: RefCell<Option<(Runtime, Worker<ExitingPark>)>> = const { RefCell::new(None) };
    }
    exits_with("worker_dropped_in_its_park_does_not_wait", 7, || {
        let park = ExitingPark(ThreadPark::new());
        let (runtime, mut workers) = Builder::new().build_driven([park]);
        runtime.spawn_detached(pending::<()>());
        PARKED.with(|at| *at.borrow_mut() = Some((runtime, workers.remove(0))));
        PARKED.with(|at| {
            let mut at = at.borrow_mut();
            let worker = &mut at.as_mut().unwrap().1;
            while worker.tick() == Tick::Ran {}
            worker.park();
        });
    });
}
