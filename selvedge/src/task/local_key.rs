//! Task-local values: `task_local!` and `LocalKey`.
//!
//! A key has a thread-local *slot*: a pointer to the value of the innermost *scope* of that key, or
//! null. A scope is a call of [`LocalKey::sync_scope`], or one poll or the drop of a
//! [`TaskLocalFuture`].
//!
//! 1. Only a scope writes the slot ([`Scope`]). At its start it writes the address of its own
//!    value. At its end, even if it ends by a panic, it writes the address that was there before.
//!    So the slot names the innermost scope of this thread that has not ended.
//! 2. A scope moves its value into the stack frame that begins the scope, and back at its end. It
//!    ends in that frame. So an address in the slot is valid, and no code moves, drops or changes
//!    the value.
//! 3. [`LocalKey::with`] lends the value for one call. Scopes that begin in that call end in it.
//! 4. The slot has no destructor, so destructors of other thread-locals may read it. If
//!    `process::exit` runs them in the middle of a scope, the frame of that scope stays for good,
//!    and so does the value in the frame. Such a destructor may drop or poll the scope's own
//!    [`TaskLocalFuture`], which has no value then.
use pin_project_lite::pin_project;
use std::{
    cell::Cell,
    fmt,
    future::Future,
    marker::PhantomPinned,
    pin::Pin,
    ptr,
    task::{Context, Poll},
};

/// Declares task-local values: statics of the type [`LocalKey`](crate::task::LocalKey).
///
/// The macro has the syntax of tokio's. A value exists only in the scopes of its key, so a key has
/// no initial value. A task does not inherit the values of the task that spawns it.
///
/// ```
/// selvedge::task_local! {
///     /// The request that this task answers.
///     pub static REQUEST: u32;
///     static USER: String;
/// }
///
/// let runtime = selvedge::Runtime::new()?;
/// let task = runtime.spawn(REQUEST.scope(7, async {
///     selvedge::yield_now().await;
///     assert!(USER.try_with(|_| {}).is_err());
///     REQUEST.get()
/// }));
/// assert_eq!(runtime.block_on(task).unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! task_local {
    () => {};
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty; $($rest:tt)*) => {
        $crate::task_local! { $(#[$attribute])* $visible static $name: $type }
        $crate::task_local! { $($rest)* }
    };
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty) => {
        $(#[$attribute])*
        $visible static $name: $crate::task::LocalKey<$type> = {
            ::std::thread_local! {
                static SLOT: $crate::task::Slot<$type> = const { $crate::task::Slot::new() };
            }
            $crate::task::LocalKey::new(SLOT)
        };
    };
}

/// The thread-local part of a key, for [`task_local!`](crate::task_local).
#[doc(hidden)]
#[derive(Debug)]
pub struct Slot<T>(Cell<*const T>);

impl<T> Slot<T> {
    /// Makes an empty slot.
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self(Cell::new(ptr::null()))
    }
}

/// Key of a task-local value, which [`task_local!`](crate::task_local) declares.
///
/// ```
/// selvedge::task_local! {
///     static DEPTH: u32;
/// }
///
/// assert!(DEPTH.try_with(|_| {}).is_err() && DEPTH.try_get().is_err());
/// DEPTH.sync_scope(1, || {
///     DEPTH.sync_scope(2, || assert_eq!(DEPTH.get(), 2));
///     DEPTH.with(|depth| assert_eq!(*depth, 1));
/// });
/// ```
pub struct LocalKey<T: 'static> {
    slot: std::thread::LocalKey<Slot<T>>,
}

