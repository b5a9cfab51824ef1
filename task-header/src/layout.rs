//! Sizes and auto traits, pinned.
use crate::{AbortHandle, JoinError, JoinHandle, Notified, Owned, Schedule, WakeKind};
use core::panic::{RefUnwindSafe, UnwindSafe};
use static_assertions::{assert_impl_all, assert_not_impl_any};

struct Ptr(#[allow(dead_code)] *const ());
// SAFETY: never read.
unsafe impl Send for Ptr {}
// SAFETY: never read.
unsafe impl Sync for Ptr {}
impl Schedule for Ptr {
    fn schedule(_: Notified<Self>, _: WakeKind) {}
}

assert_impl_all!(Notified<Ptr>: Send, Sync);
assert_not_impl_any!(Notified<Ptr>: Clone);
assert_impl_all!(Owned<Ptr>: Send);
assert_not_impl_any!(Owned<Ptr>: Sync, Clone);
assert_impl_all!(JoinHandle<Vec<u8>>: Send, Sync, Unpin);
assert_not_impl_any!(JoinHandle<Vec<u8>>: Clone);
assert_not_impl_any!(JoinHandle<std::rc::Rc<u8>>: Send, Sync);
assert_impl_all!(AbortHandle: Send, Sync, Clone);
assert_impl_all!(JoinError: Send, Sync);
// Whatever the output is: as for whoever comes from other runtimes.
assert_impl_all!(JoinHandle<core::cell::Cell<u8>>: UnwindSafe, RefUnwindSafe);
assert_impl_all!(AbortHandle: UnwindSafe, RefUnwindSafe);

#[cfg(all(
    target_pointer_width = "64",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
mod bytes {
    use super::*;
    use crate::{
        Header,
        cell::{Detached, JoinWaker, size_of_cell},
    };
    static_assertions::assert_eq_size!(Header, [u8; 32]);
    static_assertions::assert_eq_align!(Header, usize);
    static_assertions::assert_eq_size!(Notified<Ptr>, usize);
    // Unit output, 16 bytes of future, a pointer for a scheduler: the 72 of an 80-byte block.
    static_assertions::const_assert!(size_of_cell::<Small, Ptr, JoinWaker, ()>() <= 72);
    // The 56 of a 64-byte block where nobody joins.
    static_assertions::const_assert!(size_of_cell::<Small, Ptr, Detached, ()>() <= 56);
    static_assertions::assert_eq_size!(JoinHandle<Vec<u8>>, usize);
    static_assertions::assert_eq_size!(JoinError, usize);

    pub(crate) struct Small([u64; 2]);
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
}
