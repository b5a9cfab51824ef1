//! The calls from the stacks of the fibers.
use super::{
    World, epoch, stacks,
    threads::{Body, Panic, State, Thread},
};
use crate::{choice::About, failure::Failure, net::HostId};
use corosensei::Yielder;
use std::{
    io, mem,
    panic::{self, AssertUnwindSafe, Location},
    ptr,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use sync_shim::sim::{Fiber, Host, Subject, Wait};

/// How much time passes in a reading of the clock. Without it a thread that reads the clock until
/// some time has passed would never end.
const READING: u64 = 20;

/// How much time a poll takes at least. Without it tasks that only yield would stop the time.
const POLL: u64 = 100;

impl World {
    /// Begins a wait of this thread. The caller switches to the loop then.
    pub(super) fn begin_wait(
        &self,
        id: u32,
        on: Wait,
        limit: Option<Duration>,
        at: &'static Location<'static>,
    ) {
        let until = limit.map_or(u64::MAX, |limit| {
            let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            self.now.get().saturating_add(nanos)
        });
        let wait = {
            let mut threads = self.threads.borrow_mut();
            let thread = &mut threads[id as usize - 1];
            thread.state = State::Waiting(on);
            thread.waits += 1;
            (thread.timed_out, thread.waits_at) = (false, at);
            thread.waits
        };
        // A limit in some centuries never ends a wait. So the clock does not come near its end.
        if until < u64::MAX / 2 {
            self.limits.borrow_mut().add(until, id, wait);
            self.next_limit.set(self.next_limit.get().min(until));
        }
    }

    /// Lets the time of a poll pass, if polls take time: the thread has just begun one.
    #[inline]
    fn take_time(&self, fiber: &Fiber) {
        if !self.polls_take_time && !self.hosts_differ.get() {
            return;
        }
        let mut cost = 0;
        if self.polls_take_time {
            let mut choices = self.choices.borrow_mut();
            cost = choices.next(About::Polls, u32::MAX, || {
                self.rule.borrow().cost(&mut self.for_choices.borrow_mut())
            });
        }
        let mut nanos = 100 * u64::from(cost);
        if self.hosts_differ.get() {
            let (times, more) = self.slowness();
            nanos = nanos * times + more;
        }
        if nanos > 0 {
            let time = Duration::from_nanos(nanos);
            self.wait(fiber, Wait::Busy, Some(time), Location::caller());
        }
    }

    /// Lets the limits fire that are over, and another thread run. `count` is the number of points.
    #[inline]
    pub(super) fn pass_points(&self, count: u64) {
        let points = self.points.get() + count;
        self.points.set(points);
        self.watched.beat(points);
        let id = self.current.get();
        self.fire_limits();
        let is_over =
            self.steps.get() + points > self.settings.steps || self.failure.borrow().is_some();
        if is_over || self.fault_is_due.get() {
            // The loop of `run` ends the run, or makes the fault happen.
            self.ready.borrow_mut().push(id);
            self.switch(id);
        } else if !self.ready.borrow().is_empty() && !self.stays(id, 1) {
            self.switch(id);
        }
    }

    /// Starts a thread on a host.
    pub(super) fn spawn_on(
        &self,
        host: HostId,
        name: Option<Arc<str>>,
        f: Box<dyn FnOnce()>,
    ) -> io::Result<u64> {
        let stack = self.within(stacks::take)?;
        let label = self.label_of(host, name.as_ref());
        let id = self.threads.borrow().len() as u64 + 1;
        let world = ptr::from_ref(self);
        let body = Body::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            // SAFETY: the world outlives its threads.
            let world = unsafe { &*world };
            let fiber = {
                let mut threads = world.threads.borrow_mut();
                let thread = &mut threads[id as usize - 1];
                thread.yielder = yielder;
                ptr::from_ref(&*thread.fiber)
            };
            let ended = panic::catch_unwind(AssertUnwindSafe(|| {
                f();
                // SAFETY: the box of the fiber stays until the end of the run.
                let fiber = unsafe { &*fiber };
                // SAFETY: the fiber is the current one, and `f` has returned.
                unsafe { fiber.end() };
            }));
            if let Err(payload) = ended {
                // std aborts then, too.
                eprintln!(
                    "selvedge-sim: the drop of a thread-local has panicked, so the process aborts"
                );
                mem::forget(payload);
                std::process::abort();
            }
        });
        self.rule
            .borrow_mut()
            .add_thread(&mut self.for_choices.borrow_mut());
        self.within(|| self.watched.add_thread(name.as_deref()));
        // SAFETY: the world is in a box that stays until the end of the run.
        let fiber = unsafe { Fiber::new(ptr::from_ref(self), self.run.clone(), id, name) };
        self.threads.borrow_mut().push(Thread {
            fiber: Box::new(fiber),
            state: State::Ready,
            body: Some(body),
            yielder: ptr::null(),
            has_token: false,
            timed_out: false,
            waits: 0,
            waits_at: Location::caller(),
            panics: Vec::new(),
            host,
            label,
        });
        self.live.set(self.live.get() + 1);
        self.record(u64::from(self.current.get()), "thread", 0, id);
        self.ready.borrow_mut().push(id as u32);
        Ok(id)
    }

    /// Returns the name of a thread for the events, if they are kept: with the name of its host, if
    /// there are several.
    fn label_of(&self, host: HostId, name: Option<&Arc<str>>) -> Option<Arc<str>> {
        if self.settings.kept_events == 0 || host == 0 {
            return name.filter(|_| self.settings.kept_events > 0).cloned();
        }
        let network = self.network.borrow();
        let (host, name) = (network.name_of(host), name.map_or("unnamed", |name| name));
        Some(match host == name {
            true => host.into(),
            false => format!("{host}: {name}").into(),
        })
    }

    /// Lets other threads run during the wait. Returns whether it ended before its limit.
    pub(super) fn end_wait(&self, id: u32) -> bool {
        self.switch(id);
        !self.threads.borrow()[id as usize - 1].timed_out
    }
}

