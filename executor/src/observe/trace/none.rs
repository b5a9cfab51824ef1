//! The names of the module `hooks`, for builds without the recorder. Nothing here records anything.
use crate::worker::{
    core::Core,
    queue::Stealer,
    scheduler::{Scheduler, Task},
    shared::{Remote, Shared},
};
use std::panic::Location;
use sync_shim::sync::Arc;
use task_header::{Id, Ran, WakeKind};

pub(crate) struct Victim;

impl Victim {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn look<'a>(&self, _: &[Arc<Remote>], remote: &'a Arc<Remote>) -> &'a Stealer {
        &remote.stealer
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Reason;

#[inline(always)]
pub(crate) fn reason(_: WakeKind) -> Reason {
    Reason
}

#[derive(Clone, Copy)]
pub(crate) struct Lender;

#[inline(always)]
pub(crate) fn lend(_: &Core) -> Lender {
    Lender
}

macro_rules! nothing {
    ($($name:ident($($argument:ty),*);)*) => {
        $(
            #[inline(always)]
            #[allow(dead_code, reason = "other features call some of them")]
            pub(crate) fn $name($(_: $argument),*) {}
        )*
    };
}

nothing! {
    spawn(&Shared, &Task);
    spawn_at(&Shared, &Task, &'static Location<'static>);
    spawn_named(&Shared, &Task, &'static Location<'static>);
    wake_from_outside(&Shared, &Task, Reason);
    poll_begin(&Shared, &Task);
    poll_end(&Shared, &Ran<Scheduler>);
    take_back(&Core, Lender);
    steal(&Core, &Victim, usize);
    steal_slot(&Core, usize, &Task);
    park(&Core);
    unpark(&Core);
    notify(&Shared, usize);
}

pub(crate) struct Trace;

macro_rules! nothing_of_a_worker {
    ($($name:ident($($argument:ty),*);)*) => {
        $(
            #[inline(always)]
            pub(crate) fn $name(&self, $(_: $argument),*) {}
        )*
    };
}

impl Trace {
    #[inline(always)]
    pub(crate) fn new(_: usize) -> Self {
        Self
    }

    nothing_of_a_worker! {
        wake(usize, Id, WakeKind);
        inject(usize, usize);
        overflow(usize);
        slice(usize);
        forced_yield(usize);
    }
}
