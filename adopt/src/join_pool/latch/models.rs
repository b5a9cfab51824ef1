//! Models of the stack frame of a waiting thread. The frame ends as soon as its latch is set.
use super::*;
use sync_shim::{atomic::Retire, cell::UnsafeCell, model, model_must_fail, thread};
use worker_idle::park::{Park, ThreadPark};

/// A frame with a job's result and the latch of its waiting thread.
struct Frame {
    latch: OutsideLatch,
    result: UnsafeCell<u32>,
}

/// The address of a frame, for the thread that runs the job.
#[derive(Clone, Copy)]
struct FrameAddress(*mut Frame);

// SAFETY: the models pass the address to one thread, as a pool passes a job.
unsafe impl Send for FrameAddress {}

/// Runs a job on another thread, which then sets the latch by `set`. This thread waits for the
/// latch, and ends the frame.
fn job_in_a_frame(set: unsafe fn(*const OutsideLatch)) {
    let mut park = ThreadPark::new();
    let address = FrameAddress(Box::into_raw(Box::new(Frame {
        latch: OutsideLatch::new(park.waker()),
        result: UnsafeCell::new(0),
    })));
    let other = thread::spawn(move || {
        // The block moves the whole address, not its field alone, into this closure.
        let FrameAddress(address) = { address };
        // SAFETY: the frame lives until the latch is set.
        let frame = unsafe { &*address };
        frame.result.with_mut(|result| {
            // SAFETY: nobody reads the result before the latch is set.
            unsafe { *result = 7 };
        });
        // SAFETY: the frame lives until the latch is set, and the latch is set once.
        unsafe { set(&raw const (*address).latch) };
    });
    // SAFETY: the frame lives until this thread ends it below.
    let frame = unsafe { &*address.0 };
    while !frame.latch.is_done() {
        park.park();
    }
    // SAFETY: the latch is set, so the other thread has written the result.
    let result = frame.result.with(|result| unsafe { *result });
    assert_eq!(result, 7);
    // SAFETY: the latch is set, so the other thread uses nothing of the frame any more.
    let mut frame = unsafe { Box::from_raw(address.0) };
    frame.latch.done.retire();
    drop(frame);
    other.join().unwrap();
}

/// The waiting thread sees the result, and the setter touches nothing of the frame afterwards.
///
/// Fails if the store in `set` is Relaxed.
#[test]
fn frame_that_ends_once_its_latch_is_set_is_not_used() {
    model(|| job_in_a_frame(|latch| unsafe { OutsideLatch::set(latch) }));
}

/// A setter with a bug uses the latch again after setting it, and so uses a frame that may be gone.
#[test]
fn setter_that_uses_the_latch_afterwards_is_found() {
    model_must_fail("", || {
        job_in_a_frame(|latch| {
            // SAFETY: wrong on purpose: the latch may be gone after the store.
            unsafe {
                (*latch).done.store(1, Release);
                // The model fails at this load, so its value does not matter.
                let _ = (*latch).done.load(Acquire);
                (*latch).waker.wake_by_ref();
            }
        });
    });
}
