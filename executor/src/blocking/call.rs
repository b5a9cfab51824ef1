//! Identifies a blocking call of a task, during which the task's thread gives its core away.
//!
//! While a thread is in a call, another thread may accept the core, and offer it again from a call
//! of its own. The first thread may then return and find the core on offer, with the state of the
//! other thread's poll: its group, its time slice, its thread. So each core on offer names the call
//! that offered it. A thread takes back only a core that its own call has offered, and offers any
//! other core again.
use crate::{blocking, worker::core::Core};

/// A call in progress. Its address is unique among the calls in progress.
#[derive(Default)]
pub(crate) struct Call(u8);

impl Call {
    #[inline]
    pub(crate) fn id(&self) -> usize {
        (&raw const self.0).addr()
    }

    /// Marks the core that is about to be given away.
    #[inline]
    pub(crate) fn begin(&self, core: &Core) {
        core.lending.call.set(self.id());
    }
}

/// Returns the core if this call has offered it. Otherwise offers it to the other threads again.
#[inline]
pub(crate) fn take_back_or_offer(core: Box<Core>, call: usize) -> Option<Box<Core>> {
    if core.lending.call.get() == call {
        return Some(core);
    }
    offer_again(core);
    None
}

#[cold]
#[inline(never)]
fn offer_again(core: Box<Core>) {
    let shared = core.shared.clone();
    blocking::offer(&shared, core);
}
