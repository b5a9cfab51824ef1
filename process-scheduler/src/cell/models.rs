//! Models of the end of an incarnation, and of relations to a process that ends.
use super::*;
use crate::{
    EventsOf, NoCommand, OutputOf, Parcel, Phase, Policy, Relay, SendError, Signal, Step, StepOf,
    any_cell::AnyCell,
    core::ProcessCore,
    remote::Relation,
    shared::models::{with_relay, without_threads},
    supervised::RestartSettings,
};
use sync_shim::{Model, model, thread};

/// A process that no model steps.
pub(crate) struct Still;

impl Process for Still {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        Step::Idle
    }
}

/// Puts a cell into the registry. The caller has its token.
pub(crate) fn spawn(handle: &Handle, supervisor: Option<Pid>) -> Arc<ProcessCell<Still>> {
    assert!(handle.shared.begin());
    let restart = supervisor.map(|supervisor| {
        Box::new(Restart {
            child: RestartSettings {
                supervisor,
                policy: Policy::Permanent,
                keep_mail: true,
                make: Arc::new(|| Still),
                made_at: Location::caller(),
            },
            method: String::new(),
            input: None,
            last_exit: ExitReason::Killed,
        })
    });
    let cell = ProcessCell::new(CellParts {
        body: Still,
        node: handle.node(),
        handle: handle.clone(),
        handler: None,
        mailbox: Mailbox::Unbounded,
        traps_exits: true,
        restart,
    });
    let inserted = handle.registry().insert(cell, ProcessCell::set_pid);
    inserted.map_err(|(_, error)| error).unwrap()
}

/// A supervised process stops while the scheduler shuts down, and its supervisor runs no more: the
/// shutdown sees the stopped process, or the end of the process sees the shutdown. So the process
/// does not stay stopped.
///
/// The model has a bound. It does not finish without one, since the registry has 16 locks.
///
/// Fails if `finish` does not look at `is_closed`, or if `Shared::close` does not look for stopped
/// processes.
#[test]
fn stop_racing_the_shutdown_does_not_stay_stopped() {
    Model::new().bound(3).check(|| {
        let handle = without_threads();
        let supervisor = spawn(&handle, None);
        let child = spawn(&handle, Some(supervisor.pid));
        child.core.state.begin();
        let worker = {
            let child = child.clone();
            // SAFETY: the token of the new process is this thread's, and the process runs.
            thread::spawn(move || unsafe { child.finish(ExitReason::Normal) })
        };
        assert!(handle.shared.close().is_some());
        worker.join().unwrap();
        assert_eq!(child.core.state.phase(), Phase::Ready);
        assert!(child.core.state.is_final());
        // The cells and the scheduler refer to each other.
        for cell in [supervisor, child] {
            handle.registry().remove(cell.pid);
        }
        drop(handle.shared.injector.pop());
    });
}

/// A process ends while it is linked to another: the other is notified once, and keeps no link.
///
/// Fails if `link` does not look for the first process after it has added the second half.
#[test]
fn link_racing_the_end_of_a_process_leaves_no_link() {
    model(|| {
        let handle = without_threads();
        let [ending, other] = [(); 2].map(|()| spawn(&handle, None));
        ending.core.state.begin();
        let worker = {
            let ending = ending.clone();
            // SAFETY: the token of the new process is this thread's, and the process runs.
            thread::spawn(move || unsafe { ending.finish(ExitReason::Normal) })
        };
        handle.link(ending.pid, other.pid);
        worker.join().unwrap();
        assert_eq!(other.info().links, []);
        assert_eq!(other.core.take_urgent().count(), 1);
        // The cell and the scheduler refer to each other.
        handle.registry().remove(other.pid);
    });
}

