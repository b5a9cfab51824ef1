//! What users want to hear of, and where their panics go.
use std::{any::Any, fmt, panic::AssertUnwindSafe, sync::Arc};
use task_header::Id;

/// What happens after a task or a blocking closure has panicked.
///
/// The panic goes to its handle in any case.
///
/// ```
/// use selvedge::{Builder, UnhandledPanic};
///
/// let runtime = Builder::new().unhandled_panic(UnhandledPanic::Ignore).build()?;
/// let panics = runtime.spawn(async { panic!("oh no") });
/// assert!(runtime.block_on(panics).unwrap_err().is_panic());
/// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnhandledPanic {
    /// Nothing more: the others go on.
    #[default]
    Ignore,
    /// The runtime is shut down: the other tasks are cancelled, and each [`block_on`](crate::Handle::block_on) that waits
    /// there panics, as does one that is to wait there later: on threads from outside, and in closures of `spawn_blocking`.
    ///
    /// ```
    /// use selvedge::{Builder, UnhandledPanic};
    ///
    /// let runtime = Builder::new().unhandled_panic(UnhandledPanic::Shutdown).build()?;
    /// runtime.spawn_detached(async { panic!("oh no") });
    /// let waits = || runtime.block_on(std::future::pending::<()>());
    /// assert!(std::panic::catch_unwind(waits).is_err());
    /// assert_eq!(runtime.block_on(async { 7 }), 7); // It is ready.
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Shutdown,
}

type Hook = Option<Arc<dyn Fn() + Send + Sync>>;
type TaskHook = Option<Arc<dyn Fn(Id) + Send + Sync>>;
type PanicHook = Option<Arc<dyn Fn(&(dyn Any + Send)) + Send + Sync>>;

/// A builder's hooks. A panic of one goes to the panic handler, and no further.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) on_start: Hook,
    pub(crate) on_stop: Hook,
    pub(crate) on_park: Hook,
    pub(crate) on_unpark: Hook,
    pub(crate) on_spawn: TaskHook,
    pub(crate) before_poll: TaskHook,
    pub(crate) after_poll: TaskHook,
    pub(crate) on_end: TaskHook,
    pub(crate) on_panic: PanicHook,
    pub(crate) policy: UnhandledPanic,
}

impl Hooks {
    /// Whether polls are looked at.
    pub(crate) fn observe_polls(&self) -> bool {
        self.before_poll.is_some() || self.after_poll.is_some() || self.on_end.is_some()
    }

    /// Whether spawns are looked at, or what they spawn is to be overheard.
    pub(crate) fn observe_spawns(&self) -> bool {
        self.on_spawn.is_some() || self.observe_panics()
    }

    /// Whether panics of tasks matter to anybody but their handles.
    pub(crate) fn observe_panics(&self) -> bool {
        self.on_panic.is_some() || self.policy != UnhandledPanic::Ignore
    }

    pub(crate) fn call(&self, hook: &Hook) {
        if let Some(hook) = hook {
            self.contain(|| hook());
        }
    }

    pub(crate) fn tell(&self, hook: &TaskHook, task: Id) {
        if let Some(hook) = hook {
            self.contain(|| hook(task));
        }
    }

    /// Runs user code whose panic has no handle to go to.
    pub(crate) fn contain(&self, f: impl FnOnce()) {
        if let Err(payload) = std::panic::catch_unwind(AssertUnwindSafe(f)) {
            self.panicked(&*payload);
            discard(payload);
        }
    }

    /// Somebody's code has panicked.
    pub(crate) fn panicked(&self, payload: &(dyn Any + Send)) {
        if let Some(hook) = &self.on_panic
            && let Err(payload) = std::panic::catch_unwind(AssertUnwindSafe(|| hook(payload)))
        {
            discard(payload);
        }
    }
}

/// A payload's drop is user code, too.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(payload) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
