//! Tests of recognised wakers, counted references, and panics of wakers.
use crate::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, RawWakerVTable, Wake, Waker},
};

#[derive(Default)]
struct Target {
    refs: AtomicUsize,
}

static VTABLE: RawWakerVTable = vtable_of::<Target>();

// SAFETY: the table is that of `Target`. The tests keep the target live.
unsafe impl WakeTarget for Target {
    fn vtable() -> &'static RawWakerVTable {
        &VTABLE
    }
    unsafe fn ref_inc(this: NonNull<Self>) {
        // SAFETY: the target is live.
        unsafe { this.as_ref() }.refs.fetch_add(1, Relaxed);
    }
    unsafe fn ref_dec(this: NonNull<Self>) {
        // SAFETY: the target is live.
        unsafe { this.as_ref() }.refs.fetch_sub(1, Relaxed);
    }
    unsafe fn wake_by_ref(_: NonNull<Self>) {}
    unsafe fn wake_by_val(this: NonNull<Self>) {
        // SAFETY: the caller gives up its reference.
        unsafe { Self::ref_dec(this) };
    }
}

#[test]
fn borrowed_waker_counts_only_its_clones() {
    let target = Target::default();
    {
        // SAFETY: the target outlives the waker.
        let waker = unsafe { WakerRef::new(NonNull::from(&target)) };
        assert_eq!(target.refs.load(Relaxed), 0);
        let clone = waker.clone();
        assert!(clone.will_wake(&waker));
        assert_eq!(target.refs.load(Relaxed), 1);
        clone.wake();
    }
    assert_eq!(target.refs.load(Relaxed), 0);
}

#[test]
fn try_target_recognises_only_own_wakers() {
    struct Other;

    static OTHER: RawWakerVTable = vtable_of::<Other>();

    // SAFETY: the table is that of `Other`. No waker of it is made.
    unsafe impl WakeTarget for Other {
        fn vtable() -> &'static RawWakerVTable {
            &OTHER
        }
        unsafe fn ref_inc(_: NonNull<Self>) {}
        unsafe fn ref_dec(_: NonNull<Self>) {}
        unsafe fn wake_by_ref(_: NonNull<Self>) {}
        unsafe fn wake_by_val(_: NonNull<Self>) {}
    }

    let target = Target::default();
    // SAFETY: the target outlives the waker.
    let waker = unsafe { WakerRef::new(NonNull::from(&target)) };
    for waker in [&*waker, &waker.clone()] {
        assert_eq!(try_target(waker), Some(NonNull::from(&target)));
        assert_eq!(try_target::<Other>(waker), None);
    }
    assert_eq!(try_target::<Target>(Waker::noop()), None);
}

#[test]
fn waker_takes_over_a_reference() {
    let target = Target {
        refs: AtomicUsize::new(2),
    };
    // SAFETY: the waker takes one of the two references, and the target outlives it.
    let waker = unsafe { waker(NonNull::from(&target)) };
    let clone = waker.clone();
    assert_eq!(target.refs.load(Relaxed), 3);
    clone.wake();
    waker.wake_by_ref();
    drop(waker);
    assert_eq!(target.refs.load(Relaxed), 1);
}

/// A task that a wake pushes to a queue: a wake by the standard library's trait, or by this
/// crate's.
#[derive(Default)]
struct Pushed<const PANICS: bool>(Arc<Mutex<Vec<Arc<Self>>>>);

impl<const PANICS: bool> ArcWake for Pushed<PANICS> {
    fn wake(this: Arc<Self>) {
        assert!(!PANICS, "a wake's panic");
        let queue = this.0.clone();
        queue.lock().unwrap().push(this);
    }
}

impl<const PANICS: bool> Wake for Pushed<PANICS> {
    fn wake(self: Arc<Self>) {
        ArcWake::wake(self);
    }
}

/// Empties the queue. Returns how often the task was in it, and the references that are left.
fn references<const PANICS: bool>(task: &Arc<Pushed<PANICS>>) -> (usize, usize) {
    let pushed = std::mem::take(&mut *task.0.lock().unwrap()).len();
    (pushed, Arc::strong_count(task))
}

/// A function that borrows a waker.
type Borrow<T> = for<'a> fn(&'a Arc<T>) -> WakerRef<'a>;