/// A process is linked to one on another node, while that node goes down. Either the process gets
/// an exit, or it keeps the link, and the table notes the link for the next time.
///
/// Fails if `add_remote` does not look at the table again.
#[test]
fn remote_link_racing_the_loss_of_its_node_is_reported() {
    model(|| {
        let handle = without_threads();
        let process = spawn(&handle, None);
        let (pid, with) = (process.pid, FAR);
        let relay = {
            let handle = handle.clone();
            thread::spawn(move || handle.node_down(7))
        };
        let link = Parcel::Signal(Signal::Link { with });
        // Perhaps refused, if the node goes down meanwhile.
        let is_refused = handle.deliver(pid, link).is_err();
        relay.join().unwrap();
        let is_linked = !process.info().links.is_empty();
        assert!(!is_linked || !is_refused);
        let exits = process.core.take_urgent().count();
        assert_eq!(exits, usize::from(!is_linked));
        let is_noted = handle.shared.remote.has(with, pid, Relation::Link);
        assert_eq!(is_noted, is_linked);
        // The cell and the scheduler refer to each other.
        handle.registry().remove(pid);
    });
}

/// A process ends while it is linked to one on another node: the table keeps no link of it. The
/// other node gets the signal back, or one exit.
///
/// Fails if `add_remote` notes the link after the process has it, or keeps the note of a link that
/// the process refuses. Also fails if it hands the signal back whenever it misses the note.
#[test]
fn remote_link_racing_the_end_of_its_process_is_forgotten() {
    model(|| {
        let (handle, far) = with_far(true);
        let ending = spawn(&handle, None);
        let (pid, with) = (ending.pid, FAR);
        let worker = thread::spawn(move || ending.abandon());
        let link = Parcel::Signal(Signal::Link { with });
        let is_refused = handle.deliver(pid, link).is_err();
        worker.join().unwrap();
        assert_eq!(far.0.lock().exits + usize::from(is_refused), 1);
        assert!(!handle.shared.remote.has(with, pid, Relation::Link));
    });
}

/// A process of another node begins to monitor one here, while that node goes down. The process
/// here keeps the watcher only if the table notes it.
///
/// Fails if `add_remote` does not look at the table again.
#[test]
fn remote_watcher_racing_the_loss_of_its_node_is_noted() {
    model(|| {
        let handle = without_threads();
        let process = spawn(&handle, None);
        let (pid, by) = (process.pid, FAR);
        let relay = {
            let handle = handle.clone();
            thread::spawn(move || handle.node_down(7))
        };
        let monitor = Parcel::Signal(Signal::Monitor { by });
        // Perhaps refused, if the node goes down meanwhile.
        drop(handle.deliver(pid, monitor));
        relay.join().unwrap();
        let watchers = process.with_relations(|lists| lists.watchers.len());
        let is_noted = handle.shared.remote.has(by, pid, Relation::Watcher);
        assert_eq!(watchers, Some(usize::from(is_noted)));
        // The cell and the scheduler refer to each other.
        handle.registry().remove(pid);
    });
}

/// A process begins to monitor a node while the node goes down. It gets one exit, and no note is
/// left.
///
/// Fails if `monitor_node` does not look whether the node is up after it has made the note, or if
/// `node_down` takes the notes before it removes the node.
#[test]
fn monitor_of_a_node_racing_its_loss_reports_it_once() {
    model(|| {
        let handle = without_threads();
        handle.node_up(7, "far");
        let process = spawn(&handle, None);
        let (pid, node) = (process.pid, Pid::of_node(7));
        let relay = {
            let handle = handle.clone();
            thread::spawn(move || handle.node_down(7))
        };
        handle.monitor_node(pid, 7);
        relay.join().unwrap();
        assert_eq!(process.core.take_urgent().count(), 1);
        assert!(!handle.shared.remote.has(node, pid, Relation::Monitor));
        let monitored = process.with_relations(|lists| lists.monitored.len());
        assert_eq!(monitored, Some(0));
        // The cell and the scheduler refer to each other.
        handle.registry().remove(pid);
    });
}

/// A process that monitors a node ends meanwhile: no note is left.
///
/// Fails if `monitor_node` does not look for the process again.
#[test]
fn monitor_of_a_node_racing_the_end_of_its_process_is_forgotten() {
    model(|| {
        let handle = without_threads();
        handle.node_up(7, "far");
        let ending = spawn(&handle, None);
        let pid = ending.pid;
        let worker = thread::spawn(move || ending.abandon());
        handle.monitor_node(pid, 7);
        worker.join().unwrap();
        let node = Pid::of_node(7);
        assert!(!handle.shared.remote.has(node, pid, Relation::Monitor));
    });
}

/// The relay to node 7, which has one process.
struct Far(Mutex<FarState>);

