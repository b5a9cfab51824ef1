//! Drops of the user's values, which may panic.
use sync_shim::panics::{Payload, catch, discard};

/// Drops each value, also after the drop of another has panicked. Returns the first panic.
pub(crate) fn drop_each<T>(values: impl Iterator<Item = T>) -> Option<Payload> {
    let mut first = None;
    for value in values {
        if let Err(panic) = catch(|| drop(value)) {
            match first {
                None => first = Some(panic),
                Some(_) => discard(panic),
            }
        }
    }
    first
}

/// Continues a panic, unless the thread unwinds from another.
pub(crate) fn resume(panic: Option<Payload>) {
    let Some(panic) = panic else { return };
    #[cfg(feature = "std")]
    if !std::thread::panicking() {
        std::panic::resume_unwind(panic);
    }
    discard(panic);
}
