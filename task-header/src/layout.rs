//! Asserts the sizes that this crate promises.
use crate::{
    Header, JoinError, JoinHandle, Notified, Schedule, WakeKind,
    cell::{Detached, JoinWaker, size_of_cell},
};

struct Ptr(#[allow(dead_code)] *const ());
// SAFETY: no code reads the pointer.
unsafe impl Send for Ptr {}
// SAFETY: no code reads the pointer.
unsafe impl Sync for Ptr {}
impl Schedule for Ptr {
    fn schedule(_: Notified<Self>, _: WakeKind) {}
}

struct Small([u64; 2]);
impl Future for Small {
    type Output = ();
    fn poll(
        self: core::pin::Pin<&mut Self>,
        _: &mut core::task::Context<'_>,
    ) -> core::task::Poll<()> {
        assert!(self.0[0] == self.0[1]);
        core::task::Poll::Ready(())
    }
}

static_assertions::assert_eq_size!(Header, [u8; 32]);
static_assertions::assert_eq_align!(Header, usize);
static_assertions::assert_eq_size!(Notified<Ptr>, usize);
// A task with a unit output, a future of 16 bytes and a scheduler of one pointer takes 72 bytes,
// which an allocator's block of 80 holds.
static_assertions::const_assert!(size_of_cell::<Small, Ptr, JoinWaker, ()>() <= 72);
// Without a join handle it takes 56 bytes, which a block of 64 holds.
static_assertions::const_assert!(size_of_cell::<Small, Ptr, Detached, ()>() <= 56);
static_assertions::assert_eq_size!(JoinHandle<Vec<u8>>, usize);
static_assertions::assert_eq_size!(JoinError, usize);