#[test]
fn borrowed_waker_of_an_arc_counts_only_its_clones() {
    let ways: [Borrow<Pushed<false>>; 2] = [
        |task| WakerRef::from_arc(task),
        |task| WakerRef::from_wake(task),
    ];
    for borrow in ways {
        let task = Arc::new(Pushed::default());
        let kept = {
            let waker = borrow(&task);
            assert_eq!(Arc::strong_count(&task), 1);
            let kept = Context::from_waker(&waker).waker().clone();
            assert_eq!(Arc::strong_count(&task), 2);
            waker.wake_by_ref();
            assert_eq!(references(&task), (1, 2));
            kept
        };
        assert_eq!(Arc::strong_count(&task), 2);
        kept.wake_by_ref();
        assert_eq!(references(&task), (1, 2));
        kept.wake();
        assert_eq!(references(&task), (1, 1));
    }
}

#[test]
fn wake_by_value_hands_over_its_arc() {
    let task = Arc::new(Pushed::<false>::default());
    let waker = from_arc(task.clone());
    let before = Arc::strong_count(&task);
    waker.wake();
    assert_eq!(Arc::strong_count(&task), before);
    assert_eq!(references(&task), (1, before - 1));
}

#[test]
fn wake_of_an_arc_that_panics_leaks_no_reference() {
    let task = Arc::new(Pushed::<true>::default());
    let ways: [Borrow<Pushed<true>>; 2] = [
        |task| WakerRef::from_arc(task),
        |task| WakerRef::from_wake(task),
    ];
    for borrow in ways {
        let kept = borrow(&task).clone();
        catch_unwind(AssertUnwindSafe(|| kept.wake_by_ref())).unwrap_err();
        catch_unwind(AssertUnwindSafe(|| borrow(&task).wake_by_ref())).unwrap_err();
        assert_eq!(Arc::strong_count(&task), 2);
        catch_unwind(AssertUnwindSafe(|| kept.wake())).unwrap_err();
        assert_eq!(Arc::strong_count(&task), 1);
    }
}

