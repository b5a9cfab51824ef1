//! Thread attributes that every thread of a runtime takes from the caller of `build`.
//!
//! A new thread inherits the attributes of the thread that starts it. `build` starts the thread of
//! the first worker. A thread that pushes a task may start the thread of another worker, and a
//! thread that submits a blocking closure may start one for the closure. The starting thread may be
//! pinned to a CPU, block signals, or have a priority of its own. So each thread of the runtime
//! first takes the attributes that the caller of `build` had. A thread that has these attributes
//! already makes a few system calls that change nothing.
//!
//! | attribute | the system refuses |
//! |---|---|
//! | signal mask | nothing |
//! | CPU affinity | nothing |
//! | policy and priority | a real-time policy without the privilege |
//! | niceness | a lower value without the privilege |
//!
//! Where the system refuses, the thread keeps the attribute of the thread that started it. The new
//! thread also keeps everything else that it inherits from the starting thread. This includes
//! namespaces, the memory policy, the credentials and capabilities of a single thread, and seccomp
//! filters. No thread can remove its seccomp filters.
//!
//! The runtime's own threads cannot be relied on to start the other threads: all of them may be in
//! long polls, and a push must not wait for a poll. A thread that only starts other threads would
//! be one more thread in each runtime. A program whose workers must inherit nothing from a thread
//! that pushes lets `build` start all threads of workers ([`prestart`](crate::Builder::prestart)).
//!
//! On other systems than Linux this module does nothing.
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

    /// Attributes of a thread. An attribute that the system did not return is `None`.
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
        /// Attributes that a new thread inherits from this one.
        pub(crate) fn of_this_thread() -> Self {
            Self {
                signals: signals(),
                processors: processors(),
                scheduling: Scheduling::of_this_thread().map(Scheduling::inherited),
            }
        }

        /// Applies the attributes to this thread, except those that the system refuses.
        pub(crate) fn apply(&self) {
            if let Some(signals) = &self.signals {
                // SAFETY: `signals` is valid to read, and null says not to write the old mask.
                unsafe { libc::pthread_sigmask(SIG_SETMASK, signals, ptr::null_mut()) };
            }
            if let Some(set) = &self.processors {
                if !processors().is_some_and(|now| are_equal(&now, set)) {
                    // SAFETY: 0 is this thread, and the size is that of the set.
                    unsafe { libc::sched_setaffinity(0, size_of_val(set), set) };
                }
            }
            if let Some(scheduling) = self.scheduling {
                scheduling.apply();
            }
        }
    }

    fn signals() -> Option<sigset_t> {
        // SAFETY: a `sigset_t` is an array of integers, for which zeros are valid.
        let mut set = unsafe { mem::zeroed() };
        // SAFETY: `set` is valid to write, and null says not to change the mask.
        let error = unsafe { libc::pthread_sigmask(SIG_SETMASK, ptr::null(), &raw mut set) };
        (error == 0).then_some(set)
    }

    fn processors() -> Option<cpu_set_t> {
        // SAFETY: a `cpu_set_t` is an array of integers, for which zeros are valid.
        let mut set = unsafe { mem::zeroed() };
        // SAFETY: 0 is this thread, `set` is valid to write, and the size is that of the set.
        let error = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
        (error == 0).then_some(set)
    }

    fn are_equal(one: &cpu_set_t, other: &cpu_set_t) -> bool {
        // SAFETY: both are references to sets.
        unsafe { libc::CPU_EQUAL(one, other) }
    }

    /// Returns parameters with this priority. Fields that exist only on some targets are zero.
    fn parameters(priority: i32) -> sched_param {
        // SAFETY: a `sched_param` consists of integers, for which zeros are valid.
        let mut param: sched_param = unsafe { mem::zeroed() };
        param.sched_priority = priority;
        param
    }

    impl Scheduling {
        fn of_this_thread() -> Option<Self> {
            let mut param = parameters(0);
            // musl has functions of these names, which do nothing but fail.
            // SAFETY: 0 is this thread. There is no other premise.
            let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) } as c_int;
            // SAFETY: 0 is this thread, and `param` is valid to write.
            let error = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut param) };
            // SAFETY: 0 is this thread. There is no other premise.
            let nice = unsafe { libc::getpriority(PRIO_PROCESS, 0) };
            (policy >= 0 && error == 0).then_some(Self {
                policy,
                priority: param.sched_priority,
                nice,
            })
        }

        /// Attributes that a new thread inherits, by sched(7) on `SCHED_RESET_ON_FORK`.
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
            let call = libc::SYS_sched_setscheduler;
            // SAFETY: 0 is this thread, and `param` is valid to read.
            unsafe { libc::syscall(call, 0, self.policy, &raw const param) };
            // SAFETY: 0 is this thread. There is no other premise.
            unsafe { libc::setpriority(PRIO_PROCESS, 0, self.nice) };
        }
    }
}
