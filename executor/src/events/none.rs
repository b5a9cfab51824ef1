//! Stands for the driver in builds without one: there are no timers and no sockets. A worker parks
//! in a [`ThreadPark`], or in a user's parker.
use crate::worker::{
    park::{Park, ThreadPark},
    shared::Shared,
};
use std::{future::Future, task::Waker};
use sync_shim::sync::Arc;
use worker_idle::Wait;

pub(crate) type EventsPark = ThreadPark;

/// A user's parker.
pub(crate) type Over<'a, P> = &'a mut P;

/// Stands for the choice of how sockets are polled.
#[derive(Clone, Copy, Default)]
pub(crate) struct Polling(());

#[derive(Clone)]
pub(crate) struct Events;

pub(crate) struct Entered;

pub(crate) struct ClockHold;

impl Events {
    pub(crate) fn new(_: usize, _: Polling) -> Self {
        Self
    }

    pub(crate) fn without(self, _: bool, _: bool) -> Self {
        self
    }

    pub(crate) fn open(&self) -> std::io::Result<()> {
        Ok(())
    }

    pub(crate) fn over(_: impl IntoIterator<Item = Waker>) -> Self {
        Self
    }

    pub(crate) fn waker(&self, _: usize, unpark: Waker) -> Waker {
        unpark
    }

    pub(crate) fn park(&self, _: usize, _: Wait) -> EventsPark {
        ThreadPark::new()
    }

    pub(crate) fn park_of_users(&self, _: usize, _: Wait) -> EventsPark {
        ThreadPark::new()
    }

    /// Runs `f`.
    ///
    /// # Safety
    /// There is no condition here. In builds with a driver the runtime must exist.
    #[inline(always)]
    pub(crate) unsafe fn borrowed_scope<R>(
        _: Option<&Self>,
        _: Option<usize>,
        f: impl FnOnce() -> R,
    ) -> R {
        f()
    }

    pub(crate) fn bind(&self, _: &Arc<Shared>) {}

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        ThreadPark::block_on(future)
    }

    pub(crate) fn with_standby(self) -> Self {
        self
    }

    pub(crate) fn let_stand_by(&self) {}

    pub(crate) fn recruit_standby(&self) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn lacks_standby(&self) -> bool {
        false
    }

    pub(crate) fn poll_overdue(&self, _: std::time::Duration) {}

    pub(crate) fn until_overdue(&self, _: std::time::Duration) -> Option<std::time::Duration> {
        None
    }

    #[cfg(selvedge_sim)]
    pub(crate) fn first_deadline(&self) -> Option<std::time::Duration> {
        None
    }

    pub(crate) fn hold_clock(&self) -> ClockHold {
        ClockHold
    }

    pub(crate) fn pause(&self) {}

    pub(crate) fn set_max_events(&self, _: usize) {}

    pub(crate) fn set_blocking(&self, _: fn(Box<dyn FnOnce() + Send>)) {}

    pub(crate) fn enter(&self) -> Entered {
        Entered
    }

    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        false
    }
}

pub(crate) fn poll_all(_: &mut EventsPark) {}

pub(crate) struct DrivenEvents;

impl DrivenEvents {
    pub(crate) fn new(_: &Events, _: usize) -> Self {
        Self
    }

    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn over<'a, P: Park>(&'a mut self, park: &'a mut P) -> Over<'a, P> {
        park
    }
}
