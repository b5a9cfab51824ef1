//! The peers of the engine: their sessions, the threads that send to them, and what comes from
//! them.
//!
//! | lock | of | while it is held |
//! |---|---|---|
//! | `order` of a peer | all that comes from the peer, and its losses | frames are taken in their
//! order; decoders of the user run |
//! | `Directory`'s | names and groups | the frames of the feed are queued |
//! | `state` of a peer | its session and its queue | nothing else |
//!
//! They are taken in this order. A relay's `deliver` takes `state` alone, and calls no engine. So a
//! process may send whatever runs, and no engine blocks a process.
use crate::{
    change::{NodeChange, NodeLoss},
    counters::Counters,
    decode_error::DecodeError,
    directory::{Directory, Feed},
    engine::{Engine, PeerId, Receives},
    frame::{ANSWER, BYE, HELLO, Hello, MESSAGE, NAME, PUBLISH, SIGNAL},
    identity::Identities,
    session::{Change, Session, Taken},
    settings::Settings,
    signals,
    wire::{Answer, AnswerTo, Answers, Decoder, Encoder, Pending},
};
use process_scheduler::{Address, ExitReason, Handle, Parcel, Pid, SendError, Signal};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use sync_shim::sim::thread;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many frames may wait for their acknowledgement beyond the messages.
const MOST_UNACKNOWLEDGED: u64 = 100_000;

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
    next_session: AtomicU32,
    /// The peers that are up, by the number of their node.
    nodes: RwLock<BTreeMap<u32, Arc<Peer>>>,
    /// Changes that the ticker has not told yet.
    changes: Mutex<Vec<NodeChange>>,
    news: Condvar,
    pub(crate) is_over: AtomicBool,
    pub(crate) registrar: OnceLock<Address<Pid>>,
    own: Weak<Self>,
}

