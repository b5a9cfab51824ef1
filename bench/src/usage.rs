//! The kernel's counts of what a process or a thread has used.
use std::{mem::MaybeUninit, ops::Sub, time::Duration};

/// Processor time and context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// User and system.
    pub(crate) cpu: Duration,
    /// How often a thread has waited.
    pub(crate) voluntary: u64,
    /// How often the kernel has taken the processor from a thread.
    pub(crate) involuntary: u64,
}

impl Usage {
    /// Returns what this process has used.
    pub(crate) fn of_process() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    /// Returns what all threads of this process but the calling one have used.
    pub(crate) fn of_other_threads() -> Self {
        Self::of_process() - Self::of(libc::RUSAGE_THREAD)
    }

    fn of(this: libc::c_int) -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is valid for a write of a `rusage`.
        let failed = unsafe { libc::getrusage(this, usage.as_mut_ptr()) };
        assert_eq!(failed, 0, "getrusage takes the process and the thread");
        // SAFETY: the value was zeroed, and the call filled it. Any bytes are a valid `rusage`.
        let usage = unsafe { usage.assume_init() };
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1_000);
        Self {
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}
