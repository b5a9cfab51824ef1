//! The peers of the engine: their sessions, the threads that send to them, and what comes from
//! them.
//!
//! The locks, in the order in which a thread takes them:
//!
//! 1. `order` of a peer: all that comes from the peer, and its losses. While it is held, frames are
//!    taken in their order, and decoders of the user run.
//! 2. `membership`: which peer reaches a node. While it is held, a node is noted as reached or as
//!    lost, and that is reported. Of the user's code, only the wakers of a scheduler's drivers run.
//! 3. `Directory`'s: names and groups. While it is held, the frames of the feed are queued.
//! 4. `state` of a peer: its session and its queue. Nothing else is done while it is held.
//!
//! One step goes against that order, and never waits: under `membership` a thread tries the `order`
//! of the other peer of its node.
//!
//! A relay's `deliver` takes `state` alone, and calls no engine. So a process may send whatever
//! runs, and no engine blocks a process.
use crate::{
    change::{NodeChange, NodeLoss},
    counters::Counters,
    directory::{Directory, Feed, Watch},
    engine::{Engine, PeerId, Receives},
    frame::{ANSWER, BYE, HELLO, Header, Hello, LEAVING, NAME, ORDERED},
    identity::{Identities, Incarnation},
    place::place,
    session::{Change, Session},
    settings::Settings,
    wire::{Answer, AnswerTo, Answers, Pending},
};
use process_scheduler::{Address, Handle, Pid, SendError};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError},
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use sync_shim::sim::thread;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks, unless another thread has the lock.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Wakes. A panic of the waker is dropped.
fn wake(waker: Waker) {
    drop(catch_unwind(AssertUnwindSafe(|| waker.wake())));
}

/// How many frames may wait for their acknowledgement beyond the messages.
const MOST_UNACKNOWLEDGED: usize = 1_000_000;

/// How many frames, and about how many bytes of them, a writer gives to the engine at once.
const MOST_FRAMES_AT_ONCE: usize = 512;
const MOST_BYTES_AT_ONCE: usize = 32 << 10;

/// How many times a writer looks for more frames before it sleeps. In a simulation a look in vain
/// would be a step of it.
const LOOKS: u32 = if cfg!(selvedge_sim) { 0 } else { 100 };

/// How often a node looks for silent peers, for each of its signs of life.
const CHECKS: u32 = 4;
/// The contents of a frame LEAVING: a node leaves, and another has sent its last message to it.
pub(crate) const LEAVES: u8 = 0;
pub(crate) const NOTED: u8 = 1;

/// All peers, and what they share.
pub(crate) struct Peers {
    pub(crate) handle: Handle,
    pub(crate) settings: Settings,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) identities: Arc<Identities>,
    pub(crate) directory: Directory,
    pub(crate) counters: Counters,
    begun: Instant,
    peers: Mutex<HashMap<PeerId, Arc<Peer>>>,
    /// The number of the first session with a new peer: no session of this node has had it or a
    /// larger one. A peer may come again under an id that was forgotten.
    next_session: Mutex<u32>,
    /// Held from the look at `nodes` until the change is reported. Two peers may be one node, and
    /// each of them has an `order` of its own.
    membership: Mutex<()>,
    /// The peers that are up, by the number of their node.
    nodes: RwLock<BTreeMap<u32, Arc<Peer>>>,
    /// The wakers of processes that wait for a node.
    arrivals: Mutex<Vec<Waker>>,
    /// Changes that the hook was not told yet.
    changes: Mutex<Vec<NodeChange>>,
    news: Condvar,
    /// The end of the ticker.
    ticks: (Mutex<()>, Condvar),
    is_over: Mutex<bool>,
    is_leaving: Mutex<bool>,
    engine_runs: Mutex<bool>,
    /// `None` before the first registrar starts, and when no further one can.
    registrar: Mutex<Option<Address<Watch>>>,
}