impl Peers {
    pub(crate) fn new(
        handle: Handle,
        settings: Settings,
        engine: Arc<dyn Engine>,
        identities: Arc<Identities>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            handle,
            settings,
            engine,
            identities,
            directory: Directory::default(),
            counters: Counters::default(),
            begun: Instant::now(),
            peers: Mutex::default(),
            next_session: AtomicU32::new(1),
            nodes: RwLock::default(),
            changes: Mutex::default(),
            news: Condvar::new(),
            is_over: AtomicBool::new(false),
            registrar: OnceLock::new(),
            own: own.clone(),
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

    /// Returns how many calls of other nodes wait for their answers here.
    pub(crate) fn unanswered(&self) -> usize {
        // Ordering: Relaxed, as it is only a count.
        let count = |peer: &Arc<Peer>| peer.unanswered.load(Relaxed);
        lock(&self.peers).values().map(count).sum()
    }

    pub(crate) fn report(&self, change: NodeChange) {
        lock(&self.changes).push(change);
        self.news.notify_all();
    }

    fn peer(&self, id: &PeerId) -> Option<Arc<Peer>> {
        lock(&self.peers).get(id).cloned()
    }

    /// Tells changes, and gives signs of life, until the cluster is over.
    pub(crate) fn tick_until_the_end(self: Arc<Self>) {
        let interval = self.settings.lease / 4;
        let mut last = self.now();
        // Ordering: Relaxed, as `end` notifies after its store, under the lock.
        while !self.is_over.load(Relaxed) {
            let told: Vec<_> = {
                let mut changes = lock(&self.changes);
                let due = last + interval;
                let left = due.saturating_sub(self.now());
                // Ordering: as above.
                if changes.is_empty() && !left.is_zero() && !self.is_over.load(Relaxed) {
                    let waited = self.news.wait_timeout(changes, left);
                    changes = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                changes.drain(..).collect()
            };
            for change in told {
                // A panic of the hook is dropped.
                drop(catch_unwind(AssertUnwindSafe(|| {
                    (self.settings.on_change)(&change)
                })));
            }
            if self.now() >= last + interval {
                last = self.now();
                let peers: Vec<_> = lock(&self.peers).values().cloned().collect();
                peers.iter().for_each(|peer| peer.tick());
            }
        }
    }

    /// Leaves the cluster: says goodbye to all peers, and stops the engine.
    pub(crate) fn end(&self) {
        // Ordering: Relaxed, as the locks below order it.
        if self.is_over.swap(true, Relaxed) {
            return;
        }
        drop(lock(&self.changes));
        self.news.notify_all();
        let peers: Vec<_> = lock(&self.peers).drain().map(|(_, peer)| peer).collect();
        for peer in &peers {
            let _in_order = lock(&peer.order);
            let goodbye = {
                let state = lock(&peer.state);
                state.session.is_up().then(|| state.session.header(BYE))
            };
            peer.end(NodeLoss::Here);
            let mut state = lock(&peer.state);
            state.queue.extend(goodbye);
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
        self.engine.stop();
    }

    /// Lets the registrar monitor a process of this node.
    pub(crate) fn watch(&self, pid: Pid) {
        if let Some(registrar) = self.registrar.get() {
            // A registrar that has ended does so with its scheduler.
            let _ = registrar.try_send(pid);
        }
    }
}

/// The feed to all peers.
impl Feed for Peers {
    fn send(&self, body: &[u8]) {
        for (_, peer) in self.nodes() {
            peer.send_always(NAME, body);
        }
    }

    fn identities(&self) -> &Identities {
        &self.identities
    }
}

impl Receives for Peers {
    /// The engine has a peer, perhaps one that it had before.
    fn up(&self, id: PeerId) {
        // Ordering: Relaxed, as `end` looks at all peers after its store, under their lock.
        if self.is_over.load(Relaxed) {
            return;
        }
        let peer = {
            let mut peers = lock(&self.peers);
            peers
                .entry(id.clone())
                .or_insert_with(|| Peer::start(self, id))
                .clone()
        };
        let _in_order = lock(&peer.order);
        peer.say_hello();
    }

    /// The engine has lost a peer.
    fn down(&self, id: &PeerId) {
        let Some(peer) = self.peer(id) else {
            return;
        };
        let _in_order = lock(&peer.order);
        peer.end(NodeLoss::Disconnected);
        let number = {
            let mut state = lock(&peer.state);
            state.queue.clear();
            state.is_over = true;
            state.session.number()
        };
        peer.has_frames.notify_all();
        let mut peers = lock(&self.peers);
        // Ordering: as in `Peer::start`.
        self.next_session.fetch_max(number + 1, Relaxed);
        if peers.get(id).is_some_and(|other| Arc::ptr_eq(other, &peer)) {
            peers.remove(id);
        }
    }

    /// A frame has come.
    fn frame(&self, id: &PeerId, frame: &[u8]) {
        if frame.len() > self.settings.frame_limit {
            self.counters.invalid();
            return;
        }
        // Data may come before the engine's own notice.
        if self.peer(id).is_none() {
            self.up(id.clone());
        }
        if let Some(peer) = self.peer(id) {
            peer.take(frame);
        }
    }
}

/// A peer of the engine.
pub(crate) struct Peer {
    peers: Weak<Peers>,
    id: PeerId,
    order: Mutex<()>,
    state: Mutex<PeerState>,
    has_frames: Condvar,
    /// The writer has sent all frames.
    is_idle: Condvar,
    /// The calls of the other node that wait for their answers here.
    unanswered: AtomicUsize,
}

struct PeerState {
    session: Session,
    /// The node's number while the session is up.
    number: Option<u32>,
    /// The other node's tags of the codecs of this one.
    their_tags: Vec<Option<u16>>,
    queue: VecDeque<Vec<u8>>,
    wakers: Vec<Waker>,
    /// The calls that wait for an answer, by the number of their frame.
    pending: HashMap<u64, Vec<Option<Pending>>>,
    is_over: bool,
    /// Whether the writer is in the engine's call.
    is_writing: bool,
}

impl Peer {
    fn start(peers: &Peers, id: PeerId) -> Arc<Self> {
        // Ordering: Relaxed, as the lock of `peers` is held here and in `down`.
        let number = peers.next_session.load(Relaxed);
        let session = Session::new(peers.identities.own(), number, peers.settings.queue);
        let peer = Arc::new(Self {
            peers: peers.own.clone(),
            id,
            order: Mutex::new(()),
            state: Mutex::new(PeerState {
                session,
                number: None,
                their_tags: Vec::new(),
                queue: VecDeque::new(),
                wakers: Vec::new(),
                pending: HashMap::new(),
                is_over: false,
                is_writing: false,
            }),
            has_frames: Condvar::new(),
            is_idle: Condvar::new(),
            unanswered: AtomicUsize::new(0),
        });
        let (writes, engine) = (peer.clone(), peers.engine.clone());
        let writer = thread::Builder::new().name("cluster writer".to_owned());
        // Without a thread nothing is sent, and the lease ends the session.
        drop(writer.spawn(move || writes.write(&*engine)));
        peer
    }

    /// Sends the queued frames, until the end.
    fn write(&self, engine: &dyn Engine) {
        loop {
            let frame = {
                let mut state = lock(&self.state);
                loop {
                    state.is_writing = !state.queue.is_empty();
                    if let Some(frame) = state.queue.pop_front() {
                        break frame;
                    }
                    self.is_idle.notify_all();
                    if state.is_over {
                        return;
                    }
                    let waited = self.has_frames.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
            };
            // A lost frame is a gap, which the other side sees.
            let _ = engine.send(&self.id, &frame);
        }
    }

    fn queue(&self, state: &mut PeerState, frame: Vec<u8>) {
        if !state.is_over {
            state.queue.push_back(frame);
            self.has_frames.notify_one();
        }
    }

    fn say_hello(&self) {
        let Some(peers) = self.peers.upgrade() else {
            return;
        };
        let mut state = lock(&self.state);
        let mut frame = state.session.header(HELLO);
        let hello = Hello {
            name: peers.settings.name.clone(),
            heard: state.session.heard_of(),
            window: peers.settings.queue,
            codecs: peers.settings.codecs.names().map(str::to_owned).collect(),
        };
        hello.write(&mut frame);
        self.queue(&mut state, frame);
    }

    /// Ends the session. The caller has `order`.
    fn end(&self, why: NodeLoss) {
        let mut changes = Vec::new();
        lock(&self.state).session.end(why, &mut changes);
        changes.retain(|change| *change != Change::SayHello);
        self.apply(&changes);
    }

    fn tick(&self) {
        let Some(peers) = self.peers.upgrade() else {
            return;
        };
        let _in_order = lock(&self.order);
        let mut changes = Vec::new();
        let abandoned = {
            let mut state = lock(&self.state);
            let since = peers.now().saturating_sub(peers.settings.lease);
            state.session.check_lease(since, &mut changes);
            // Frames that cannot be refused have come to more than the messages that may wait.
            if state.session.unacknowledged()
                > MOST_UNACKNOWLEDGED + u64::from(peers.settings.queue)
            {
                state.session.end(NodeLoss::Overflow, &mut changes);
            }
            if state.session.is_up() {
                let alive = state.session.alive();
                self.queue(&mut state, alive);
            } else if changes.is_empty() && state.queue.len() < 4 {
                changes.push(Change::SayHello);
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
        self.apply(&changes);
    }

    /// Does what a change asks for. The caller has `order`.
    fn apply(&self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::SayHello => self.say_hello(),
                Change::Up => self.rose(),
                Change::Down(why) => self.fell(*why),
            }
        }
    }

    fn rose(&self) {
        let Some(peers) = self.peers.upgrade() else {
            return;
        };
        let this = lock(&peers.peers).get(&self.id).cloned();
        let (Some(this), Some(other)) = (this, lock(&self.state).session.other().cloned()) else {
            return;
        };
        let number = peers.identities.number_of(other.incarnation);
        {
            let mut state = lock(&self.state);
            state.number = Some(number);
            let codecs = &peers.settings.codecs;
            let theirs = |name: &str| {
                let at = other.hello.codecs.iter().position(|other| other == name)?;
                u16::try_from(at).ok()
            };
            state.their_tags = codecs.names().map(theirs).collect();
        }
        peers.handle.node_up(number, &*other.hello.name);
        let mut nodes = peers.nodes.write().unwrap_or_else(PoisonError::into_inner);
        nodes.insert(number, this);
        drop(nodes);
        peers.directory.send_all(&ToOne(&peers, self));
        self.wake_senders();
        peers.report(NodeChange::Up {
            node: number,
            name: other.hello.name,
        });
    }

    fn fell(&self, why: NodeLoss) {
        let Some(peers) = self.peers.upgrade() else {
            return;
        };
        let (number, pending) = {
            let mut state = lock(&self.state);
            // The frames before a goodbye are still sent.
            if why != NodeLoss::Here {
                state.queue.clear();
            }
            (state.number.take(), std::mem::take(&mut state.pending))
        };
        pending
            .into_values()
            .flatten()
            .flatten()
            .for_each(Pending::node_down);
        if let Some(number) = number {
            let mut nodes = peers.nodes.write().unwrap_or_else(PoisonError::into_inner);
            nodes.remove(&number);
            drop(nodes);
            peers.directory.forget_node(number);
            peers.handle.node_down(number);
            peers.report(NodeChange::Down { node: number, why });
        }
        self.wake_senders();
    }

    fn wake_senders(&self) {
        let wakers = std::mem::take(&mut lock(&self.state).wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Polls whether a message has room. A node that is down is ready: the send then fails.
    pub(crate) fn poll_ready(&self, waker: &Waker) -> Poll<()> {
        let waker = waker.clone();
        let mut state = lock(&self.state);
        if !state.session.is_up() || state.session.has_room() {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|other| other.will_wake(&waker)) {
            state.wakers.push(waker);
        }
        Poll::Pending
    }

    /// Queues a message or a request. `make` gets the tags of the other node, makes the body, and
    /// says which answers it waits for.
    ///
    /// # Errors
    /// If there is no room, or the session is not up: `make` was not called.
    pub(crate) fn send_if_room<E>(
        &self,
        kind: u8,
        make: impl FnOnce(&[Option<u16>]) -> Result<(Vec<u8>, Vec<Pending>), E>,
    ) -> Result<Result<(), E>, SendError<()>> {
        let tags = {
            let state = lock(&self.state);
            if !state.session.is_up() {
                return Err(SendError::NodeDown(()));
            }
            if !state.session.has_room() {
                return Err(SendError::Full(()));
            }
            state.their_tags.clone()
        };
        // Code of the user runs without a lock. So another thread may take the room meanwhile: each
        // thread that sends may exceed the window by one frame.
        let (body, pending) = match make(&tags) {
            Ok(made) => made,
            Err(error) => return Ok(Err(error)),
        };
        let mut state = lock(&self.state);
        if !state.session.is_up() {
            drop(state);
            // The message is lost on its way.
            pending.into_iter().for_each(Pending::node_down);
            return Ok(Ok(()));
        }
        let (sequence, frame) = state.session.frame(kind, &body);
        if !pending.is_empty() {
            let places = pending.into_iter().map(Some).collect();
            state.pending.insert(sequence, places);
        }
        self.queue(&mut state, frame);
        Ok(Ok(()))
    }

    /// Queues a frame that must not be refused while the session is up: an exit, an answer, or one
    /// of the feed. They are bounded by what this node and the other one have asked for.
    pub(crate) fn send_always(&self, kind: u8, body: &[u8]) {
        let mut state = lock(&self.state);
        if state.session.is_up() {
            let (_, frame) = state.session.frame(kind, body);
            self.queue(&mut state, frame);
        }
    }

    /// Takes a frame that has come.
    fn take(self: &Arc<Self>, frame: &[u8]) {
        let Some(peers) = self.peers.upgrade() else {
            return;
        };
        let _in_order = lock(&self.order);
        let mut changes = Vec::new();
        let admit = |hello: &Hello| {
            let admitted = catch_unwind(AssertUnwindSafe(|| (peers.settings.admit)(&hello.name)));
            let is_admitted = admitted.unwrap_or(false);
            if !is_admitted {
                peers.counters.refused();
            }
            is_admitted
        };
        let (taken, has_room, session) = {
            let mut state = lock(&self.state);
            let taken = state.session.take(frame, peers.now(), admit, &mut changes);
            let session = state.session.heard_of().map_or(0, |(_, session)| session);
            if state.session.owes_acknowledgement() {
                let alive = state.session.alive();
                self.queue(&mut state, alive);
            }
            let has_room = !state.wakers.is_empty() && state.session.has_room();
            (taken, has_room, session)
        };
        self.apply(&changes);
        if has_room {
            self.wake_senders();
        }
        match taken {
            Ok(Taken::Nothing) => {}
            Ok(Taken::Frame {
                kind,
                sequence,
                body,
            }) => {
                let way: Weak<Self> = Arc::downgrade(self);
                let answer_to = AnswerTo {
                    way,
                    session,
                    sequence,
                };
                let input = Decoder::new(body, answer_to, &peers.identities);
                // A panic of a decoder of the user is an invalid message.
                let taken = catch_unwind(AssertUnwindSafe(|| self.take_body(&peers, kind, input)));
                if !matches!(taken, Ok(Ok(()))) {
                    peers.counters.invalid();
                }
            }
            Err(_) => peers.counters.invalid(),
        }
    }

    fn take_body(
        &self,
        peers: &Arc<Peers>,
        kind: u8,
        mut input: Decoder<'_>,
    ) -> Result<(), DecodeError> {
        match kind {
            MESSAGE => {
                let to = read_own(&mut input, peers)?;
                let tag = input.u16()?;
                let message = peers.settings.codecs.decode(tag, &mut input)?;
                input.end()?;
                if peers.handle.deliver(to, Parcel::Message(message)).is_err() {
                    peers.counters.dead_letter();
                }
            }
            SIGNAL => {
                let to = read_own(&mut input, peers)?;
                let signal = signals::read(&mut input)?;
                input.end()?;
                self.take_signal(peers, to, signal);
            }
            ANSWER => {
                let (sequence, place) = (input.u64()?, usize::from(input.u8()?));
                let place = {
                    let mut state = lock(&self.state);
                    let places = state.pending.get_mut(&sequence);
                    let ended = places.and_then(|places| {
                        let ended = places.get_mut(place)?.take();
                        Some((ended, places.iter().all(Option::is_none)))
                    });
                    if let Some((_, true)) = ended {
                        state.pending.remove(&sequence);
                    }
                    ended.and_then(|(ended, _)| ended)
                };
                let Some(place) = place else {
                    return Ok(());
                };
                match input.bool()? {
                    true => place.answer(&mut input),
                    false => place.drop_call(),
                }
            }
            NAME => {
                let lost = peers.directory.take(&**peers, self.number(), &mut input)?;
                lost.into_iter().for_each(|lost| peers.report(lost));
            }
            PUBLISH => {
                let group = input.str()?;
                let tag = input.u16()?;
                let answer_to = input.answer_to();
                let bytes = input.rest();
                for member in peers.directory.own_members(&**peers, group) {
                    let mut input = Decoder::new(bytes, answer_to.clone(), &peers.identities);
                    let message = peers.settings.codecs.decode(tag, &mut input)?;
                    input.end()?;
                    if peers
                        .handle
                        .deliver(member, Parcel::Message(message))
                        .is_err()
                    {
                        peers.counters.dead_letter();
                    }
                }
            }
            _ => return Err(DecodeError::Invalid),
        }
        Ok(())
    }

    fn take_signal(&self, peers: &Arc<Peers>, to: Pid, signal: Signal) {
        let name = lock(&self.state)
            .session
            .other()
            .map(|other| other.hello.name.clone());
        let allow = || (peers.settings.allow)(name.as_deref().unwrap_or_default(), &signal);
        let is_answer = matches!(signal, Signal::Exit { .. });
        let is_allowed = is_answer || catch_unwind(AssertUnwindSafe(allow)).unwrap_or(false);
        if !is_allowed {
            peers.counters.refused();
        }
        let refused = match is_allowed {
            true => peers
                .handle
                .deliver(to, Parcel::Signal(signal.clone()))
                .is_err(),
            false => true,
        };
        if !refused {
            return;
        }
        // The other node has noted the relation: it is told that there is none.
        let (by, linked) = match signal {
            Signal::Monitor { by } => (by, false),
            Signal::Link { with } => (with, true),
            _ => return,
        };
        let mut out = Encoder::new(&peers.identities);
        out.u64(by.to_bits() as u64);
        let exit = Signal::Exit {
            pid: to,
            reason: ExitReason::NoProcess,
            linked,
        };
        signals::write(&exit, &mut out);
        self.send_always(SIGNAL, &out.bytes);
    }

    fn number(&self) -> Option<u32> {
        lock(&self.state).number
    }
}

/// Answers to calls of the other node.
impl Answers for Peer {
    fn answer(&self, to: &AnswerTo, place: u8, answer: Answer) {
        let mut body = to.sequence.to_le_bytes().to_vec();
        body.push(place);
        match answer {
            Answer::Value(bytes) => {
                body.push(1);
                body.extend_from_slice(&bytes);
            }
            Answer::Dropped => body.push(0),
        }
        let mut state = lock(&self.state);
        // The session of the call, and no later one.
        let is_there = state
            .session
            .other()
            .is_some_and(|other| other.session == to.session);
        if is_there {
            let (_, frame) = state.session.frame(ANSWER, &body);
            self.queue(&mut state, frame);
        }
    }

    fn unanswered(&self) -> &AtomicUsize {
        &self.unanswered
    }
}

/// The feed to one peer.
struct ToOne<'a>(&'a Peers, &'a Peer);

impl Feed for ToOne<'_> {
    fn send(&self, body: &[u8]) {
        self.1.send_always(NAME, body);
    }

    fn identities(&self) -> &Identities {
        &self.0.identities
    }
}

/// Reads the slot and the generation of a process of this node.
fn read_own(input: &mut Decoder<'_>, peers: &Peers) -> Result<Pid, DecodeError> {
    let pid = Pid::from_bits(input.u64()?.into()).ok_or(DecodeError::Invalid)?;
    Ok(pid.with_node(peers.identities.own_number()))
}