impl Host for World {
    fn now(&self) -> Instant {
        self.now.set(self.now.get() + READING);
        epoch() + Duration::from_nanos(self.now.get())
    }

    fn epoch(&self) -> Instant {
        epoch()
    }

    fn random(&self) -> u64 {
        self.for_program.borrow_mut().next()
    }

    #[inline]
    fn point(&self, _: &Fiber) {
        self.now.set(self.now.get() + POLL);
        self.pass_points(1);
    }

    #[inline]
    fn preempt(&self, times: u64) {
        let id = self.current.get();
        if id > 0 && !self.ready.borrow().is_empty() && !self.stays(id, times) {
            self.switch(id);
        }
    }

    fn wait(
        &self,
        fiber: &Fiber,
        on: Wait,
        limit: Option<Duration>,
        at: &'static Location<'static>,
    ) -> bool {
        if let Wait::Join(other) = on {
            if self.threads.borrow()[other as usize - 1].state == State::Over {
                return true;
            }
        }
        let id = fiber.id() as u32;
        self.begin_wait(id, on, limit, at);
        self.end_wait(id)
    }

    fn unlock_and_wait(
        &self,
        fiber: &Fiber,
        unlocked: Wait,
        on: Wait,
        limit: Option<Duration>,
        at: &'static Location<'static>,
    ) -> bool {
        let id = fiber.id() as u32;
        self.begin_wait(id, on, limit, at);
        self.wake_all_of(unlocked, true);
        self.end_wait(id)
    }