impl Peers {
    pub(crate) fn new(
        handle: Handle,
        settings: Settings,
        engine: Arc<dyn Engine>,
        identities: Arc<Identities>,
    ) -> Arc<Self> {
        Arc::new(Self {
            handle,
            settings,
            engine,
            identities,
            directory: Directory::default(),
            counters: Counters::default(),
            begun: Instant::now(),
            peers: Mutex::default(),
            next_session: Mutex::new(1),
            membership: Mutex::default(),
            nodes: RwLock::default(),
            arrivals: Mutex::default(),
            changes: Mutex::default(),
            news: Condvar::new(),
            ticks: (Mutex::new(()), Condvar::new()),
            is_over: Mutex::default(),
            is_leaving: Mutex::default(),
            engine_runs: Mutex::default(),
            registrar: Mutex::default(),
        })
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the peers that are up.
    pub(crate) fn nodes(&self) -> Vec<(u32, Arc<Peer>)> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        nodes
            .iter()
            .map(|(number, peer)| (*number, peer.clone()))
            .collect()
    }

    pub(crate) fn node(&self, number: u32) -> Option<Arc<Peer>> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        nodes.get(&number).cloned()
    }

    /// Returns the node to which a key belongs, among those that are reached and this one.
    pub(crate) fn place(&self, key: &[u8]) -> u32 {
        let mut nodes = self.handle.nodes();
        let leaves = |number| self.node(number).is_some_and(|peer| peer.leaves());
        nodes.retain(|node| !leaves(node.number));
        let others = nodes.iter().map(|node| (node.number, &*node.name));
        let own = (self.identities.own_number(), &*self.settings.name);
        place(others.chain([own]), key).expect("this node is one of them")
    }

    /// Polls whether a node of this name is reached, or is this one. If not, the waker is woken
    /// when a node comes, and at the end of the cluster.
    pub(crate) fn poll_named(&self, name: &str, waker: &Waker) -> Poll<u32> {
        if name == self.settings.name {
            return Poll::Ready(self.identities.own_number());
        }
        let waker = waker.clone();
        {
            let mut wakers = lock(&self.arrivals);
            if !wakers.iter().any(|other| other.will_wake(&waker)) {
                wakers.push(waker);
            }
        }
        let nodes = self.handle.nodes();
        let named = nodes.iter().rev().find(|node| node.name == name);
        named.map_or(Poll::Pending, |node| Poll::Ready(node.number))
    }

    fn arrivals(&self) -> Vec<Waker> {
        std::mem::take(&mut *lock(&self.arrivals))
    }

    /// Returns how many calls of other nodes wait for their answers here.
    pub(crate) fn unanswered(&self) -> usize {
        let count = |peer: &Arc<Peer>| *lock(&peer.unanswered);
        lock(&self.peers).values().map(count).sum()
    }

    pub(crate) fn report(&self, change: NodeChange) {
        lock(&self.changes).push(change);
        self.news.notify_all();
    }

    fn peer(&self, id: &PeerId) -> Option<Arc<Peer>> {
        lock(&self.peers).get(id).cloned()
    }

    /// Returns the bytes of this node's hello.
    pub(crate) fn hello_length(&self) -> usize {
        let mut frame = vec![0; ORDERED];
        self.hello(None).write(&mut frame);
        frame.len()
    }

    fn hello(&self, heard: Option<(Incarnation, u32)>) -> Hello {
        Hello {
            name: self.settings.name.clone(),
            heard,
            window: self.settings.queue,
            limit: u32::try_from(self.settings.frame_limit).unwrap_or(u32::MAX),
            codecs: self.settings.codecs.names().map(str::to_owned).collect(),
        }
    }

    /// Tells the hook of changes, until the cluster is over.
    pub(crate) fn tell_until_the_end(self: Arc<Self>) {
        loop {
            let told = {
                let mut changes = lock(&self.changes);
                while changes.is_empty() && !*lock(&self.is_over) {
                    let waited = self.news.wait(changes);
                    changes = waited.unwrap_or_else(PoisonError::into_inner);
                }
                std::mem::take(&mut *changes)
            };
            if told.is_empty() {
                return;
            }
            for change in told {
                // A panic of the hook is dropped.
                drop(catch_unwind(AssertUnwindSafe(|| {
                    (self.settings.on_change)(&change)
                })));
            }
        }
    }

    /// Gives signs of life, four in a lease, and looks for those of others, until the cluster is
    /// over.
    pub(crate) fn tick_until_the_end(self: Arc<Self>) {
        let interval = self.settings.lease / 4;
        let (of_ticks, ends) = &self.ticks;
        let mut since_sign = 0;
        // How many more checks look for nobody.
        let mut left_out = 0;
        loop {
            let next = self.now() + interval / CHECKS;
            let mut held = lock(of_ticks);
            loop {
                if *lock(&self.is_over) {
                    return;
                }
                let left = next.saturating_sub(self.now());
                if left.is_zero() {
                    break;
                }
                let waited = ends.wait_timeout(held, left);
                held = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(held);
            // A node that was stopped itself, or had no processor, has frames to take before it
            // knows who is silent.
            if self.now() > next + interval {
                left_out = CHECKS;
            }
            since_sign += 1;
            let tick = Tick {
                was_stopped: left_out > 0,
                gives_sign: since_sign == CHECKS,
            };
            since_sign %= CHECKS;
            left_out = left_out.saturating_sub(1);
            let peers: Vec<_> = lock(&self.peers).values().cloned().collect();
            peers.iter().for_each(|peer| peer.tick(&self, tick));
        }
    }

    /// Asks all nodes to send nothing new from now on.
    pub(crate) fn begin_to_leave(&self) {
        *lock(&self.is_leaving) = true;
        for (number, peer) in self.nodes() {
            peer.send_always(number, LEAVING, &[LEAVES]);
        }
    }

    /// Returns whether each node that is reached has sent its last message.
    pub(crate) fn all_have_noted(&self) -> bool {
        let has_noted = |(_, peer): (u32, Arc<Peer>)| {
            let state = lock(&peer.state);
            state.has_noted || !state.session.is_up()
        };
        self.nodes().into_iter().all(has_noted)
    }

    pub(crate) fn engine_has_started(&self) {
        *lock(&self.engine_runs) = true;
    }

    /// Leaves the cluster: says goodbye to all peers, and stops the engine. The threads end then.
    pub(crate) fn end(&self) {
        let peers: Vec<_> = {
            let mut peers = lock(&self.peers);
            *lock(&self.is_over) = true;
            peers.drain().map(|(_, peer)| peer).collect()
        };
        self.arrivals().into_iter().for_each(wake);
        drop(lock(&self.changes));
        self.news.notify_all();
        drop(lock(&self.ticks.0));
        self.ticks.1.notify_all();
        let registrar = lock(&self.registrar).take();
        if let Some(registrar) = registrar {
            self.handle.cancel(registrar.pid());
        }
        for peer in &peers {
            let goodbye = {
                let state = lock(&peer.state);
                state.session.is_up().then(|| state.session.header(BYE))
            };
            // Without `order`: whoever drops the cluster in a decoder holds that. So a frame may
            // still be taken, but no exit that nobody awaits.
            peer.end(self, NodeLoss::Here);
            let mut state = lock(&peer.state);
            // A peer that the engine has lost meanwhile has no writer.
            if !state.is_over {
                state.queue.extend(goodbye);
            }
            state.is_over = true;
            drop(state);
            peer.has_frames.notify_all();
        }
        // An engine that blocks must not block the end for longer than a lease.
        let limit = Instant::now() + self.settings.lease;
        for peer in &peers {
            let mut state = lock(&peer.state);
            while state.is_writing || !state.queue.is_empty() {
                let left = limit.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = peer.is_idle.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        if *lock(&self.engine_runs) {
            self.engine.stop();
        }
        self.handle.remove_relay();
    }

    pub(crate) fn is_over(&self) -> bool {
        *lock(&self.is_over)
    }

    pub(crate) fn set_registrar(&self, registrar: Option<Address<Watch>>) {
        let before = std::mem::replace(&mut *lock(&self.registrar), registrar);
        drop(before);
    }

    /// Lets the registrar monitor a process of this node, which the directory has. Returns false,
    /// and takes the process out of the directory, if there is no registrar.
    pub(crate) fn watch(&self, pid: Pid) -> bool {
        let registrar = lock(&self.registrar).clone();
        match registrar {
            Some(registrar) => {
                // The next registrar finds the process, if this one has ended.
                let _ = registrar.try_send(Watch::Process(pid));
                true
            }
            None => {
                self.directory.forget_process(self, pid);
                false
            }
        }
    }
}

/// The feed to all peers.
impl Feed for Peers {
    fn send(&self, body: &[u8]) {
        for (number, peer) in self.nodes() {
            peer.send_always(number, NAME, body);
        }
    }

    fn identities(&self) -> &Identities {
        &self.identities
    }
}

impl Receives for Peers {
    /// The engine has a peer, perhaps one that it had before.
    fn up(&self, id: PeerId) {
        if let Some(peer) = self.get_or_start(id, true) {
            peer.say_hello(self);
        }
    }

    /// The engine has lost a peer.
    fn down(&self, id: &PeerId) {
        if let Some(peer) = self.peer(id) {
            let _in_order = lock(&peer.order);
            peer.end(self, NodeLoss::Disconnected);
            self.forget(&peer);
        }
    }

    /// A frame has come.
    fn frame(&self, id: &PeerId, frame: &[u8]) {
        if frame.len() > self.settings.frame_limit {
            self.counters.invalid();
            return;
        }
        let Ok((header, rest)) = Header::read(frame) else {
            self.counters.invalid();
            return;
        };
        // A hello may come before the engine's own notice. Other frames of a peer that is not there
        // are late.
        let peer = match header.kind {
            HELLO => self.get_or_start(id.clone(), false),
            _ => self.peer(id),
        };
        let Some(peer) = peer else {
            return;
        };
        let is_frame = match header.kind {
            HELLO => peer.take_hello(self, header, rest),
            _ => peer.take(self, header, rest),
        };
        if is_frame.is_err() {
            self.counters.invalid();
        }
    }
}

impl Peers {
    /// Returns the peer with this id, which may be new. `None` after the end. `is_there` says that
    /// the engine has told of it.
    fn get_or_start(&self, id: PeerId, is_there: bool) -> Option<Arc<Peer>> {
        let mut peers = lock(&self.peers);
        if *lock(&self.is_over) {
            return None;
        }
        let peer = peers
            .entry(id.clone())
            .or_insert_with(|| Peer::start(self, id));
        if is_there {
            lock(&peer.state).is_there = true;
        }
        Some(peer.clone())
    }

    /// Takes a peer whose session has ended out, and ends its writer.
    fn forget(&self, peer: &Arc<Peer>) {
        let number = {
            let mut state = lock(&peer.state);
            state.queue.clear();
            state.is_over = true;
            state.session.number()
        };
        peer.has_frames.notify_all();
        let mut peers = lock(&self.peers);
        let mut next = lock(&self.next_session);
        *next = (*next).max(number + 1);
        drop(next);
        if peers
            .get(&peer.id)
            .is_some_and(|other| Arc::ptr_eq(other, peer))
        {
            peers.remove(&peer.id);
        }
    }

    /// Returns another peer of the engine that has a session with this incarnation.
    fn other_peer(&self, peer: &Peer, other: Incarnation) -> Option<Arc<Peer>> {
        let number = self.identities.find(other)?;
        self.node(number).filter(|up| !ptr::eq(&**up, peer))
    }

    /// Returns whether another peer of the engine has a session with this incarnation, and that one
    /// is to stay: that of the node with the older incarnation decides. The caller holds no peer's
    /// `state`.
    fn has_better(&self, peer: &Peer, other: Incarnation) -> bool {
        self.identities.own() < other
            && self
                .other_peer(peer, other)
                .is_some_and(|up| lock(&up.state).session.is_up())
    }
}

/// The waits and the calls that end when a node comes or goes. Code of the user runs as they end,
/// so the caller holds no lock but `order`.
#[must_use]
#[derive(Default)]
struct Ended {
    wakers: Vec<Waker>,
    pending: Vec<Pending>,
}

impl Ended {
    fn notify(self) {
        self.pending.into_iter().for_each(Pending::node_down);
        self.wakers.into_iter().for_each(wake);
    }
}

/// The tasks of one check of the peers.
#[derive(Clone, Copy)]
struct Tick {
    /// This node was stopped, so it cannot tell who is silent.
    was_stopped: bool,
    /// It is time for a sign of life, or for another hello.
    gives_sign: bool,
}

/// A peer of the engine.
pub(crate) struct Peer {
    id: PeerId,
    order: Mutex<()>,
    state: Mutex<PeerState>,
    has_frames: Condvar,
    /// The writer has sent all frames.
    is_idle: Condvar,
    /// The calls of the other node that wait for their answers here.
    unanswered: Mutex<usize>,
}

struct PeerState {
    session: Session,
    /// The node's number while the session is up.
    number: Option<u32>,
    /// The most bytes of a frame that both sides take.
    limit: usize,
    /// The other node's tags of the codecs of this one.
    their_tags: Arc<[Option<u16>]>,
    queue: VecDeque<Vec<u8>>,
    wakers: Vec<Waker>,
    /// The other node leaves, and takes no new messages.
    leaves: bool,
    /// How many messages are being made. Those of a node that leaves go before the note that there
    /// are no more.
    in_making: usize,
    /// The other node sends no new messages, as this one leaves.
    has_noted: bool,
    /// The calls that wait for an answer, by the number of their frame.
    pending: HashMap<u64, Vec<Option<Pending>>>,
    /// Whether the engine has told of the peer.
    is_there: bool,
    is_over: bool,
    /// Whether the writer is in the engine's call.
    is_writing: bool,
}

impl Peer {
    fn start(peers: &Peers, id: PeerId) -> Arc<Self> {
        let number = *lock(&peers.next_session);
        let session = Session::new(peers.identities.own(), number, peers.settings.queue);
        let peer = Arc::new(Self {
            id,
            order: Mutex::new(()),
            state: Mutex::new(PeerState {
                session,
                number: None,
                limit: 0,
                their_tags: Arc::from([]),
                queue: VecDeque::new(),
                wakers: Vec::new(),
                leaves: false,
                in_making: 0,
                has_noted: false,
                pending: HashMap::new(),
                is_there: false,
                is_over: false,
                is_writing: false,
            }),
            has_frames: Condvar::new(),
            is_idle: Condvar::new(),
            unanswered: Mutex::default(),
        });
        let (writes, engine) = (peer.clone(), peers.engine.clone());
        let writer = thread::Builder::new().name("cluster writer".to_owned());
        // Without a thread nothing is sent, and the lease ends the session.
        drop(writer.spawn(move || writes.write(&*engine)));
        peer
    }

    /// Sends the queued frames, until the end.
    fn write(&self, engine: &dyn Engine) {
        let mut frames = Vec::new();
        loop {
            {
                let mut state = lock(&self.state);
                // A frame often follows soon, such as the next call behind an answer.
                let mut looks = LOOKS;
                loop {
                    take_some(&mut state.queue, &mut frames);
                    state.is_writing = !frames.is_empty();
                    if state.is_writing {
                        break;
                    }
                    self.is_idle.notify_all();
                    if state.is_over {
                        return;
                    }
                    if looks > 0 {
                        looks -= 1;
                        drop(state);
                        thread::yield_now();
                        state = lock(&self.state);
                        continue;
                    }
                    let waited = self.has_frames.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
            // A lost frame is a gap, which the other side sees.
            let _ = match &*frames {
                [frame] => engine.send(&self.id, frame),
                frames => engine.send_all(&self.id, frames),
            };
            frames.clear();
        }
    }

    fn queue(&self, state: &mut PeerState, frame: Vec<u8>) {
        if !state.is_over {
            state.queue.push_back(frame);
            self.has_frames.notify_one();
        }
    }

    fn say_hello(&self, peers: &Peers) {
        let heard = lock(&self.state).session.heard_of();
        if heard.is_some_and(|heard| peers.has_better(self, heard.0)) {
            return;
        }
        let mut state = lock(&self.state);
        let mut frame = state.session.header(HELLO);
        peers.hello(state.session.heard_of()).write(&mut frame);
        // Only the last of several hellos matters.
        if state.queue.back().is_some_and(|last| is_hello(last)) {
            state.queue.pop_back();
        }
        self.queue(&mut state, frame);
    }

    /// Ends the session.
    fn end(&self, peers: &Peers, why: NodeLoss) {
        let mut changes = Vec::new();
        lock(&self.state).session.end(why, &mut changes);
        changes.retain(|change| *change != Change::SayHello);
        self.apply(peers, &changes);
    }

    fn tick(self: &Arc<Self>, peers: &Peers, tick: Tick) {
        let since = match tick.was_stopped {
            true => Duration::ZERO,
            false => peers.now().saturating_sub(peers.settings.lease),
        };
        let abandoned = {
            let mut state = lock(&self.state);
            if state.session.is_up() && tick.gives_sign {
                let alive = state.session.alive();
                self.queue(&mut state, alive);
            }
            // Calls for which nobody waits any more. Their replies are dropped outside of the lock.
            let mut abandoned = Vec::new();
            state.pending.retain(|_, places| {
                for place in places.iter_mut() {
                    abandoned.extend(place.take_if(|place| place.is_abandoned()));
                }
                places.iter().any(Option::is_some)
            });
            abandoned
        };
        drop(abandoned);
        // While a frame of the peer is taken, the peer is not silent.
        let Some(_in_order) = try_lock(&self.order) else {
            return;
        };
        let mut changes = Vec::new();
        let is_gone = {
            let mut state = lock(&self.state);
            state.session.check_lease(since, &mut changes);
            // Frames that cannot be refused have come to too many.
            let most = MOST_UNACKNOWLEDGED + state.session.window().min(MOST_UNACKNOWLEDGED);
            if state.session.unacknowledged() > most as u64 {
                state.session.end(NodeLoss::Overflow, &mut changes);
            }
            if !state.session.is_up() && changes.is_empty() && tick.gives_sign {
                changes.push(Change::SayHello);
            }
            let is_silent = !state.session.is_up() && state.session.is_silent(since);
            !state.is_there && is_silent
        };
        self.apply(peers, &changes);
        if is_gone {
            peers.forget(self);
        }
    }

    /// Does what a change asks for. The caller has `order`, or the cluster ends.
    fn apply(&self, peers: &Peers, changes: &[Change]) {
        for change in changes {
            match change {
                Change::SayHello => self.say_hello(peers),
                Change::Up => self.rose(peers),
                Change::Down(why) => self.fell(peers, *why),
            }
        }
    }

    fn rose(&self, peers: &Peers) {
        let one_change = lock(&peers.membership);
        let mut ended = Ended::default();
        self.note_up(peers, &mut ended);
        drop(one_change);
        ended.notify();
    }

    fn fell(&self, peers: &Peers, why: NodeLoss) {
        let one_change = lock(&peers.membership);
        let mut ended = Ended::default();
        self.note_down(peers, why, &mut ended);
        drop(one_change);
        ended.notify();
    }

    /// The caller has `membership`.
    fn note_up(&self, peers: &Peers, ended: &mut Ended) {
        let this = peers.peer(&self.id);
        let (Some(this), Some(other)) = (this, lock(&self.state).session.other().cloned()) else {
            return;
        };
        // There may be two transports to one node.
        if peers.has_better(self, other.incarnation) {
            return self.stay_down();
        }
        if let Some(up) = peers.other_peer(self, other.incarnation) {
            // A frame that the other peer takes now must not relate processes after the loss.
            let Some(_in_order) = try_lock(&up.order) else {
                return self.stay_down();
            };
            let why = NodeLoss::Restarted;
            lock(&up.state).session.end(why, &mut Vec::new());
            up.note_down(peers, why, ended);
        }
        let Some(number) = peers.identities.meet(other.incarnation) else {
            return self.stay_down();
        };
        {
            let mut state = lock(&self.state);
            state.number = Some(number);
            (state.leaves, state.has_noted) = (false, false);
            let codecs = &peers.settings.codecs;
            let theirs = |name: &str| {
                let at = other.hello.codecs.iter().position(|other| other == name)?;
                u16::try_from(at).ok()
            };
            state.their_tags = codecs.names().map(theirs).collect();
            let limit = usize::try_from(other.hello.limit).unwrap_or(usize::MAX);
            state.limit = limit.min(peers.settings.frame_limit);
        }
        let mut nodes = peers.nodes.write().unwrap_or_else(PoisonError::into_inner);
        nodes.insert(number, this);
        drop(nodes);
        peers.handle.node_up(number, &*other.hello.name);
        peers.directory.send_all(&ToOne(peers, self, number));
        if *lock(&peers.is_leaving) {
            self.send_always(number, LEAVING, &[LEAVES]);
        }
        peers.report(NodeChange::Up {
            node: number,
            name: other.hello.name,
        });
        ended.wakers.extend(self.senders());
        ended.wakers.extend(peers.arrivals());
    }

    /// Ends a session that has begun, before anybody knows of it.
    fn stay_down(&self) {
        let mut state = lock(&self.state);
        state.session.end(NodeLoss::Restarted, &mut Vec::new());
    }

    /// The caller has `membership`. The session has ended.
    fn note_down(&self, peers: &Peers, why: NodeLoss, ended: &mut Ended) {
        let number = {
            let mut state = lock(&self.state);
            // The frames before a goodbye are still sent.
            if why != NodeLoss::Here && !state.is_over {
                state.queue.clear();
            }
            (state.leaves, state.has_noted) = (false, false);
            let pending = std::mem::take(&mut state.pending);
            ended
                .pending
                .extend(pending.into_values().flatten().flatten());
            state.number.take()
        };
        if let Some(number) = number {
            let mut nodes = peers.nodes.write().unwrap_or_else(PoisonError::into_inner);
            let is_own = nodes.get(&number).is_some_and(|up| ptr::eq(&**up, self));
            if is_own {
                nodes.remove(&number);
            }
            drop(nodes);
            if is_own {
                let incarnation = peers.identities.incarnation_of(number);
                peers.identities.part(incarnation);
                peers.directory.forget_node(number);
                peers.handle.node_down(number);
                peers.report(NodeChange::Down { node: number, why });
            }
        }
        ended.wakers.extend(self.senders());
    }

    fn senders(&self) -> Vec<Waker> {
        std::mem::take(&mut lock(&self.state).wakers)
    }

    fn wake_senders(&self) {
        self.senders().into_iter().for_each(wake);
    }

    /// Polls whether a message has room. A node that is down is ready: the send then fails.
    pub(crate) fn poll_ready(&self, waker: &Waker) -> Poll<()> {
        let waker = waker.clone();
        let mut state = lock(&self.state);
        if !state.session.is_up() || state.leaves || state.session.has_room() {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|other| other.will_wake(&waker)) {
            state.wakers.push(waker);
        }
        Poll::Pending
    }

    /// Queues a message for a node. `make` gets the other node's tags and the limit of a frame,
    /// makes the body, and says which answers it waits for.
    ///
    /// # Errors
    /// If there is no room, or the node is not reached: `make` was not called.
    pub(crate) fn send_if_room<E>(
        &self,
        node: u32,
        kind: u8,
        make: impl FnOnce(&[Option<u16>], usize) -> Result<(Vec<u8>, Vec<Pending>), E>,
    ) -> Result<Result<(), E>, SendError<()>> {
        let (tags, limit, session) = {
            let mut state = lock(&self.state);
            if state.number != Some(node) || !state.session.is_up() || state.leaves {
                return Err(SendError::NodeDown(()));
            }
            if !state.session.has_room() {
                return Err(SendError::NoRoom(()));
            }
            state.in_making += 1;
            let tags = state.their_tags.clone();
            (tags, state.limit, state.session.number())
        };
        let _in_making = InMaking(self);
        // Code of the user runs without a lock. So another thread may take the room meanwhile: each
        // thread that sends may exceed the window by one message.
        let (body, pending) = match make(&tags, limit) {
            Ok(made) => made,
            Err(error) => return Ok(Err(error)),
        };
        let mut state = lock(&self.state);
        if state.session.number() != session || !state.session.is_up() {
            drop(state);
            // The message is lost on its way.
            pending.into_iter().for_each(Pending::node_down);
            return Ok(Ok(()));
        }
        let (sequence, frame) = state.session.message(kind, &body);
        if !pending.is_empty() {
            let places = pending.into_iter().map(Some).collect();
            state.pending.insert(sequence, places);
        }
        self.queue(&mut state, frame);
        Ok(Ok(()))
    }

    /// Queues a frame that needs no room: a signal, an answer, or one of the feed. They are bounded
    /// by what this node and the other one have asked for. Returns whether the node is reached.
    pub(crate) fn send_always(&self, node: u32, kind: u8, body: &[u8]) -> bool {
        let mut state = lock(&self.state);
        let is_up = state.number == Some(node) && state.session.is_up();
        if is_up {
            let (_, frame) = state.session.frame(kind, body);
            self.queue(&mut state, frame);
        }
        is_up
    }

    fn number(&self) -> Option<u32> {
        lock(&self.state).number
    }

    /// Returns whether the other node leaves.
    fn leaves(&self) -> bool {
        lock(&self.state).leaves
    }

    /// Notes that the other node leaves. Messages to it are refused from now on.
    fn note_that_it_leaves(&self) {
        let mut state = lock(&self.state);
        state.leaves = true;
        self.send_note(&mut state);
        drop(state);
        self.wake_senders();
    }

    /// Says that no more messages come, once none is being made.
    fn send_note(&self, state: &mut PeerState) {
        if state.leaves && state.in_making == 0 && state.session.is_up() {
            let (_, frame) = state.session.frame(LEAVING, &[NOTED]);
            self.queue(state, frame);
        }
    }
}

/// A message that is being made, also if its encoder panics.
struct InMaking<'a>(&'a Peer);

impl Drop for InMaking<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.in_making -= 1;
        self.0.send_note(&mut state);
    }
}

/// Answers to calls of the other node.
impl Answers for Peer {
    fn answer(&self, to: &AnswerTo, place: u8, answer: Answer) {
        let mut body = to.sequence.to_le_bytes().to_vec();
        body.push(place);
        let value = match answer {
            Answer::Value(bytes) => Some(bytes),
            Answer::Dropped => None,
        };
        let mut state = lock(&self.state);
        // The session of the call, and no later one.
        if !state.session.is_up() || state.session.number() != to.session {
            return;
        }
        // An answer that is too large is one that was dropped.
        let fits = |bytes: &Vec<u8>| ORDERED + body.len() + 1 + bytes.len() <= state.limit;
        let value = value.filter(fits);
        body.push(value.is_some().into());
        body.extend(value.unwrap_or_default());
        let (_, frame) = state.session.frame(ANSWER, &body);
        self.queue(&mut state, frame);
    }

    fn unanswered(&self) -> &Mutex<usize> {
        &self.unanswered
    }
}

/// The feed to one peer, whose node has this number.
struct ToOne<'a>(&'a Peers, &'a Peer, u32);

impl Feed for ToOne<'_> {
    fn send(&self, body: &[u8]) {
        self.1.send_always(self.2, NAME, body);
    }

    fn identities(&self) -> &Identities {
        &self.0.identities
    }
}

/// Takes the first frames of a queue, as many as go to the engine at once.
fn take_some(queue: &mut VecDeque<Vec<u8>>, frames: &mut Vec<Vec<u8>>) {
    let mut bytes = 0;
    while frames.len() < MOST_FRAMES_AT_ONCE && bytes < MOST_BYTES_AT_ONCE {
        let Some(frame) = queue.pop_front() else {
            return;
        };
        bytes += frame.len();
        frames.push(frame);
    }
}

/// Returns whether a frame of this node is a hello.
fn is_hello(frame: &[u8]) -> bool {
    Header::read(frame).is_ok_and(|(header, _)| header.kind == HELLO)
}

mod incoming;
#[cfg(test)]
mod tests;
