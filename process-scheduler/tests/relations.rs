//! Links, monitors, names and groups of processes that have ended.
use process_scheduler::{Loopback, Pid, Scheduler, Spawn};

/// Spawns a process that outlives the processes linked to it.
fn still(scheduler: &Scheduler) -> Pid {
    let spawn = Spawn::new().trap_exits(true);
    let spawned = scheduler.spawn_with(spawn, |_: u8, _| ());
    spawned.unwrap().pid()
}

/// Returns the pid of a process that has ended.
fn ended(scheduler: &Scheduler) -> Pid {
    let pid = still(scheduler);
    let end = scheduler.exit_of(pid);
    scheduler.kill(pid);
    end.wait();
    pid
}

/// Makes two schedulers that reach each other.
fn connected(loopback: &Loopback) -> [Scheduler; 2] {
    [1, 2].map(|node| {
        let builder = Scheduler::builder().workers(1).node(node);
        let scheduler = builder.relay(loopback.clone()).build();
        loopback.connect(&scheduler);
        scheduler
    })
}

fn links(scheduler: &Scheduler, pid: Pid) -> Vec<Pid> {
    scheduler.inspect(pid).unwrap().links
}

/// Fails if the live process gets its half of a link whose other half was refused.
#[test]
fn link_to_an_ended_process_leaves_no_link() {
    let scheduler = Scheduler::new();
    let live = still(&scheduler);
    for _ in 0..10 {
        scheduler.link(live, ended(&scheduler));
        scheduler.link(ended(&scheduler), live);
    }
    assert_eq!(links(&scheduler, live), []);
}

/// Fails if the live process gets its half of a link to an ended process of another node.
#[test]
fn link_to_an_ended_remote_process_leaves_no_link() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let live = still(&here);
    here.link(live, ended(&there));
    here.link(ended(&there), live);
    assert_eq!(links(&here, live), []);
    // The loopback and the schedulers keep each other in memory.
    [1, 2].iter().for_each(|&node| loopback.disconnect(node));
}
