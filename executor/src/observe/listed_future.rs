//! Futures in the list of tasks that the scheduler does not run: that of `block_on`, and the tasks
//! of a [`LocalSet`](crate::LocalSet).
//!
//! A future adds itself before a poll, in the thread that polls it, and its drop takes it out. Its
//! place in the list has the waker of the last poll. A dump puts its request into the entry, and
//! then wakes the future. If another wake comes first, the poll for that one takes the request; the
//! poll for the dump is then a plain one. A future that is polled at the moment, or about to be for
//! an earlier dump, is not asked. Its polls are in one thread at a time, as those of a task (rule 4
//! of the list).
//!
//! The wake of a local task leads to a poll of the future that polls the set. During a dump such a
//! poll counts only if an operation of that future makes progress.
use crate::{
    observe::task_list::{Entry, Listed, Subject, TaskList, WaitingFuture},
    scope,
    worker::{scheduler::Scheduler, shared::Shared},
};
use pin_project_lite::pin_project;
use std::{
    borrow::Cow,
    future::Future,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};
use sync_shim::sync::Arc;
use task_header::Id;

/// The name of the future of `block_on`, among the tasks.
const BLOCK_ON: &str = "block_on";

/// A future's place in the list.
pub(crate) struct ListedFuture {
    listed: Listed,
    waiting: Arc<WaitingFuture>,
    /// Dropped after the place in the list, which has the id.
    _named: Option<Named>,
}

/// The address of an entry, as the id of a future that is no task.
struct Named(usize);

impl Drop for Named {
    fn drop(&mut self) {
        sync_shim::sim::freed(self.0);
    }
}

impl ListedFuture {
    /// Lists the future of a `block_on`, if the runtime lists its tasks.
    #[inline]
    pub(crate) fn block_on(shared: &Shared, at: &'static Location<'static>) -> Option<Self> {
        if !shared.settings.lists_tasks {
            return None;
        }
        Some(Self::new(shared, Some(Cow::Borrowed(BLOCK_ON)), at, None))
    }

    /// Lists a local task of this id, or else the future of a `block_on`.
    #[cold]
    fn new(
        shared: &Shared,
        name: Option<Cow<'static, str>>,
        at: &'static Location<'static>,
        task: Option<Id>,
    ) -> Self {
        // SAFETY: the runtime keeps the group of main, and it is in memory as `shared` is.
        let group = unsafe { Scheduler::of(shared).group_ref() };
        let listed = TaskList::add(&shared.tasks, None, Entry::new(name, at, group));
        let waiting = Arc::new(WaitingFuture::new(task.is_none()));
        let id = task.unwrap_or_else(|| Id::of_address(&**listed.entry()));
        let named = task.is_none().then(|| {
            sync_shim::sim::allocated(id.address());
            Named(id.address())
        });
        listed.show(id, Subject::Future(waiting.clone()));
        Self {
            listed,
            waiting,
            _named: named,
        }
    }

    /// Runs a poll of the future. If a dump asks, the poll answers.
    pub(crate) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Before the look for a request: a request that this poll misses comes with a wake of this
        // waker.
        self.waiting.keep(cx.waker());
        let entry = self.listed.entry();
        let poll = || coop_budget::poll_as(entry.number(), || poll(cx));
        match entry.take_request() {
            Some(request) => request.answer(entry, |end| {
                let polled = poll();
                end(true);
                let is_ready = polled.is_ready();
                (polled, is_ready)
            }),
            None if self.listed.is_dumping() => {
                let before = entry.begin_dump();
                coop_budget::watch(&|_| (), |watching| {
                    let polled = poll();
                    let has_progressed = polled.is_ready() || watching.so_far().has_progressed;
                    entry.end_dump(&before, has_progressed);
                    polled
                })
            }
            None => {
                entry.begin_poll();
                let polled = coop_budget::unwatched(poll);
                entry.end_poll();
                polled
            }
        }
    }
}

/// Whether a local task is in a list.
pub(crate) enum Stage {
    /// It was not polled yet.
    New(&'static Location<'static>),
    Named(Box<(Cow<'static, str>, &'static Location<'static>)>),
    /// The runtime of its first poll does not list its tasks.
    Unlisted,
    Listed(Box<ListedFuture>),
}

impl Stage {
    pub(crate) fn new(name: Option<&Cow<'static, str>>, at: &'static Location<'static>) -> Self {
        match name {
            None => Self::New(at),
            Some(name) => Self::Named(Box::new((name.clone(), at))),
        }
    }

    /// Lists the task in the runtime that this thread is in, if that one lists its tasks.
    #[inline]
    fn begin(&mut self) {
        if matches!(self, Self::New(_) | Self::Named(_)) {
            let stage = std::mem::replace(self, Self::Unlisted);
            if scope::lists_tasks() {
                *self = stage.list();
            }
        }
    }

    #[cold]
    fn list(self) -> Self {
        let (name, at) = match self {
            Self::New(at) => (None, at),
            Self::Named(named) => (Some(named.0), named.1),
            stage => return stage,
        };
        match (scope::current(), task_header::current()) {
            (Some(shared), Some(task)) => {
                Self::Listed(Box::new(ListedFuture::new(&shared, name, at, Some(task))))
            }
            _ => Self::Unlisted,
        }
    }
}

pin_project! {
    /// Future of a local task, which is listed from its first poll on.
    pub(crate) struct Listing<F> {
        #[pin]
        future: F,
        stage: Stage,
    }
}

impl<F> Listing<F> {
    pub(crate) fn new(future: F, stage: Stage) -> Self {
        Self { future, stage }
    }
}

impl<F: Future> Future for Listing<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.stage.begin();
        match this.stage {
            Stage::Listed(listed) => listed.poll(cx, |cx| this.future.poll(cx)),
            _ => this.future.poll(cx),
        }
    }
}