impl<T: 'static> LocalKey<T> {
    /// Makes a key of a slot, for [`task_local!`](crate::task_local).
    #[doc(hidden)]
    pub const fn new(slot: std::thread::LocalKey<Slot<T>>) -> Self {
        Self { slot }
    }

    /// Returns a future in whose polls and drop this key has the value.
    ///
    /// Each poll costs two accesses of a thread-local, and moves the value twice. Nothing is
    /// allocated.
    ///
    /// ```
    /// selvedge::task_local! {
    ///     static USER: &'static str;
    /// }
    ///
    /// let runtime = selvedge::Runtime::new()?;
    /// let inner = USER.scope("Noether", async { USER.get() });
    /// let both = USER.scope("Hopper", async { (inner.await, USER.get()) });
    /// assert_eq!(runtime.block_on(both), ("Noether", "Hopper"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F> {
        TaskLocalFuture {
            key: self,
            value: Some(value),
            future: Some(future),
            _pinned: PhantomPinned,
        }
    }

    /// Runs `f`, in which this key has the value.
    #[track_caller]
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        self.within(&mut Some(value), f)
    }

    /// Runs `f` with the value of the innermost scope of this key.
    ///
    /// # Panics
    /// If this thread is in no scope of this key.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs `f` with the value of the innermost scope of this key, if there is one.
    ///
    /// # Errors
    /// If this thread is in no scope of this key.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = self.slot.with(|slot| slot.0.get());
        // SAFETY: the pointer is null, or it is valid and its value is not written during this call
        // (rules 2 to 4).
        match unsafe { value.as_ref() } {
            Some(value) => Ok(f(value)),
            None => Err(AccessError(())),
        }
    }

    /// Returns a clone of the value of the innermost scope of this key.
    ///
    /// # Panics
    /// If this thread is in no scope of this key.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Returns a clone of the value of the innermost scope of this key, if there is one.
    ///
    /// # Errors
    /// If this thread is in no scope of this key.
    pub fn try_get(&'static self) -> Result<T, AccessError>
    where
        T: Clone,
    {
        self.try_with(T::clone)
    }

    /// Runs `f` in a scope.
    fn within<R>(&'static self, value: &mut Option<T>, f: impl FnOnce() -> R) -> R {
        let mut scope = Scope {
            key: self,
            outer: ptr::null(),
            held: value.take(),
            value,
        };
        let held = scope.held.as_ref().map_or(ptr::null(), ptr::from_ref);
        scope.outer = self.slot.with(|slot| slot.0.replace(held));
        f()
    }
}

/// A scope in progress (rules 1 and 2). It stays in the frame of [`LocalKey::within`], whose end
/// drops it.
struct Scope<'a, T: 'static> {
    key: &'static LocalKey<T>,
    /// The address that was in the slot before.
    outer: *const T,
    /// The value, while the scope is in progress.
    held: Option<T>,
    /// The place from which the value was taken.
    value: &'a mut Option<T>,
}

impl<T> Drop for Scope<'_, T> {
    fn drop(&mut self) {
        self.key.slot.with(|slot| slot.0.set(self.outer));
        *self.value = self.held.take();
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("LocalKey { .. }")
    }
}

/// Error of [`LocalKey::try_with`]: the thread is in no scope of the key.
///
/// ```
/// selvedge::task_local! {
///     static USER: String;
/// }
///
/// let error: selvedge::task::AccessError = USER.try_get().unwrap_err();
/// assert_eq!(error.to_string(), "task-local value not set: call this in a scope of its key");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("task-local value not set: call this in a scope of its key")
    }
}

impl std::error::Error for AccessError {}

pin_project! {
    /// Future of [`LocalKey::scope`].
    ///
    /// ```
    /// use selvedge::task::futures::TaskLocalFuture;
    /// use std::{future::{Ready, ready}, pin::pin};
    ///
    /// selvedge::task_local! {
    ///     static USER: String;
    /// }
    ///
    /// let runtime = selvedge::Runtime::new()?;
    /// let future: TaskLocalFuture<String, Ready<u32>> = USER.scope("Ada".into(), ready(7));
    /// let mut future = pin!(future);
    /// assert_eq!(runtime.block_on(future.as_mut()), 7);
    /// assert_eq!(future.take_value().unwrap(), "Ada");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct TaskLocalFuture<T, F>
    where
        T: 'static,
    {
        key: &'static LocalKey<T>,
        value: Option<T>,
        // Dropped in the key's scope, as soon as it is ready.
        #[pin]
        future: Option<F>,
        // The future is never `Unpin`, as in tokio: a program that compiles with one of the two
        // compiles with the other.
        #[pin]
        _pinned: PhantomPinned,
    }

    impl<T, F> PinnedDrop for TaskLocalFuture<T, F>
    where
        T: 'static,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.future.is_some() {
                this.key.within(this.value, || this.future.set(None));
            }
        }
    }
}

impl<T: 'static, F> TaskLocalFuture<T, F> {
    /// Takes the value out, unless it was taken before. Later polls are in a scope without a value.
    ///
    /// ```
    /// use std::{future::ready, pin::pin};
    ///
    /// selvedge::task_local! {
    ///     static USER: String;
    /// }
    ///
    /// let mut future = pin!(USER.scope("Ada".into(), ready(7)));
    /// assert_eq!(future.as_mut().take_value().unwrap(), "Ada");
    /// assert!(future.take_value().is_none());
    /// ```
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        self.project().value.take()
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    /// # Panics
    /// If the future is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        this.key.within(this.value, || {
            let Some(polled) = this.future.as_mut().as_pin_mut() else {
                panic!("a TaskLocalFuture was polled after it was ready");
            };
            let output = polled.poll(cx);
            if output.is_ready() {
                this.future.set(None);
            }
            output
        })
    }
}

impl<T: fmt::Debug, F> fmt::Debug for TaskLocalFuture<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocalFuture")
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}
