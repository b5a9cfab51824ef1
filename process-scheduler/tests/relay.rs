//! Two schedulers of one program, connected by a relay.
use process_scheduler::{
    CallError, Event, EventsOf, Exit, ExitReason, Inbox, Loopback, Mailbox, NoCommand, OutputOf,
    Parcel, Pid, Process, Relay, Reply, Scheduler, SendError, Signal, Spawn, Step, StepOf,
    from_async,
};
use std::{sync::mpsc, thread, time::Duration};

const LONG: Duration = Duration::from_secs(600);

/// Reports the ends of other processes.
struct Watches(mpsc::Sender<(Pid, ExitReason)>);

impl Process for Watches {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match event {
                Event::Exit { pid, reason } => self.0.send((pid, reason)).unwrap(),
                Event::Cancel(_) => return Step::Done,
                _ => {}
            }
        }
        Step::Idle
    }
}

fn connected(loopback: &Loopback) -> [Scheduler; 2] {
    [1, 2].map(|node| {
        let builder = Scheduler::builder().workers(1).node(node);
        let scheduler = builder.relay(loopback.clone()).build();
        loopback.connect(&scheduler);
        scheduler
    })
}

fn still(scheduler: &Scheduler) -> Pid {
    scheduler.spawn_fn(|(): (), _| ()).unwrap().pid()
}

/// Waits for an end, but at most `LONG`.
fn wait(end: Exit) -> ExitReason {
    let (sender, reason) = mpsc::channel();
    thread::spawn(move || sender.send(end.wait()));
    reason.recv_timeout(LONG).unwrap()
}

/// Returns a third node, whose relay reaches the two others.
fn third_node(loopback: &Loopback) -> Scheduler {
    let builder = Scheduler::builder().workers(1).node(3);
    builder.relay(loopback.clone()).build()
}

/// Lets two nodes lose their connection.
fn lose_connection([here, there]: [&Scheduler; 2]) {
    here.node_down(2);
    there.node_down(1);
}

/// Cancels a process that reports to a channel, and returns its reports. It ends after it has
/// reported all exits, and drops the channel.
fn reports(
    scheduler: &Scheduler,
    watches: Pid,
    ends: &mpsc::Receiver<(Pid, ExitReason)>,
) -> Vec<(Pid, ExitReason)> {
    let end = scheduler.exit_of(watches);
    scheduler.cancel(watches);
    wait(end);
    ends.iter().collect()
}

/// Nodes keep each other in memory until they are disconnected.
fn part(loopback: &Loopback) {
    [1, 2].iter().for_each(|&node| loopback.disconnect(node));
}

#[test]
fn remote_process_gets_messages_calls_and_signals() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let spawn = || {
        let process = there.spawn_fn(|(n, reply): (u32, Reply<u32>), _| {
            let _ = reply.send(2 * n);
        });
        process.unwrap().pid()
    };
    let far = spawn();
    let address = here.address::<(u32, Reply<u32>)>(far).unwrap();
    assert_eq!(address.call(|reply| (21, reply), LONG).wait(), Ok(42));
    assert!(here.try_send(far, "another type").is_err());
    let end = there.exit_of(far);
    assert!(here.cancel(far));
    assert_eq!(wait(end), ExitReason::Cancelled);
    let far = spawn();
    let end = there.exit_of(far);
    assert!(here.kill(far));
    assert_eq!(wait(end), ExitReason::Killed);
    assert!(!here.kill(far));
    let call = address.call(|reply| (21, reply), LONG).wait();
    assert_eq!(call, Err(CallError::Refused(SendError::NotFound(()))));
    part(&loopback);
}

/// Fails if the reason for which another node refuses a message is lost on the way, or the message.
#[test]
fn refusal_of_another_node_has_its_reason_and_the_message() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(1));
    let deaf = from_async(|_: Inbox<u32>| std::future::pending::<()>());
    let deaf = there.spawn_process(deaf, spawn).unwrap().pid();
    let address = here.address::<u32>(deaf).unwrap();
    assert_eq!(address.try_send(1), Ok(()));
    assert_eq!(address.try_send(2), Err(SendError::Full(2)));
    assert_eq!(here.try_send(deaf, 3_u32), Err(SendError::Full(3)));
    assert_eq!(here.try_send(deaf, "4"), Err(SendError::NotFound("4")));
    let call = here
        .address::<Reply<()>>(deaf)
        .unwrap()
        .call(|reply| reply, LONG);
    assert_eq!(
        call.wait(),
        Err(CallError::Refused(SendError::NotFound(())))
    );
    loopback.disconnect(2);
    assert_eq!(address.try_send(5), Err(SendError::NodeDown(5)));
    there.kill(deaf);
    part(&loopback);
}

