//! What a thread of the runtime has from the thread that built the runtime.
//!
//! The system gives a new thread the attributes of the thread that starts it. `build` starts the
//! thread of the first worker. Whoever pushes starts a late one, and whoever submits a blocking
//! closure the one for that: a thread that may be pinned to a processor, block signals, or have a
//! priority of its own. So each thread of the runtime first takes the attributes that the caller of
//! `build` had. Where it has them already, that is a few system calls which change nothing.
//!
//! | attribute | where the system refuses it |
//! |---|---|
//! | signal mask | |
//! | processors (affinity) | |
//! | policy and priority | a real-time one, without the privilege |
//! | niceness | a lower one, without the privilege |
//!
//! What the system refuses, and what else a thread inherits, stays as the starting thread has it:
//! seccomp filters, which no thread can take off, namespaces, credentials and capabilities of a
//! single thread, memory policy.
//!
//! No thread of the runtime's own can start the others: all that there are may be in long polls,
//! and a push waits for no poll. A thread that only starts others would be one more in each
//! runtime. A program that wants none of this has `build` start all
//! ([`prestart`](crate::Builder::prestart)).
//!
//! Elsewhere than on Linux this does nothing.
#[cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]
pub(crate) use linux::Attributes;

#[cfg(not(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle)))))]
#[derive(Clone, Copy)]
pub(crate) struct Attributes;

#[cfg(not(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle)))))]
impl Attributes {
    pub(crate) fn of_this_thread() -> Self {
        Self
    }

    pub(crate) fn apply(&self) {}
}

#[cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]
mod linux {
    use libc::{
        PRIO_PROCESS, SCHED_FIFO, SCHED_OTHER, SCHED_RESET_ON_FORK, SCHED_RR, SIG_SETMASK, c_int,
        cpu_set_t, sched_param, sigset_t,
    };
    use std::{mem, ptr};

    /// None where the system doesn't say.
    #[derive(Clone, Copy)]
    pub(crate) struct Attributes {
        signals: Option<sigset_t>,
        processors: Option<cpu_set_t>,
        scheduling: Option<Scheduling>,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Scheduling {
        policy: c_int,
        priority: c_int,
        nice: c_int,
    }

    impl Attributes {
        /// Those that a thread has which this one starts.
        pub(crate) fn of_this_thread() -> Self {
            Self {
                signals: signals(),
                processors: processors(),
                scheduling: Scheduling::of_this_thread().map(Scheduling::inherited),
            }
        }

        /// Gives them to this thread. What the system refuses stays as it is.
        pub(crate) fn apply(&self) {
            if let Some(signals) = &self.signals {
                // SAFETY: of this thread, from a set that is there; the old one is not asked for.
                unsafe { libc::pthread_sigmask(SIG_SETMASK, signals, ptr::null_mut()) };
            }
            if let Some(set) = &self.processors
                && !processors().is_some_and(|now| are_equal(&now, set))
            {
                // SAFETY: of this thread, and the set is as large as said.
                unsafe { libc::sched_setaffinity(0, size_of_val(set), set) };
            }
            if let Some(scheduling) = self.scheduling {
                scheduling.apply();
            }
        }
    }

    fn signals() -> Option<sigset_t> {
        // SAFETY: a set of signals is an array of integers.
        let mut set = unsafe { mem::zeroed() };
        // SAFETY: of this thread, written to a place that is there; no new one is given.
        let error = unsafe { libc::pthread_sigmask(SIG_SETMASK, ptr::null(), &raw mut set) };
        (error == 0).then_some(set)
    }

    fn processors() -> Option<cpu_set_t> {
        // SAFETY: a set of processors is an array of integers.
        let mut set = unsafe { mem::zeroed() };
        // SAFETY: of this thread, and the set is as large as said.
        let error = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
        (error == 0).then_some(set)
    }

    fn are_equal(one: &cpu_set_t, other: &cpu_set_t) -> bool {
        // SAFETY: two sets that are there.
        unsafe { libc::CPU_EQUAL(one, other) }
    }

    /// With fields beyond the priority on some targets, which are zero.
    fn parameters(priority: i32) -> sched_param {
        // SAFETY: a `sched_param` is of integers.
        let mut param: sched_param = unsafe { mem::zeroed() };
        param.sched_priority = priority;
        param
    }

    impl Scheduling {
        fn of_this_thread() -> Option<Self> {
            let mut param = parameters(0);
            // SAFETY: of this thread, and without another premise.
            let policy = unsafe { libc::sched_getscheduler(0) };
            // SAFETY: of this thread, written to a place that is there.
            let error = unsafe { libc::sched_getparam(0, &raw mut param) };
            // SAFETY: of this thread, and without another premise.
            let nice = unsafe { libc::getpriority(PRIO_PROCESS, 0) };
            (policy >= 0 && error == 0).then_some(Self {
                policy,
                priority: param.sched_priority,
                nice,
            })
        }

        /// As sched(7) says of `SCHED_RESET_ON_FORK`.
        fn inherited(self) -> Self {
            if self.policy & SCHED_RESET_ON_FORK == 0 {
                return self;
            }
            match self.policy & !SCHED_RESET_ON_FORK {
                SCHED_FIFO | SCHED_RR => Self {
                    policy: SCHED_OTHER,
                    priority: 0,
                    nice: 0,
                },
                policy => Self {
                    policy,
                    priority: 0,
                    nice: self.nice.max(0),
                },
            }
        }

        fn apply(self) {
            let now = Self::of_this_thread();
            if now == Some(self) {
                return;
            }
            let param = parameters(self.priority);
            // SAFETY: of this thread, read from a place that is there.
            unsafe { libc::sched_setscheduler(0, self.policy, &raw const param) };
            // SAFETY: of this thread, and without another premise.
            unsafe { libc::setpriority(PRIO_PROCESS, 0, self.nice) };
        }
    }
}