#[test]
fn wake_ref_target_is_woken_by_a_borrowed_waker_too() {
    struct Counts(AtomicUsize);
    impl WakeRef for Counts {
        fn wake(&self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let task = Arc::new(Counts(AtomicUsize::new(0)));
    let waker = WakerRef::from_arc(&task);
    waker.wake_by_ref();
    let kept = waker.clone();
    kept.wake();
    assert_eq!((task.0.load(Relaxed), Arc::strong_count(&task)), (2, 1));
}

/// Logs its number when it is woken, and then panics if `panics` is set.
struct Note {
    number: usize,
    panics: bool,
    log: Arc<Mutex<Vec<usize>>>,
}

impl WakeRef for Note {
    fn wake(&self) {
        self.log.lock().unwrap().push(self.number);
        assert!(!self.panics, "a waker's panic");
    }
}

#[derive(Default)]
struct Log(Arc<Mutex<Vec<usize>>>);

impl Log {
    fn waker(&self, number: usize, panics: bool) -> Waker {
        let log = self.0.clone();
        from_arc(Arc::new(Note {
            number,
            panics,
            log,
        }))
    }

    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn wake_list_wakes_in_order_and_returns_the_waker_without_room() {
    let log = Log::default();
    let mut list = WakeList::<3>::new();
    for number in 0..3 {
        assert_eq!(list.len(), number);
        list.push(log.waker(number, false)).unwrap();
    }
    assert!(list.is_full());
    let full = list.push(log.waker(9, false)).unwrap_err();
    assert_eq!(full.to_string(), "the list of wakers is full");
    full.into_inner().wake();
    list.wake_all();
    assert!(list.is_empty());
    assert_eq!(log.take(), [9, 0, 1, 2]);
    list.push(log.waker(3, false)).unwrap();
    drop(list);
    assert_eq!(log.take(), [3]);
}

#[test]
fn wake_list_with_a_panicking_waker_wakes_the_others() {
    let log = Log::default();
    let mut list = WakeList::<4>::new();
    for number in 0..4 {
        list.push(log.waker(number, number == 1)).unwrap();
    }
    catch_unwind(AssertUnwindSafe(|| list.wake_all())).unwrap_err();
    assert!(list.is_empty());
    assert_eq!(log.take(), [0, 1, 2, 3]);
    assert_eq!(Arc::strong_count(&log.0), 1, "each was dropped");
}

// Fails, by an abort of the process, if a second panic unwinds beside the first.
#[test]
fn wake_list_with_panicking_wakers_wakes_them_all() {
    let log = Log::default();
    let mut list = WakeList::<4>::new();
    for number in 0..4 {
        list.push(log.waker(number, number != 2)).unwrap();
    }
    catch_unwind(AssertUnwindSafe(|| list.wake_all())).unwrap_err();
    assert!(list.is_empty());
    assert_eq!(log.take(), [0, 1, 2, 3]);
    assert_eq!(Arc::strong_count(&log.0), 1, "each was dropped");
}

// Fails, by an abort of the process, if the panic of the list's first waker unwinds beside that of
// the closure.
#[test]
fn wake_list_dropped_in_a_panic_wakes_them_all() {
    let log = Log::default();
    let unwound = catch_unwind(|| {
        let mut list = WakeList::<2>::new();
        for number in 0..2 {
            list.push(log.waker(number, true)).unwrap();
        }
        panic!("first");
    });
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"first"));
    assert_eq!(log.take(), [0, 1]);
    assert_eq!(Arc::strong_count(&log.0), 1, "each was dropped");
}

#[test]
fn wake_list_of_capacity_zero_is_full() {
    let mut list = WakeList::<0>::new();
    assert!(list.is_full() && list.is_empty());
    assert!(list.push(Waker::noop().clone()).is_err());
    list.wake_all();
}

#[test]
fn waker_cell_wakes_the_last_registered_waker_once() {
    let (log, cell) = (Log::default(), WakerCell::new());
    cell.wake();
    cell.register(&log.waker(0, false));
    cell.register(&log.waker(1, false));
    cell.wake();
    cell.wake();
    assert_eq!(log.take(), [1]);
    assert!(cell.take().is_none());
}

#[test]
fn waker_cell_does_not_clone_the_same_waker_again() {
    let (log, cell) = (Log::default(), WakerCell::new());
    // `will_wake` holds of clones. The compiler may give the first waker a table of its own.
    let waker = log.waker(0, false).clone();
    cell.register(&waker);
    let kept = cell.take().unwrap();
    cell.register(&kept);
    cell.register(&waker);
    assert!(cell.take().unwrap().will_wake(&waker));
}

/// Creates a waker whose clone panics.
fn unclonable() -> Waker {
    static TABLE: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("a clone's panic"), |_| (), |_| (), |_| ());
    // SAFETY: the functions need no data.
    unsafe { Waker::new(std::ptr::null(), &TABLE) }
}

#[test]
fn waker_clone_that_panics_leaves_the_cell_unchanged() {
    let (log, cell) = (Log::default(), WakerCell::new());
    catch_unwind(|| cell.register(&unclonable())).unwrap_err();
    assert!(cell.take().is_none());
    cell.register(&log.waker(0, false));
    catch_unwind(|| cell.register(&unclonable())).unwrap_err();
    cell.wake();
    assert_eq!(log.take(), [0]);
}

// A notifier comes during a clone that then panics. So the registration wakes the waker that the
// cell had, and that wake panics as well. Fails, by an abort of the process, if the second panic
// unwinds beside the first.
#[test]
fn waker_clone_and_wake_that_panic_leave_the_cell_empty() {
    static CELL: LazyLock<WakerCell> = LazyLock::new(WakerCell::new);
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |_| {
            CELL.wake();
            panic!("a clone's panic")
        },
        |_| (),
        |_| (),
        |_| (),
    );
    // SAFETY: the functions need no data.
    let notifies = unsafe { Waker::new(std::ptr::null(), &TABLE) };
    let log = Log::default();
    CELL.register(&log.waker(0, true));
    let panic = catch_unwind(|| CELL.register(&notifies)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a clone's panic"));
    CELL.register(&log.waker(1, false));
    CELL.wake();
    assert_eq!(log.take(), [0, 1]);
    assert_eq!(Arc::strong_count(&log.0), 1, "each was dropped");
}

#[test]
fn wake_that_panics_leaves_the_cell_empty_and_usable() {
    let (log, cell) = (Log::default(), WakerCell::new());
    cell.register(&log.waker(0, true));
    catch_unwind(|| cell.wake()).unwrap_err();
    cell.register(&log.waker(1, false));
    cell.wake();
    assert_eq!(log.take(), [0, 1]);
}
