//! The names of the module `hooks`, for builds without the recorder. Only a simulation records
//! anything here.
use super::simulated;
use crate::worker::{
    core::Core,
    queue::Stealer,
    scheduler::{Scheduler, Task},
    shared::{Remote, Shared},
};
use sched_monitor::{Monitor, Workers};
use std::{panic::Location, time::Duration};
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
                simulated::of_task($kind, task.id(), 0);
            }
        )*
    };
}

of_a_task! {
    spawn("spawn");
    spawn_at("spawn", &'static Location<'static>);
    spawn_named("spawn", &'static Location<'static>);
    wake_from_outside("wake", Reason);
}

#[inline(always)]
pub(crate) fn poll_begin(_: &Shared, task: &Task) {
    simulated::poll_begin(task);
}

#[inline(always)]
pub(crate) fn poll_end(_: &Shared, ran: &Ran<Scheduler>) {
    simulated::poll_end(ran);
}

#[inline(always)]
pub(crate) fn steal(_: &Core, _: &Victim, tasks: usize) {
    simulated::of_scheduler("steal", tasks);
}

#[inline(always)]
pub(crate) fn steal_slot(_: &Core, from: usize, task: &Task) {
    simulated::of_task("steal from slot", task.id(), from);
}

#[inline(always)]
pub(crate) fn notify(_: &Shared, worker: usize) {
    simulated::of_scheduler("notify", worker);
}

/// Settings of the recorder, which there is none of.
#[derive(Clone, Default)]
pub(crate) struct RecorderSettings {}

#[inline(always)]
pub(crate) fn watch<W: Workers>(monitor: Monitor<W>, _: &Arc<Shared>) -> Monitor<W> {
    monitor
}

#[inline(always)]
pub(crate) fn note_panic_here() {}

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
    pub(crate) fn new(_: usize, _: RecorderSettings) -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn saves_on_panic(&self) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn wait(&self, _: Option<Duration>) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn wake(&self, _: usize, task: Id, _: WakeKind) {
        simulated::of_task("wake", task, 0);
    }

    nothing_of_a_worker! {
        inject(usize, usize);
        overflow(usize);
        slice(usize);
        forced_yield(usize);
        begin(&Arc<Shared>);
        note_stall();
        note_panic();
        close();
        go_on();
    }
}
