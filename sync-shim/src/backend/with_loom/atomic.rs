//! loom's atomics. The module [`mutant`](super::mutant) may weaken the operation at one call site.
use super::{mutant, steps};
use std::{
    cell::Cell,
    fmt,
    ops::{Deref, DerefMut},
    sync::atomic::Ordering::{self, Relaxed, Release, SeqCst},
};

loom::lazy_static! {
    static ref TURN: loom::sync::atomic::AtomicUsize = loom::sync::atomic::AtomicUsize::new(0);
}

std::thread_local! {
    /// Whether a `SeqCst` fence has a step in front of it. It is the same for all threads of a
    /// model, as they run on one real thread.
    static STEPS: Cell<bool> = const { Cell::new(true) };
}

/// Prepares a scenario. Creates `TURN` at the start. If a thread created `TURN` at its first fence,
/// the creation would order that thread with others.
pub(crate) fn begin(fences_are_steps: bool) {
    let _: &loom::sync::atomic::AtomicUsize = &TURN;
    STEPS.set(fences_are_steps);
    steps::begin();
}

/// Fences. For loom a fence is not a step of its own, so no other thread would run between a fence
/// and the operation before it. A Relaxed operation in front of a `SeqCst` fence adds the step.
#[track_caller]
pub fn fence(order: Ordering) {
    let ([order], how) = mutant::at("fence", [order]);
    if how.is_some() {
        return;
    }
    if order == SeqCst && STEPS.get() {
        // Ordering: Relaxed, it only adds a step, at which the model may switch threads.
        TURN.fetch_add(1, Relaxed);
    }
    loom::sync::atomic::fence(order);
    steps::note(|| format!("fence({order:?})"));
}

macro_rules! atomics {
    ($($name:ident $(<$g:ident>)?, $value:ty;)*) => {$(
        /// An atomic of loom, whose calls [`mutant`](super::mutant) may weaken.
        pub struct $name$(<$g>)?(loom::sync::atomic::$name$(<$g>)?);

        impl$(<$g>)? $name$(<$g>)? {
            /// Does what the method of loom does.
            #[track_caller]
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            /// Does what the method of loom does.
            #[track_caller]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// Does what the method of loom does.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let ([order], _) = mutant::at("load", [order]);
                let value = self.0.load(order);
                steps::on(self, || format!("load({order:?}) = {value:?}"));
                value
            }

            /// Does what the method of loom does.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let ([order], _) = mutant::at("store", [order]);
                self.0.store(value, order);
                steps::on(self, || format!("store({value:?}, {order:?})"));
            }

            /// Does what the method of loom does.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let ([order], _) = mutant::at("swap", [order]);
                let before = self.0.swap(value, order);
                steps::on(self, || format!("swap({value:?}, {order:?}) = {before:?}"));
                before
            }

            /// Does what the method of loom does.
            ///
            /// # Errors
            /// Returns the current value.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let orders = mutant::at("compare_exchange", [success, failure]);
                self.exchange(from, to, orders)
            }

            /// Does what the method of loom does, which never fails spuriously.
            ///
            /// # Errors
            /// Returns the current value.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let orders = mutant::at("compare_exchange_weak", [success, failure]);
                self.exchange(from, to, orders)
            }

            #[track_caller]
            fn exchange(
                &self,
                from: $value,
                to: $value,
                ([success, failure], how): ([Ordering; 2], Option<&str>),
            ) -> Result<$value, $value> {
                if how.is_some() {
                    // Ordering: Release, the strongest ordering that loom gives a store. So the
                    // mutant lacks only the load and the comparison.
                    self.0.store(to, Release);
                    return Ok(from);
                }
                let done = self.0.compare_exchange(from, to, success, failure);
                steps::on(self, || {
                    format!("compare_exchange({from:?}, {to:?}, {success:?}, {failure:?}) = {done:?}")
                });
                done
            }

            /// Does what the method of loom does.
            ///
            /// # Errors
            /// Returns the current value if `f` returns `None` for it.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let ([set, fetch], _) = mutant::at("fetch_update", [set, fetch]);
                let done = self.0.fetch_update(set, fetch, f);
                steps::on(self, || format!("fetch_update({set:?}, {fetch:?}) = {done:?}"));
                done
            }
        }

        impl$(<$g>)? fmt::Debug for $name$(<$g>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl$(<$g>)? Default for $name$(<$g>)? {
            #[track_caller]
            fn default() -> Self {
                Self(Default::default())
            }
        }

        impl$(<$g>)? From<$value> for $name$(<$g>)? {
            #[track_caller]
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        /// Gives access to loom's other operations.
        impl$(<$g>)? Deref for $name$(<$g>)? {
            type Target = loom::sync::atomic::$name$(<$g>)?;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl$(<$g>)? DerefMut for $name$(<$g>)? {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    )*};
}

atomics! {
    AtomicBool, bool;
    AtomicU32, u32;
    AtomicU64, u64;
    AtomicUsize, usize;
    AtomicPtr<T>, *mut T;
}

macro_rules! arithmetic {
    ($($name:ident, $value:ty: $($op:ident)*;)*) => {$(
        impl $name {
            $(
                /// Does what the method of loom does.
                #[track_caller]
                pub fn $op(&self, value: $value, order: Ordering) -> $value {
                    let ([order], _) = mutant::at(stringify!($op), [order]);
                    let before = self.0.$op(value, order);
                    let name = stringify!($op);
                    steps::on(self, || format!("{name}({value:?}, {order:?}) = {before:?}"));
                    before
                }
            )*
        }
    )*};
}

arithmetic! {
    AtomicBool, bool: fetch_and fetch_or fetch_xor;
    AtomicU32, u32: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min;
    AtomicU64, u64: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min;
    AtomicUsize, usize: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min;
}

macro_rules! retire {
    ($($t:ty $(, $g:ident)?;)*) => {$(
        impl$(<$g>)? crate::atomic::Retire for $t {
            #[inline(always)]
            fn retire(&mut self) {
                self.0.with_mut(|_| ());
            }
        }
    )*};
}
retire! { AtomicU32; AtomicU64; AtomicUsize; AtomicPtr<T>, T; }
