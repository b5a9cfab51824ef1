//! The identity of a runtime: the id that no other runtime has had, and its address.
use std::{
    fmt,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Identifies a runtime in this process. No two runtimes have had the same id.
///
/// ```
/// let (one, other) = (selvedge_executor::Runtime::new()?, selvedge_executor::Runtime::new()?);
/// let id: selvedge_executor::RuntimeId = one.handle().id();
/// assert_eq!(one.block_on(async { selvedge_executor::Handle::current().id() }), id);
/// assert_ne!(other.handle().id(), id);
/// println!("runtime {id}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuntimeId(u64);

impl RuntimeId {
    /// Makes the next id.
    pub(crate) fn next() -> Self {
        // An atomic of std, so that models need not explore it.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Ordering: Relaxed, as only the numbers must differ.
        Self(NEXT.fetch_add(1, Relaxed))
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuntimeId({self})")
    }
}

/// Stands for the runtime that an address belongs to. The module [`shared`](crate::worker::shared)
/// makes such addresses, and alone turns them back into references.
pub(crate) struct Address(());

/// The address of a runtime, to be compared, or to be turned back while the runtime exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuntimePtr(pub(crate) NonNull<Address>);

// SAFETY: the pointer stands for a shared borrow of a `Shared`, which is `Sync`. The code that
// turns the pointer back into a reference proves that the runtime exists.
unsafe impl Send for RuntimePtr {}

// SAFETY: as above.
unsafe impl Sync for RuntimePtr {}
