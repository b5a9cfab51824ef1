//! Constructors that are `const` wherever the backend's atomics have `const` constructors.

/// Declares a function that is `const`, except under a backend whose atomics have no `const`
/// constructor: loom's, shuttle's and the counting one.
///
/// A type that is built on the shim's atomics can then be put in a user's `static`, outside of
/// models.
///
/// ```
/// use sync_shim::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// pub struct Gate(AtomicUsize);
///
/// impl Gate {
///     sync_shim::const_fn! {
///         /// A closed gate.
///         pub const fn new() -> Self {
///             Self(AtomicUsize::new(0))
///         }
///     }
/// }
///
/// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
/// static GATE: Gate = Gate::new();
/// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
/// assert_eq!(GATE.0.load(Relaxed), 0);
/// ```
#[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
#[macro_export]
macro_rules! const_fn {
    ($(#[$attr:meta])* $vis:vis const fn $($rest:tt)*) => { $(#[$attr])* $vis const fn $($rest)* };
}

/// Declares a function without `const`: this backend's atomics have no `const` constructor.
#[cfg(any(selvedge_loom, selvedge_shuttle, selvedge_count))]
#[macro_export]
macro_rules! const_fn {
    ($(#[$attr:meta])* $vis:vis const fn $($rest:tt)*) => { $(#[$attr])* $vis fn $($rest)* };
}
