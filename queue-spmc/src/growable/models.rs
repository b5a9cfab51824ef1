//! Negative models of the rules by which a replaced buffer is freed: each model breaks one rule.
//! Where the queue would free a buffer, a model touches the slots of the buffer and leaks it. The
//! positive models are those of the deque and the FIFO.
use super::*;
use crate::{Steal, fifo::Worker};
use sync_shim::{model_must_fail, thread};

const VIOLATION: &str = "Concurrent read and write accesses";

fn fifo() -> Worker<u32> {
    let mut worker = Worker::with_capacity(2);
    worker.extend(0..2);
    worker
}

/// Replaces the buffer as `Owner::replace` does. `look` takes the place of the read-modify-write
/// by which `Owner::replace` reads `head`.
fn replace(owner: &mut Owner<u32>, look: impl FnOnce(&Queue<u32>) -> Head) {
    let head = owner.queue.load_head();
    let new = Box::new(Buffer::new(4));
    let slots = new.slots();
    let mut at = head.steal;
    while at != owner.bottom {
        // SAFETY: as in `Owner::replace`.
        unsafe { slots.copy(owner.slots, at) };
        at = at.wrapping_add(1);
    }
    // Ordering: Release, as in `Owner::replace`.
    owner.queue.buffer.store(Box::into_raw(new), Release);
    let old = core::mem::replace(&mut owner.slots, slots);
    if !look(&owner.queue).is_copying() {
        for at in 0..old.capacity() {
            // SAFETY: the buffer is leaked, so it is never freed.
            let slot = unsafe { old.slot(at) };
            slot.with_mut(|_| ());
        }
    }
}

/// The owner looks at `head` by a load, which may miss a claim.
#[test]
fn look_at_head_by_a_load_frees_a_buffer_in_use() {
    model_must_fail(VIOLATION, || {
        let mut worker = fifo();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || matches!(stealer.steal(), Steal::Success { .. }));
        replace(&mut worker.owner, Queue::load_head);
        thief.join().unwrap();
    });
}

/// The thief loads the buffer before its claim. Only the claim shows the owner that the thief uses
/// a buffer.
#[test]
fn buffer_loaded_before_the_claim_is_freed_in_use() {
    model_must_fail(VIOLATION, || {
        let mut worker = fifo();
        let queue = worker.owner.queue.clone();
        let thief = thread::spawn(move || {
            // SAFETY: unsound on purpose; the buffers are leaked.
            let slots = unsafe { queue.claimed_slots() };
            let head = queue.load_head();
            if queue.exchange_head(head, head.claimed(1)).is_ok() {
                let _claim = Claim(&queue);
                // SAFETY: unsound on purpose, as above.
                unsafe { slots.read(head.top) };
            }
        });
        replace(&mut worker.owner, |queue| {
            // Ordering: AcqRel, as in `Owner::replace`.
            Head::unpack(queue.head.fetch_or(0, AcqRel))
        });
        thief.join().unwrap();
    });
}