struct FarState {
    /// Whether the process on node 7 accepts relations.
    accepts: bool,
    /// Whether that process has its half of a relation.
    has_half: bool,
    /// The exits that the process has got.
    exits: usize,
}

fn with_far(accepts: bool) -> (Handle, Arc<Far>) {
    let far = Arc::new(Far(Mutex::new(FarState {
        accepts,
        has_half: false,
        exits: 0,
    })));
    (with_relay(Some(Arc::new(far.clone()))), far)
}

/// The pid of the process on node 7.
const FAR: Pid = Pid {
    slot: 0,
    ..Pid::none(7)
};

impl Relay for Arc<Far> {
    fn deliver(&self, _: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        let Parcel::Signal(signal) = &parcel else {
            return Ok(());
        };
        let mut state = self.0.lock();
        match signal {
            Signal::Link { .. } | Signal::Monitor { .. } => {
                if !state.accepts {
                    return Err(SendError::NotFound(parcel));
                }
                state.has_half = true;
            }
            Signal::Unlink { .. } | Signal::Demonitor { .. } => state.has_half = false,
            Signal::Exit { .. } => {
                state.has_half = false;
                state.exits += 1;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The places of a relation between a process here and that on node 7: the table, and the two
/// halves. Also the exits that the process here has got.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    is_noted: bool,
    has_half: bool,
    far_has_half: bool,
    exits: usize,
}

impl Places {
    fn related() -> Self {
        Self {
            is_noted: true,
            has_half: true,
            far_has_half: true,
            exits: 0,
        }
    }

    fn unrelated(exits: usize) -> Self {
        Self {
            is_noted: false,
            has_half: false,
            far_has_half: false,
            exits,
        }
    }
}

/// A process here, and the one on node 7.
struct Pair {
    handle: Handle,
    pid: Pid,
    far: Arc<Far>,
}

impl Pair {
    /// Loses the connection to node 7, also on node 7, and connects again.
    fn reconnect(&self) {
        let accepts = {
            let mut state = self.far.0.lock();
            state.has_half = false;
            std::mem::replace(&mut state.accepts, false)
        };
        self.handle.node_down(7);
        self.far.0.lock().accepts = accepts;
    }

    fn deliver(&self, signal: Signal) {
        let delivered = self.handle.deliver(self.pid, Parcel::Signal(signal));
        assert!(delivered.is_ok());
    }
}

/// Runs two actions at the same time. Returns what has become of the relation of the pair.
fn race(relation: Relation, accepts: bool, actions: [fn(&Pair); 2]) -> Places {
    let (handle, far) = with_far(accepts);
    let process = spawn(&handle, None);
    let pid = process.pid;
    let pair = Arc::new(Pair {
        handle: handle.clone(),
        pid,
        far: far.clone(),
    });
    let other = {
        let pair = pair.clone();
        thread::spawn(move || actions[1](&pair))
    };
    actions[0](&pair);
    other.join().unwrap();
    let halves = process.with_relations(|lists| match relation {
        Relation::Link => lists.links.len(),
        Relation::Monitor => lists.monitored.len(),
        Relation::Watcher => lists.watchers.len(),
    });
    let places = Places {
        is_noted: handle.shared.remote.has(FAR, pid, relation),
        has_half: halves != Some(0),
        far_has_half: far.0.lock().has_half,
        exits: process.core.take_urgent().count(),
    };
    // The cell and the scheduler refer to each other.
    handle.registry().remove(pid);
    places
}

/// A process is linked to one of another node, or begins to monitor it, while that node is lost and
/// found again. Either the relation is in all its places, or in none, and then the process gets one
/// exit.
///
/// Fails if `link` or `monitor` does not look at the table again after the other process has its
/// half, or sends an exit for a refusal although `node_down` has taken the note.
fn relation_racing_a_loss(relation: Relation, relate: fn(&Pair)) {
    model(move || {
        let places = race(relation, true, [relate, Pair::reconnect]);
        let expected = [Places::related(), Places::unrelated(1)];
        assert!(expected.contains(&places), "{places:?}");
    });
}

#[test]
fn link_racing_the_loss_of_a_node_leaves_no_half() {
    relation_racing_a_loss(Relation::Link, |pair| pair.handle.link(pair.pid, FAR));
}

#[test]
fn monitor_racing_the_loss_of_a_node_leaves_no_half() {
    relation_racing_a_loss(Relation::Monitor, |pair| pair.handle.monitor(pair.pid, FAR));
}

/// The process of the other node refuses the relation while its node is lost: the process here gets
/// one exit.
///
/// Fails if `link` or `monitor` sends an exit although `node_down` has taken the note.
fn refusal_racing_a_loss(relation: Relation, relate: fn(&Pair)) {
    model(move || {
        let places = race(relation, false, [relate, Pair::reconnect]);
        assert_eq!(places, Places::unrelated(1));
    });
}

#[test]
fn refused_link_racing_the_loss_of_a_node_is_reported_once() {
    refusal_racing_a_loss(Relation::Link, |pair| pair.handle.link(pair.pid, FAR));
}

#[test]
fn refused_monitor_racing_the_loss_of_a_node_is_reported_once() {
    refusal_racing_a_loss(Relation::Monitor, |pair| pair.handle.monitor(pair.pid, FAR));
}

/// Another node adds a link or a watcher while it removes the same: the table notes the half if
/// the process here has it.
///
/// Fails if `remove_remote` does not look at the table again after it has removed the half.
fn removal_racing_an_addition(relation: Relation, actions: [fn(&Pair); 2]) {
    model(move || {
        let places = race(relation, true, actions);
        assert_eq!((places.is_noted, places.exits), (places.has_half, 0));
    });
}

#[test]
fn unlink_racing_a_remote_link_leaves_no_note_alone() {
    let actions: [fn(&Pair); 2] = [
        |pair| pair.deliver(Signal::Link { with: FAR }),
        |pair| pair.deliver(Signal::Unlink { with: FAR }),
    ];
    removal_racing_an_addition(Relation::Link, actions);
}

#[test]
fn demonitor_racing_a_remote_watcher_leaves_no_note_alone() {
    let actions: [fn(&Pair); 2] = [
        |pair| pair.deliver(Signal::Monitor { by: FAR }),
        |pair| pair.deliver(Signal::Demonitor { by: FAR }),
    ];
    removal_racing_an_addition(Relation::Watcher, actions);
}

/// A process begins to monitor one of another node while a thread ends that monitor. The monitor is
/// in all its places, or in none.
///
/// The model has a bound. It does not finish in a minute without one.
///
/// Fails if `demonitor` does not look at the table again, or if `monitor` notes the target after
/// the process has its half.
#[test]
fn demonitor_racing_a_remote_monitor_agrees_everywhere() {
    Model::new().bound(5).check(|| {
        let actions: [fn(&Pair); 2] = [
            |pair| pair.handle.monitor(pair.pid, FAR),
            |pair| pair.handle.demonitor(pair.pid, FAR),
        ];
        let places = race(Relation::Monitor, true, actions);
        let expected = [Places::related(), Places::unrelated(0)];
        assert!(expected.contains(&places), "{places:?}");
    });
}

/// A process is killed while it restarts. If the kill hits the next incarnation, that incarnation
/// has the kill's reason. Otherwise no reason is left over for a later kill.
///
/// Fails if a kill or a restart changes the bit or the reason without the lock of the relations.
#[test]
fn kill_racing_a_restart_keeps_its_reason() {
    model(|| {
        let handle = without_threads();
        let supervisor = spawn(&handle, None);
        let child = spawn(&handle, Some(supervisor.pid));
        child.core.state.begin();
        // SAFETY: the token of the new process is this thread's, and the process runs.
        let stopped = unsafe { ProcessCore::stop(&raw const child.core, Runnable(child.clone())) };
        assert!(stopped.is_none());
        let killer = {
            let child = child.clone();
            thread::spawn(move || child.kill(ExitReason::NodeDown, false))
        };
        AnyCell::revive(child.clone());
        killer.join().unwrap();
        let reason = child.with_relations(|lists| lists.killed.take()).flatten();
        let is_killed = child.core.state.is_killed();
        assert_eq!(reason, is_killed.then_some(ExitReason::NodeDown));
        // The cells and the scheduler refer to each other.
        for cell in [supervisor, child] {
            handle.registry().remove(cell.pid);
        }
        drop(handle.shared.injector.pop());
    });
}

/// A process ends while it begins to monitor another one. The other one does not keep the ended
/// process as a watcher.
///
/// Fails if `monitor` does not look for the monitoring process after the target has the watcher.
#[test]
fn monitor_racing_the_end_of_its_process_is_undone() {
    model(|| {
        let handle = without_threads();
        let [ending, other] = [(); 2].map(|()| spawn(&handle, None));
        let worker = {
            let ending = ending.clone();
            thread::spawn(move || ending.abandon())
        };
        handle.monitor(ending.pid, other.pid);
        worker.join().unwrap();
        let watchers = other.with_relations(|lists| lists.watchers.len());
        assert_eq!(watchers, Some(0));
        // The cell and the scheduler refer to each other.
        handle.registry().remove(other.pid);
    });
}

/// A process gets a name while the name is removed: afterwards the process and the table of names
/// agree.
///
/// Fails if `register` or `unregister` changes the process without the lock of the table.
#[test]
fn register_racing_unregister_leaves_table_and_process_alike() {
    // The bound is for the epochs of the table of names, which make many steps themselves.
    Model::new().bound(3).check(|| {
        let handle = without_threads();
        let process = spawn(&handle, None);
        let other = {
            let handle = handle.clone();
            thread::spawn(move || handle.unregister("clerk"))
        };
        assert!(handle.register("clerk", process.pid));
        let removed = other.join().unwrap();
        assert_eq!(handle.whereis("clerk").is_none(), removed);
        assert_eq!(process.info().names.is_empty(), removed);
        // The cell and the scheduler refer to each other.
        handle.registry().remove(process.pid);
    });
}

/// A process that was killed for good ends, while another one takes over its name.
///
/// The model has a bound. Without one it passes too, and takes half a minute.
///
/// Fails if `register` does not look at the holder's kill, or if the end of the holder removes the
/// name of the other process.
#[test]
fn takeover_of_a_name_racing_the_end_of_its_holder_succeeds() {
    Model::new().bound(3).check(|| {
        let handle = without_threads();
        let [holder, next] = [(); 2].map(|()| spawn(&handle, None));
        assert!(handle.register("clerk", holder.pid));
        holder.kill(ExitReason::Killed, true);
        let worker = {
            let holder = holder.clone();
            thread::spawn(move || holder.abandon())
        };
        assert!(handle.register("clerk", next.pid));
        worker.join().unwrap();
        assert_eq!(handle.whereis("clerk"), Some(next.pid));
        assert_eq!(next.info().names, ["clerk"]);
        // The cell and the scheduler refer to each other.
        handle.registry().remove(next.pid);
    });
}

/// A process ends by itself while another one takes over its name. Its supervisor was killed for
/// good.
///
/// The model has a bound, as the one above.
///
/// Fails if `kill_if_doomed` looks at the state before the supervisor, or does not look for DONE.
#[test]
fn takeover_below_a_killed_supervisor_racing_an_end_succeeds() {
    Model::new().bound(3).check(|| {
        let handle = without_threads();
        let [supervisor, next] = [(); 2].map(|()| spawn(&handle, None));
        let holder = spawn(&handle, Some(supervisor.pid));
        assert!(handle.register("clerk", holder.pid));
        supervisor.kill(ExitReason::Killed, true);
        let worker = {
            let holder = holder.clone();
            thread::spawn(move || holder.abandon())
        };
        assert!(handle.register("clerk", next.pid));
        worker.join().unwrap();
        assert_eq!(handle.whereis("clerk"), Some(next.pid));
        // The cells and the scheduler refer to each other.
        for cell in [supervisor, next] {
            handle.registry().remove(cell.pid);
        }
    });
}

/// A supervisor that was killed for good kills its child and leaves the registry, while another
/// process takes over the child's name.
///
/// The model has a bound, as the one above.
///
/// Fails if a process whose supervisor is not in the registry keeps its name, or if a name moves
/// from a process that was not killed for good.
#[test]
fn takeover_racing_the_end_of_the_supervisor_succeeds() {
    Model::new().bound(3).check(|| {
        let handle = without_threads();
        let [supervisor, next] = [(); 2].map(|()| spawn(&handle, None));
        let holder = spawn(&handle, Some(supervisor.pid));
        assert!(handle.register("clerk", holder.pid));
        supervisor.kill(ExitReason::Killed, true);
        let worker = {
            let (supervisor, child) = (supervisor.clone(), holder.clone());
            thread::spawn(move || {
                child.kill(ExitReason::Killed, true);
                supervisor.abandon();
            })
        };
        assert!(handle.register("clerk", next.pid));
        assert!(holder.core.state.is_final());
        worker.join().unwrap();
        // The cells and the scheduler refer to each other.
        for cell in [holder, next] {
            handle.registry().remove(cell.pid);
        }
    });
}

/// A process takes over a name while a thread looks for the name.
///
/// Fails if the name is free between the earlier process and the next one.
#[test]
fn name_that_is_taken_over_is_never_free() {
    // The bound is for the epochs of the table of names, which make many steps themselves.
    Model::new().bound(3).check(|| {
        let handle = without_threads();
        let [holder, next] = [(); 2].map(|()| spawn(&handle, None));
        assert!(handle.register("clerk", holder.pid));
        holder.kill(ExitReason::Killed, true);
        let other = {
            let handle = handle.clone();
            thread::spawn(move || handle.whereis("clerk").is_some())
        };
        assert!(handle.register("clerk", next.pid));
        assert!(other.join().unwrap());
        // The cells and the scheduler refer to each other.
        for cell in [holder, next] {
            handle.registry().remove(cell.pid);
        }
    });
}

/// A process joins a group while it is killed for good: the group does not have it afterwards.
///
/// Fails if `join` does not look at the kill under the lock of the process, or if a kill for good
/// leaves no group.
#[test]
fn join_racing_a_kill_for_good_leaves_no_member() {
    model(|| {
        let handle = without_threads();
        let process = spawn(&handle, None);
        let killer = {
            let (handle, pid) = (handle.clone(), process.pid);
            thread::spawn(move || handle.kill_for_good(pid, ExitReason::Killed))
        };
        handle.join("clerks", process.pid);
        killer.join().unwrap();
        assert!(handle.members("clerks").is_empty());
        assert!(process.info().groups.is_empty());
        // The cell and the scheduler refer to each other.
        handle.registry().remove(process.pid);
    });
}

/// Two processes want the name of one that was killed for good: one of them gets it.
///
/// Fails if `register` does not compare the holder under the lock of the table.
#[test]
fn two_takeovers_of_a_name_have_one_winner() {
    // The bound is for the epochs of the table of names, which make many steps themselves.
    Model::new().bound(3).check(|| {
        let handle = without_threads();
        let [holder, first, second] = [(); 3].map(|()| spawn(&handle, None));
        assert!(handle.register("clerk", holder.pid));
        holder.kill(ExitReason::Killed, true);
        let other = {
            let (handle, pid) = (handle.clone(), second.pid);
            thread::spawn(move || handle.register("clerk", pid))
        };
        let won = [handle.register("clerk", first.pid), other.join().unwrap()];
        assert_ne!(won[0], won[1]);
        let winner = if won[0] { &first } else { &second };
        assert_eq!(handle.whereis("clerk"), Some(winner.pid));
        for cell in [holder, first.clone(), second.clone()] {
            let has_it = !cell.info().names.is_empty();
            assert_eq!(has_it, cell.pid == winner.pid);
            // The cells and the scheduler refer to each other.
            handle.registry().remove(cell.pid);
        }
    });
}

/// A process joins a group while it leaves the group: afterwards the process and the table of
/// groups agree.
///
/// Fails if `join` or `leave` changes the process without the lock of the table.
#[test]
fn join_racing_leave_leaves_group_and_process_alike() {
    model(|| {
        let handle = without_threads();
        let process = spawn(&handle, None);
        let other = {
            let (handle, pid) = (handle.clone(), process.pid);
            thread::spawn(move || handle.leave("clerks", pid))
        };
        assert!(handle.join("clerks", process.pid));
        other.join().unwrap();
        let is_member = !handle.members("clerks").is_empty();
        assert_eq!(!process.info().groups.is_empty(), is_member);
        // The cell and the scheduler refer to each other.
        handle.registry().remove(process.pid);
    });
}
