//! A poll whose thread has no processor.
#![cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]
use sched_monitor::{Doorbell, Monitor, Sample, Stall, Stalls, State, Subject, Workers, thread_id};
use std::{
    hint,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

/// One worker, in one poll.
struct Polling;

impl Workers for Polling {
    fn count(&self) -> usize {
        1
    }

    fn sample(&self, _: usize) -> Sample {
        Sample {
            state: State::Polling,
            polls: 1,
            runs: 1,
            calls: 0,
        }
    }
}

/// Returns the reports of a poll that computes for `time` under this policy, on a processor that
/// two other threads use, too.
fn reports_beside_others(policy: libc::c_int, time: Duration) -> Vec<Stall> {
    let stop = &AtomicBool::new(false);
    // Ordering: the flag alone is of interest.
    let spin = || {
        while !stop.load(Relaxed) {
            hint::spin_loop();
        }
    };
    let (sender, ids) = mpsc::channel();
    let (reports, reported) = mpsc::channel();
    let (processor, bell) = (one_processor(), &Doorbell::new());
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(processor, policy);
            sender.send(thread_id()).unwrap();
            spin();
        });
        let thread = ids.recv().unwrap();
        for _ in 0..2 {
            scope.spawn(move || {
                pin(processor, libc::SCHED_OTHER);
                spin();
            });
        }
        let subject = move |_| {
            Some(Subject {
                thread,
                ..Subject::default()
            })
        };
        let report = move |stall: &Stall| reports.send(stall.clone()).unwrap();
        let monitor = Monitor::new(Polling).duty(Stalls::new(subject, report));
        scope.spawn(move || monitor.run(bell));
        thread::sleep(time);
        bell.stop();
        // Ordering: as above.
        stop.store(true, Relaxed);
    });
    reported.try_iter().collect()
}

/// The system gives the processor to the others. Fails if the wait for it counts as a stall.
#[test]
fn poll_that_waits_for_a_processor_is_not_reported() {
    let reports = reports_beside_others(libc::SCHED_IDLE, Duration::from_millis(400));
    assert_eq!(reports, []);
}

/// The system gives a share of the processor to the poll. Fails if its waits hide that it computes.
#[test]
fn poll_with_a_share_of_a_processor_is_reported() {
    let reports = reports_beside_others(libc::SCHED_OTHER, Duration::from_secs(2));
    assert!(!reports.is_empty());
}

/// Returns a processor on which this thread may run.
fn one_processor() -> usize {
    // SAFETY: zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the system writes a set of that size.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    assert_eq!(got, 0);
    // SAFETY: the numbers are within a set.
    let may = |at: &usize| unsafe { libc::CPU_ISSET(*at, &set) };
    (0..libc::CPU_SETSIZE as usize).find(may).unwrap()
}

/// Keeps this thread on a processor, with this policy.
fn pin(processor: usize, policy: libc::c_int) {
    // SAFETY: zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is within a set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the set has that size.
    let done = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    assert_eq!(done, 0);
    // SAFETY: zeros are the parameters of a policy that has no priorities.
    let normal: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call.
    let done = unsafe { libc::sched_setscheduler(0, policy, &normal) };
    assert_eq!(done, 0);
}
