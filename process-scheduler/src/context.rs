//! The context and the input of a process at its start.
use crate::{Address, Handle, Pid, address::Receive, guard::drop_guarded};
use std::{any::Any, fmt, marker::PhantomData, sync::Arc};

/// The context of a process at its start. See [`Process::init`](crate::Process::init).
///
/// ```
/// use process_scheduler::{
///     Address, Context, EventsOf, InitError, Input, NoCommand, OutputOf, Process, Step, StepOf,
/// };
///
/// struct Narcissus(Option<Address<()>>);
///
/// impl Process for Narcissus {
///     type Message = ();
///     type Cmd = NoCommand;
///     type Output = ();
///     type Error = ();
///     fn init(&mut self, cx: &Context<'_, ()>, _: &str, _: Input) -> Result<(), InitError> {
///         assert_eq!(cx.address().pid(), cx.pid());
///         self.0 = Some(cx.address());
///         cx.handle().monitor(cx.pid(), cx.pid());
///         Ok(())
///     }
///     fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
///         Step::Idle
///     }
/// }
/// ```
pub struct Context<'a, M> {
    pub(crate) pid: Pid,
    pub(crate) handle: &'a Handle,
    pub(crate) receiver: Arc<dyn Receive<M>>,
    pub(crate) method: PhantomData<&'a ()>,
}

impl<M: Send + 'static> Context<'_, M> {
    /// Returns the pid of the process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the process's scheduler.
    pub fn handle(&self) -> &Handle {
        self.handle
    }

    /// Returns the process's own address. If the process keeps this address, the process's memory
    /// is not freed before the process ends.
    pub fn address(&self) -> Address<M> {
        Address::new(self.receiver.clone())
    }
}

impl<M> fmt::Debug for Context<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// The input of a process's start: a value of any type, or none.
///
/// ```
/// use process_scheduler::Input;
///
/// assert_eq!(Input::new(7_u32).take::<u32>(), Some(7));
/// assert_eq!(Input::none().take::<u32>(), None);
/// ```
#[derive(Debug, Default)]
pub struct Input(Option<Box<dyn Any + Send>>);

impl Input {
    /// Makes an input that holds a value.
    pub fn new(value: impl Any + Send) -> Self {
        Self(Some(Box::new(value)))
    }

    /// Makes an input that holds nothing. Allocates nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Takes the value, if it has the type `T`.
    pub fn take<T: Any>(mut self) -> Option<T> {
        let value = self.0.take()?.downcast().ok()?;
        Some(*value)
    }
}

/// The scheduler may drop an input beside other values of the user.
impl Drop for Input {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(drop_guarded);
    }
}