/// Fails if the end of a remote process, or of its node, does not reach a process here that
/// monitors it or is linked to it, or reaches it twice.
#[test]
fn remote_end_and_a_lost_node_are_reported() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let (sender, ends) = mpsc::channel();
    let trap = Spawn::new().trap_exits(true);
    let near = here.spawn_process(Watches(sender), trap).unwrap().pid();
    let plain = here.spawn_fn(|(): (), _| ()).unwrap().pid();
    let plain_end = here.exit_of(plain);
    let [killed, monitored, linked] =
        [(); 3].map(|()| there.spawn_fn(|(): (), _| ()).unwrap().pid());
    here.monitor(near, killed);
    here.monitor(near, monitored);
    here.link(near, linked);
    here.link(plain, linked);
    there.kill(killed);
    let next = || ends.recv_timeout(LONG).unwrap();
    assert_eq!(next(), (killed, ExitReason::Killed));
    loopback.disconnect(2);
    let mut lost = [next(), next()];
    lost.sort_by_key(|(pid, _)| *pid);
    let mut expected = [monitored, linked].map(|pid| (pid, ExitReason::NodeDown));
    expected.sort_by_key(|(pid, _)| *pid);
    assert_eq!(lost, expected);
    assert_eq!(wait(plain_end), ExitReason::NodeDown);
    here.monitor(near, monitored);
    assert_eq!(next(), (monitored, ExitReason::NodeDown));
    assert!(ends.try_recv().is_err());
    part(&loopback);
}

/// A process both monitors a remote process and is linked to it. One of the two relations ends, and
/// then the connection is lost.
///
/// Fails if the end of one relation also removes the other.
#[test]
fn end_of_one_remote_relation_keeps_the_other() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let [linked, far] = [&here, &there].map(still);
    let linked_end = here.exit_of(linked);
    let (sender, ends) = mpsc::channel();
    let monitors = here.spawn(Watches(sender)).unwrap().pid();
    here.link(linked, far);
    here.monitor(linked, far);
    here.demonitor(linked, far);
    here.monitor(monitors, far);
    here.link(monitors, far);
    here.unlink(monitors, far);
    loopback.disconnect(2);
    assert_eq!(wait(linked_end), ExitReason::NodeDown);
    assert_eq!(ends.recv_timeout(LONG), Ok((far, ExitReason::NodeDown)));
    part(&loopback);
}

/// Fails if a lost node is reported once for each call of `link`.
#[test]
fn remote_link_that_is_made_again_is_reported_once() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let (sender, ends) = mpsc::channel();
    let trap = Spawn::new().trap_exits(true);
    let near = here.spawn_process(Watches(sender), trap).unwrap().pid();
    let far = still(&there);
    for _ in 0..3 {
        here.link(near, far);
        here.link(far, near);
    }
    loopback.disconnect(2);
    assert_eq!(reports(&here, near, &ends), [(far, ExitReason::NodeDown)]);
    part(&loopback);
}

/// Links two processes. The two schedulers are their nodes.
type MakeLink = fn([&Scheduler; 2], [Pid; 2]);

/// Two nodes lose their connection.
///
/// Fails if only the node that has made a link notes it: then the process of the other node waits
/// for an exit that never comes.
#[test]
fn lost_node_is_reported_on_both_sides_of_a_link() {
    let makes: [MakeLink; 4] = [
        |[here, _], [near, far]| here.link(near, far),
        |[here, _], [near, far]| here.link(far, near),
        |[_, there], [near, far]| there.link(near, far),
        |[_, there], [near, far]| there.link(far, near),
    ];
    for link in makes {
        let loopback = Loopback::new();
        let [here, there] = connected(&loopback);
        let pids = [&here, &there].map(still);
        let ends = [here.exit_of(pids[0]), there.exit_of(pids[1])];
        link([&here, &there], pids);
        lose_connection([&here, &there]);
        let reasons = ends.map(wait);
        assert_eq!(reasons, [ExitReason::NodeDown, ExitReason::NodeDown]);
        part(&loopback);
    }
}

