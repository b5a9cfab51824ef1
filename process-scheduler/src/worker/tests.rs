//! The last guard of a worker. No real process panics out of its run, so the test uses a cell whose
//! run panics.
use super::*;
use crate::{Info, Pid, Scheduler, Signal, cell::Watcher, error::ExitReason, lane::Refused};
use std::{any::Any, panic, sync::mpsc};

struct Panics;

impl AnyCell for Panics {
    fn run(self: Arc<Self>, _: &mut Slice<'_>) -> Option<Runnable> {
        panic!("in the run");
    }
    fn revive(self: Arc<Self>) {}
    fn pid(&self) -> Pid {
        unreachable!()
    }
    fn send_any(&self, _: &mut dyn Any) -> Option<Result<(), Refused<()>>> {
        unreachable!()
    }
    fn send_boxed(&self, _: Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>> {
        unreachable!()
    }
    fn receiver(self: Arc<Self>) -> Box<dyn Any> {
        unreachable!()
    }
    fn signal(&self, _: Signal) -> Result<(), Signal> {
        unreachable!()
    }
    fn kill(&self, _: ExitReason, _: bool) {}
    fn ends_for_good(&self) -> bool {
        false
    }
    fn watch(&self, _: Watcher) -> Result<(), Watcher> {
        unreachable!()
    }
    fn monitors(&self, _: Pid) -> bool {
        unreachable!()
    }
    fn unmonitor(&self, _: Pid) {}
    fn name(&self, _: String, _: bool) -> bool {
        unreachable!()
    }
    fn unname(&self, _: &str) {}
    fn leave(&self, _: &str) {}
    fn groups(&self) -> Vec<String> {
        Vec::new()
    }
    fn supervisor(&self) -> Option<Pid> {
        None
    }
    fn info(&self) -> Info {
        unreachable!()
    }
}

#[test]
fn run_that_panics_keeps_the_worker() {
    panic::set_hook(Box::new(|_| {}));
    let scheduler = Scheduler::builder().workers(1).build();
    scheduler.submit(Runnable(Arc::new(Panics)));
    let (sender, steps) = mpsc::channel();
    let probe = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap());
    probe.unwrap().try_send(7).unwrap();
    let limit = std::time::Duration::from_secs(60);
    assert_eq!(steps.recv_timeout(limit), Ok(7));
}
