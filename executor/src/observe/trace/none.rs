//! The names of the module `hooks`, for builds without the recorder. Nothing here records anything,
//! except in a simulation (`sync_shim::sim`), whose trace has these events.
use crate::worker::{
    core::Core,
    queue::Stealer,
    scheduler::{Scheduler, Task},
    shared::{Remote, Shared},
};
use std::panic::Location;
use sync_shim::{sim, sync::Arc};
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
    take_back(&Core, Lender);
    park(&Core);
    unpark(&Core);
}

macro_rules! of_a_task {
    ($($name:ident($kind:literal $(, $argument:ty)?);)*) => {
        $(
            #[inline(always)]
            #[allow(dead_code, reason = "other features call some of them")]
            pub(crate) fn $name(_: &Shared, task: &Task $(, _: $argument)?) {
                sim::event($kind, address(task.id()), 0);
            }
        )*
    };
}

of_a_task! {
    spawn("spawn");
    spawn_at("spawn", &'static Location<'static>);
    spawn_named("spawn", &'static Location<'static>);
    wake_from_outside("wake", Reason);
    poll_begin("poll");
}

/// Returns the address by which the simulation knows a task, or 0 if there is no simulation.
#[inline(always)]
fn address(task: Id) -> usize {
    if sim::is_simulated() {
        task.address()
    } else {
        0
    }
}

#[inline(always)]
pub(crate) fn poll_end(_: &Shared, ran: &Ran<Scheduler>) {
    let ended = matches!(ran, Ran::Complete);
    sim::event(
        if ended {
            "end of poll and task"
        } else {
            "end of poll"
        },
        0,
        0,
    );
}

#[inline(always)]
pub(crate) fn steal(_: &Core, _: &Victim, tasks: usize) {
    sim::event("steal", 0, tasks as u64);
}

#[inline(always)]
pub(crate) fn steal_slot(_: &Core, from: usize, task: &Task) {
    sim::event("steal from slot", address(task.id()), from as u64);
}

#[inline(always)]
pub(crate) fn notify(_: &Shared, worker: usize) {
    sim::event("notify", 0, worker as u64);
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

    #[inline(always)]
    pub(crate) fn wake(&self, _: usize, task: Id, _: WakeKind) {
        sim::event("wake", address(task), 0);
    }

    nothing_of_a_worker! {
        inject(usize, usize);
        overflow(usize);
        slice(usize);
        forced_yield(usize);
    }
}
