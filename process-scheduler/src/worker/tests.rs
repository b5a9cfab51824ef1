//! The last guard of a worker. No real process panics out of its run, so the test runs something
//! that does.
use super::*;
use crate::{Scheduler, runnable::Run};
use std::{panic, sync::mpsc};

struct Panics;

impl Run for Panics {
    fn run(self: Arc<Self>, _: &mut RunSlice<'_>) -> Option<Runnable> {
        panic!("in the run");
    }
}

#[test]
fn run_that_panics_keeps_the_worker() {
    panic::set_hook(Box::new(|_| {}));
    let scheduler = Scheduler::builder().workers(1).build();
    submit(&scheduler.shared, Runnable(Arc::new(Panics)));
    let (sender, steps) = mpsc::channel();
    let probe = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap());
    probe.unwrap().try_send(7).unwrap();
    let limit = std::time::Duration::from_secs(60);
    assert_eq!(steps.recv_timeout(limit), Ok(7));
}