/// A third node links the processes of two others, whose connection is then lost.
#[test]
fn link_made_on_a_third_node_is_reported_on_both_sides() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let third = third_node(&loopback);
    let pids = [&here, &there].map(still);
    let ends = [here.exit_of(pids[0]), there.exit_of(pids[1])];
    third.link(pids[0], pids[1]);
    lose_connection([&here, &there]);
    let reasons = ends.map(wait);
    assert_eq!(reasons, [ExitReason::NodeDown, ExitReason::NodeDown]);
    part(&loopback);
}

/// Fails if a link that one node has ended stays in the table of the other.
#[test]
fn link_that_has_ended_is_reported_on_no_side() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let [near, far] = [&here, &there].map(still);
    let ends = [here.exit_of(near), there.exit_of(far)];
    here.link(near, far);
    there.unlink(near, far);
    lose_connection([&here, &there]);
    assert!(here.cancel(near) && there.cancel(far));
    let reasons = ends.map(wait);
    assert_eq!(reasons, [ExitReason::Cancelled, ExitReason::Cancelled]);
    part(&loopback);
}

/// Two nodes lose their connection, and find each other again. Meanwhile a monitored process lives
/// on.
///
/// Fails if the monitored process keeps its watcher of the lost node: then the watcher gets a
/// second exit.
#[test]
fn monitor_of_a_lost_node_is_reported_once() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let (sender, ends) = mpsc::channel();
    let near = here.spawn(Watches(sender)).unwrap().pid();
    let far = still(&there);
    here.monitor(near, far);
    lose_connection([&here, &there]);
    let far_end = there.exit_of(far);
    there.kill(far);
    wait(far_end);
    assert_eq!(reports(&here, near, &ends), [(far, ExitReason::NodeDown)]);
    part(&loopback);
}

/// A node makes a monitor, and ends another one, for processes of other nodes.
///
/// Fails if only the target's node has the monitor: then the process that monitors waits for an
/// exit that never comes if the node of the target is lost.
#[test]
fn monitor_made_on_any_node_is_reported() {
    let loopback = Loopback::new();
    let [here, there] = connected(&loopback);
    let third = third_node(&loopback);
    for caller in [&here, &there, &third] {
        let (sender, ends) = mpsc::channel();
        let near = here.spawn(Watches(sender)).unwrap().pid();
        let [killed, lost, ignored] = [(); 3].map(|()| still(&there));
        for far in [killed, lost, ignored] {
            caller.monitor(near, far);
        }
        caller.demonitor(near, ignored);
        let end = there.exit_of(killed);
        there.kill(killed);
        wait(end);
        lose_connection([&here, &there]);
        caller.monitor(near, killed);
        let expected = [
            (killed, ExitReason::Killed),
            (lost, ExitReason::NodeDown),
            (killed, ExitReason::NodeDown),
        ];
        assert_eq!(reports(&here, near, &ends), expected);
    }
    part(&loopback);
}

/// A process monitors a remote one twice. It gets one of the two exits, and then the node is lost.
///
/// Fails if the first exit also removes the note of the second monitor.
#[test]
fn second_monitor_of_an_ended_target_is_reported_too() {
    struct Accepts;
    impl Relay for Accepts {
        fn deliver(&self, _: Pid, _: Parcel) -> Result<(), SendError<Parcel>> {
            Ok(())
        }
    }
    let [here, there] = [1, 2].map(|node| {
        let builder = Scheduler::builder().workers(1).node(node);
        builder.relay(Accepts).build()
    });
    let (sender, ends) = mpsc::channel();
    let near = here.spawn(Watches(sender)).unwrap().pid();
    let far = still(&there);
    here.monitor(near, far);
    here.monitor(near, far);
    let exit = Signal::Exit {
        pid: far,
        reason: ExitReason::Killed,
        linked: false,
    };
    here.deliver(near, Parcel::Signal(exit)).unwrap();
    here.node_down(2);
    let reports = reports(&here, near, &ends).into_iter();
    let reasons: Vec<_> = reports.map(|(_, reason)| reason).collect();
    assert_eq!(reasons, [ExitReason::Killed, ExitReason::NodeDown]);
}
