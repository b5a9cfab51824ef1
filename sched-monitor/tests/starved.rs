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

/// The system gives the processor to two other threads. Fails if the wait for it counts as a stall.
#[test]
fn poll_that_waits_for_a_processor_is_not_reported() {
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
            pin(processor, libc::SCHED_IDLE);
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
        thread::sleep(Duration::from_millis(400));
        bell.stop();
        // Ordering: as above.
        stop.store(true, Relaxed);
    });
    assert_eq!(reported.try_iter().collect::<Vec<_>>(), []);
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
    let normal = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure lives during the call.
    let done = unsafe { libc::sched_setscheduler(0, policy, &normal) };
    assert_eq!(done, 0);
}