    fn park(&self, fiber: &Fiber, limit: Option<Duration>, at: &'static Location<'static>) {
        self.preempt(8);
        let id = fiber.id() as u32;
        let take = || mem::take(&mut self.threads.borrow_mut()[id as usize - 1].has_token);
        if take() {
            return;
        }
        self.record(fiber.id(), "park", 0, 0);
        self.wait(fiber, Wait::Park, limit, at);
        take();
        self.record(fiber.id(), "unparked", 0, 0);
    }

    fn unpark(&self, id: u64) {
        self.preempt(8);
        self.record(u64::from(self.current.get()), "unpark", 0, id);
        let state = {
            let mut threads = self.threads.borrow_mut();
            let thread = &mut threads[id as usize - 1];
            thread.has_token = true;
            thread.state
        };
        if state == State::Waiting(Wait::Park) {
            self.wake(id as u32);
        }
        self.preempt(4);
    }

    fn notify(&self, on: Wait, all: bool) {
        let any = self.wake_all_of(on, all);
        self.preempt(if any { 4 } else { 16 });
    }

    fn spawn(&self, name: Option<Arc<str>>, f: Box<dyn FnOnce()>) -> io::Result<u64> {
        let id = self.spawn_on(self.host_of_current(), name, f)?;
        self.preempt(2);
        Ok(id)
    }

    fn panic_begins(&self, fiber: &Fiber, message: &str, place: Option<String>) -> bool {
        // A panic of the simulator itself may come while it has borrowed its threads.
        if let Ok(mut threads) = self.threads.try_borrow_mut() {
            let number = self.panics.get();
            self.panics.set(number + 1);
            self.panics_go_on.set(true);
            let message = message.to_owned();
            threads[fiber.id() as usize - 1].panics.push(Panic {
                message,
                place,
                number,
            });
            drop(threads);
            self.record(fiber.id(), "panic", 0, 0);
        }
        !self.settings.is_quiet
    }

    fn panic_ends_thread(&self, fiber: &Fiber, message: &str) {
        let begun = mem::take(&mut self.threads.borrow_mut()[fiber.id() as usize - 1].panics);
        // A panic in a drop may have been caught since. A panic that was resumed did not call the
        // panic hook.
        let begun = begun.into_iter().find(|begun| begun.message == message);
        self.fail(Failure::Panic {
            thread: fiber.name().map_or("unnamed", |name| name).to_owned(),
            message: message.to_owned(),
            place: begun.and_then(|begun| begun.place),
        });
    }

    #[inline]
    fn event(&self, fiber: &Fiber, kind: &'static str, address: usize, number: u64) {
        let thread = fiber.id();
        let task = {
            let mut tasks = self.tasks.borrow_mut();
            match kind {
                "spawn" | "wake" => tasks.wake(address),
                "poll" => tasks.begin_poll(thread, address),
                "end of poll" | "end of poll and task" => {
                    tasks.end_poll(thread, number == 1);
                    0
                }
                _ if address > 0 => tasks.number(address),
                _ => 0,
            }
        };
        self.record(thread, kind, task, number);
        match kind {
            "poll" => {
                if self.tasks.borrow().is_look_due() {
                    self.check_fairness();
                }
                self.take_time(fiber);
            }
            "step" => self.take_time(fiber),
            // The task is in no queue yet: another thread may close the runtime meanwhile.
            "spawn" | "wake" => self.preempt(16),
            _ => {}
        }
    }

    fn allocated(&self, task: usize) {
        let host = self.host_of_current();
        self.tasks.borrow_mut().allocate(task, host);
    }

    fn freed(&self, task: usize) {
        self.tasks.borrow_mut().free(task);
    }

    fn name_of(&self, task: usize) -> u64 {
        self.tasks.borrow_mut().number(task)
    }

    fn notes_holders(&self, set: bool) -> bool {
        let notes = self.notes_holders.get() || set;
        self.notes_holders.set(notes);
        notes
    }

    fn watch(&self, subject: Weak<dyn Subject>) {
        let host = self.host_of_current();
        self.subjects.borrow_mut().push((host, subject));
    }
}
