//! Models of a small counted target under clones, wakes and drops from two threads. Before the
//! target is freed, its atomics are retired, so that an access that is not ordered before the free
//! fails the model.
//!
//! "Fails if" names the changes to the code that make a model fail.
use crate::*;
use std::{ptr::NonNull, task::Waker};
use sync_shim::{
    alloc::{Layout, alloc, dealloc},
    atomic::{
        AtomicUsize,
        Ordering::{self, AcqRel, Relaxed},
        Retire,
    },
    model, model_must_fail,
    sync::{Arc, Mutex},
    thread,
};

/// A counted target. With `STRONG` it decrements its count with an ordering that is strong enough,
/// and otherwise with Relaxed.
pub(crate) struct Target<const STRONG: bool> {
    refs: AtomicUsize,
    wakes: AtomicUsize,
    /// This is not an atomic of the model, since it outlives the executions.
    frees: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl<const STRONG: bool> Target<STRONG> {
    const DROP: Ordering = if STRONG { AcqRel } else { Relaxed };

    pub(crate) fn waker(frees: &std::sync::Arc<std::sync::atomic::AtomicUsize>) -> Waker {
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc(Layout::new::<Self>()) }.cast::<Self>();
        let this = NonNull::new(block).expect("there is memory");
        let value = Self {
            refs: AtomicUsize::new(1),
            wakes: AtomicUsize::new(0),
            frees: frees.clone(),
        };
        // SAFETY: the block is fresh and has this layout.
        unsafe { this.write(value) };
        // SAFETY: the waker takes over the one reference.
        unsafe { waker(this) }
    }
}

// SAFETY: the table is the default, and the target is counted. The count is sound for `STRONG`;
// otherwise it is not, as a model must find.
unsafe impl<const STRONG: bool> WakeTarget for Target<STRONG> {
    unsafe fn ref_inc(this: NonNull<Self>) {
        // SAFETY: the caller has a reference.
        let this = unsafe { this.as_ref() };
        // Ordering: Relaxed, the caller's reference keeps the target live.
        this.refs.fetch_add(1, Relaxed);
    }

    unsafe fn ref_dec(this: NonNull<Self>) {
        if std::thread::panicking() {
            return; // The model has failed already; a second panic would hide the first.
        }
        // SAFETY: the caller has a reference.
        let refs = &unsafe { this.as_ref() }.refs;
        // Ordering: AcqRel with `STRONG`: the last drop acquires all that the others released.
        if refs.fetch_sub(1, Self::DROP) != 1 {
            return;
        }
        // SAFETY: that was the last reference.
        let last = unsafe { &mut *this.as_ptr() };
        let sound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            last.refs.retire();
            last.wakes.retire();
        }));
        // Ordering: Relaxed, the value is read after a join.
        last.frees.fetch_add(1, Relaxed);
        // SAFETY: the target is initialised, and dropped once.
        unsafe { this.drop_in_place() };
        // SAFETY: `waker` allocated the block with this layout.
        unsafe { dealloc(this.as_ptr().cast(), Layout::new::<Self>()) };
        // The panic resumes only here: loom aborts if the model fails while a block is not freed.
        if let Err(found) = sound {
            std::panic::resume_unwind(found);
        }
    }

    unsafe fn wake_by_ref(this: NonNull<Self>) {
        // SAFETY: the caller has a reference.
        let this = unsafe { this.as_ref() };
        // Ordering: Relaxed, the value is never read.
        this.wakes.fetch_add(1, Relaxed);
    }

    unsafe fn wake_by_val(this: NonNull<Self>) {
        // SAFETY: the caller has a reference.
        unsafe { Self::wake_by_ref(this) };
        // SAFETY: the caller gives up its reference.
        unsafe { Self::ref_dec(this) };
    }
}

fn clone_wake_and_drop<const STRONG: bool>() {
    let frees = std::sync::Arc::default();
    let waker = Target::<STRONG>::waker(&frees);
    let other = {
        let waker = waker.clone();
        thread::spawn(move || {
            waker.wake_by_ref();
            drop(waker);
        })
    };
    let second = waker.clone();
    drop(waker);
    second.wake();
    other.join().unwrap();
    // Ordering: Relaxed, ordered by the join.
    assert_eq!(frees.load(Relaxed), 1);
}

/// Two threads clone wakers, wake by them and drop them: the target is freed once.
///
/// Fails if `clone` does not call `ref_inc`, or if `ref_dec` has the ordering of the negative model
/// below.
#[test]
fn last_waker_of_two_threads_frees_once() {
    model(clone_wake_and_drop::<true>);
}

#[test]
fn count_lowered_with_relaxed_is_a_use_after_free() {
    model_must_fail(
        "Concurrent atomic load and unsync mut accesses",
        clone_wake_and_drop::<false>,
    );
}

/// A target that counts its wakes.
pub(crate) struct Count(pub(crate) AtomicUsize);

impl WakeRef for Count {
    fn wake(&self) {
        // Ordering: Relaxed, the value is read after the joins.
        self.0.fetch_add(1, Relaxed);
    }
}

/// Two threads use the wakers of one `Arc`.
///
/// Fails if `wake` does not drop its reference (the leak fails the model).
#[test]
fn arc_is_freed_with_its_last_waker() {
    model(|| {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = from_arc(count.clone());
        let other = {
            let waker = waker.clone();
            thread::spawn(move || waker.wake())
        };
        waker.wake_by_ref();
        drop(waker);
        other.join().unwrap();
        // Ordering: Relaxed, ordered by the join.
        assert_eq!(count.0.load(Relaxed), 2);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// A task. Each wake pushes it to a queue.
struct Pushed(Arc<Mutex<Vec<Arc<Pushed>>>>);

impl ArcWake for Pushed {
    fn wake(this: Arc<Self>) {
        let queue = this.0.clone();
        queue.lock().push(this);
    }
}

/// A task is woken by value on one thread, and by a borrowed waker on another. The queue then holds
/// two references to the task, and no waker holds a reference.
///
/// Fails if `wake` leaks or clones its reference, if `wake_by_ref` drops a reference, or if a
/// `WakerRef` drops its waker.
#[test]
fn arc_pushed_by_its_wakes_is_owned_by_the_queue() {
    model(|| {
        let queue = Arc::new(Mutex::new(Vec::new()));
        let task = Arc::new(Pushed(queue.clone()));
        let other = {
            let waker = WakerRef::from_arc(&task).clone();
            thread::spawn(move || waker.wake())
        };
        WakerRef::from_arc(&task).wake_by_ref();
        other.join().unwrap();
        let woken: Vec<_> = queue.lock().drain(..).collect();
        assert!(woken.len() == 2 && woken.iter().all(|pushed| Arc::ptr_eq(pushed, &task)));
        assert_eq!(Arc::strong_count(&task), 3);
        drop(woken);
        assert_eq!(Arc::strong_count(&task), 1);
    });
}
