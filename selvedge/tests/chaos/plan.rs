//! The plan of a round: its runtimes, and a tree of actions. A seed determines the plan.
//!
//! The trees obey rules, so that a round without a fault ends:
//!
//! 1. An awaited action ends by itself. An action that may wait forever is only in a place where
//!    something cancels it: its runtime's end, an abort, a drop, a timeout, or a faster branch.
//! 2. While a thread is blocked on an action, the action awaits no task of a runtime of one thread:
//!    at the end of a round nobody drives that runtime any more.
//! 3. A thread of some runtimes waits for the end of a runtime only if that one's index is higher.
//!    Otherwise two ends may wait for each other, as the docs of `Runtime` say.
//! 4. A blocking closure awaits others only where the pool has a thread for each closure.
//! 5. Copies of an action have no copies in turn, so that a round stays small.
//! 6. A driven worker is dropped after its end. Before that, its drop may leak the runtime, as the
//!    docs of `Worker` say.

/// Random numbers by the method splitmix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub runtimes: Vec<RuntimePlan>,
    pub actors: Option<ActorsPlan>,
    /// Futures of `at_exit`, each with the index of its runtime.
    pub exits: Vec<(usize, Action)>,
    /// The future of the round's `block_on`, in the first runtime.
    pub root: Action,
    /// Futures of further calls of `block_on` in the first runtime, by other threads.
    pub others: Vec<Action>,
    /// In which order the main thread ends the runtimes that are left, and how.
    pub ends: Vec<(usize, End)>,
    /// Whether the held join handles are dropped before the runtimes.
    pub handles_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuntimePlan {
    /// The number of workers; 0 for a runtime of one thread.
    pub workers: usize,
    /// Whether threads of the program drive the workers.
    pub is_driven: bool,
    pub monitor: bool,
    pub prestart: bool,
    pub sharded: bool,
    pub lifo: bool,
    pub ring: usize,
    pub blocking: usize,
    pub budget_is_small: bool,
    pub event_interval: Option<u32>,
    pub groups: usize,
    pub has_hooks: bool,
    /// Whether the hooks panic.
    pub hooks_panic: bool,
    pub measures: bool,
    pub ends_at_panic: bool,
    pub enable_io: bool,
}

impl RuntimePlan {
    pub fn is_threaded(&self) -> bool {
        self.workers > 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActorsPlan {
    pub workers: usize,
    pub processes: usize,
    pub is_supervised: bool,
    pub limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Drop,
    Background,
    /// With a limit in microseconds.
    Timeout(u64),
}

/// The fate of a task's join handle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Handling {
    Await,
    Detach,
    /// Aborts the task after some yields, and awaits it.
    Abort(u64),
    /// Keeps the handle until the round's end.
    Hold,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SetEnd {
    JoinAll,
    Shutdown,
    AbortAll,
    Drop,
    Detach,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Endless {
    Pending,
    Sleep,
    Accept,
    Read,
    UdpReceive,
    PipeWrite,
    Child,
    Interval,
    Yields,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChildKind {
    True,
    Echo,
    /// Its handle is dropped while it may run.
    Dropped,
    Killed,
    KilledByDrop,
    Output,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActorKind {
    Letters(u64),
    /// Waits for room in the mailbox, but not for long.
    Send,
    Call,
    /// A call whose future is dropped.
    DroppedCall,
    /// Links or monitors the next process.
    Link(bool),
    /// A sleep of the scheduler's timer.
    TimerSleep(u64),
    Kill,
    Cancel,
    Panic,
    Fail,
    Bomb,
    Stop,
    Sleep,
    /// Lets the process give commands.
    Commands(u64),
}

/// Times are in microseconds; the index of a runtime is `on`.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Nothing,
    Yields(u64),
    Sleep(u64),
    Interval(u64),
    /// Blocks the poll.
    Block(u64),
    Syscall(u64),
    Panic,
    /// Waits, and then drops a value whose drop panics.
    Bomb,
    Tcp {
        server_on: usize,
        bytes: usize,
    },
    TcpRefused,
    Udp,
    UnixPair(usize),
    UnixListener {
        server_on: usize,
    },
    Pipe(usize),
    Child(ChildKind),
    File(usize),
    /// Drops a file amid its buffered writes.
    OpenFile(usize),
    Messages {
        on: usize,
        messages: usize,
        receives: usize,
    },
    Endless(Endless),
    End {
        runtime: usize,
        end: End,
    },
    EndActors,
    /// Ends the runtime in the drop of a value that the future holds.
    EndInDrop {
        runtime: usize,
        end: End,
    },
    /// Spawns a task in the drop of a value that the future holds.
    SpawnInDrop(usize),
    /// Keeps the waker of this poll, until another action or the main thread wakes it.
    KeepWaker,
    WakeAll,
    /// Aborts the tasks whose handles are held.
    AbortHeld,
    /// Makes, changes and destroys groups.
    Groups(usize),
    Budget(u64),
    Actor {
        to: usize,
        kind: ActorKind,
    },

    Sequence(Vec<Action>),
    Join(Vec<Action>),
    /// The first branch that is ready ends the others.
    Select(Vec<Action>),
    Timeout(u64, Box<Action>),
    /// Polls a number of times, and then drops the future.
    PollThenDrop(u64, Box<Action>),
    Spawn {
        on: usize,
        group: usize,
        handling: Handling,
        has_bomb: bool,
        body: Box<Action>,
    },
    SpawnMany {
        on: usize,
        tasks: usize,
        body: Box<Action>,
    },
    Blocking {
        on: usize,
        handling: Handling,
        has_bomb: bool,
        body: Box<Sync>,
    },
    InPlace(Box<Sync>),
    Set {
        on: usize,
        end: SetEnd,
        has_bombs: bool,
        bodies: Vec<Action>,
    },
    /// A process that polls the future inside a runtime.
    Process {
        on: usize,
        body: Box<Action>,
    },
    /// Polls a future inside another runtime.
    Inside {
        on: usize,
        body: Box<Action>,
    },
    /// Polls a future inside each of the runtimes in turn.
    Wander(Box<Action>),
    /// Polls a future here some times, and leaves the rest to a task.
    Move {
        polls: u64,
        on: usize,
        body: Box<Action>,
    },
    /// A `block_on` that must panic, if it is inside a task.
    Nested(usize),
}

/// The work of a thread that may block.
#[derive(Clone, Debug, PartialEq)]
pub enum Sync {
    Sleep(u64),
    Panic,
    Bomb,
    BlockOn {
        on: usize,
        body: Action,
    },
    /// Runs a runtime of this thread, with a task that waits forever.
    Local {
        on: usize,
        body: Action,
    },
    /// A thread outside of all runtimes.
    Thread {
        on: usize,
        body: Action,
    },
    /// An executor that knows nothing of the runtime whose timers and sockets the future uses.
    Foreign {
        on: usize,
        body: Action,
    },
    End {
        runtime: usize,
        end: End,
    },
    EndActors,
    /// Sends from a closure to this one, by a channel of std.
    Channel {
        on: usize,
        messages: usize,
    },
}

/// Where an action is.
#[derive(Clone, Copy)]
struct Place {
    /// The index of its runtime.
    on: usize,
    /// The runtimes whose threads wait for this action, as bits.
    blocked: u32,
    /// The same, also of the threads that do not wait. They may drop this action's future, if its
    /// runtime refuses it.
    around: u32,
    /// Whether any thread is blocked on this action.
    is_sync: bool,
    may_be_endless: bool,
    is_copied: bool,
    /// Whether the action's future moves between runtimes.
    moves: bool,
    depth: u32,
}

impl Place {
    /// Returns the place of a task that nobody waits for.
    fn detached(self) -> Self {
        Self {
            blocked: 0,
            is_sync: false,
            may_be_endless: true,
            ..self.deeper()
        }
    }

    fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    fn on(self, on: usize) -> Self {
        Self {
            on,
            moves: false,
            ..self
        }
    }

    fn ending(self) -> Self {
        Self {
            may_be_endless: false,
            ..self
        }
    }

    fn endless(self) -> Self {
        Self {
            may_be_endless: true,
            ..self
        }
    }

    fn blocking(self) -> Self {
        Self {
            blocked: self.blocked | 1 << self.on,
            around: self.around | 1 << self.on,
            is_sync: true,
            ..self.ending()
        }
    }
}

struct Generator {
    random: Random,
    runtimes: Vec<RuntimePlan>,
    actors: Option<ActorsPlan>,
    /// The number of actions that the plan may still get.
    left: u64,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let count = random.of(&[1, 1, 1, 2, 2, 3]);
        let runtimes: Vec<_> = (0..count).map(|_| runtime(&mut random)).collect();
        let actors = random.one_in(3).then(|| ActorsPlan {
            workers: random.of(&[1, 2, 3]),
            processes: random.of(&[1, 2, 4]),
            is_supervised: random.one_in(3),
            limit: random.of(&[0, 1_000, 100_000]),
        });
        let left = random.of(&[3, 10, 20, 40]);
        let mut generator = Generator {
            random,
            runtimes,
            actors,
            left,
        };
        let place = Place {
            on: 0,
            blocked: 0,
            around: 0,
            is_sync: false,
            may_be_endless: false,
            is_copied: false,
            moves: false,
            depth: 0,
        };
        let root = Action::Sequence(generator.actions(place));
        let mut others = Vec::new();
        while generator.random.one_in(4) {
            others.push(generator.action(place.deeper()));
        }
        let mut exits = Vec::new();
        while generator.random.one_in(5) {
            let on = generator.any_runtime();
            let place = place.on(on).blocking();
            exits.push((on, generator.action(place.deeper())));
        }
        let mut ends: Vec<_> = (0..count).map(|on| (on, generator.end())).collect();
        if generator.random.one_in(2) {
            ends.reverse();
        }
        Self {
            handles_first: generator.random.one_in(2),
            runtimes: generator.runtimes,
            actors,
            exits,
            root,
            others,
            ends,
        }
    }
}

fn runtime(random: &mut Random) -> RuntimePlan {
    RuntimePlan {
        workers: random.of(&[0, 1, 1, 2, 2, 3, 4]),
        is_driven: random.one_in(8),
        monitor: !random.one_in(3),
        prestart: random.one_in(3),
        sharded: random.one_in(4),
        lifo: !random.one_in(4),
        ring: random.of(&[2, 16, 256]),
        blocking: random.of(&[1, 2, 512, 512, 512]),
        budget_is_small: random.one_in(4),
        event_interval: random.of(&[None, None, Some(1), Some(7)]),
        groups: random.of(&[0, 0, 1, 3]),
        has_hooks: random.one_in(4),
        hooks_panic: random.one_in(2),
        measures: random.one_in(4),
        ends_at_panic: random.one_in(12),
        enable_io: random.one_in(3),
    }
}

impl Generator {
    fn any_runtime(&mut self) -> usize {
        self.random.below(self.runtimes.len() as u64) as usize
    }

    fn runtime_where(&mut self, is_fit: impl Fn(&RuntimePlan) -> bool) -> Option<usize> {
        let fit: Vec<_> = (0..self.runtimes.len())
            .filter(|&on| is_fit(&self.runtimes[on]))
            .collect();
        (!fit.is_empty()).then(|| self.random.of(&fit))
    }

    /// Returns a runtime whose tasks an action at that place may await (rule 2).
    fn awaited_runtime(&mut self, place: Place) -> Option<usize> {
        self.runtime_where(|runtime| !place.is_sync || runtime.is_threaded())
    }

    fn has_many_threads(&self, on: usize) -> bool {
        self.runtimes[on].blocking > 100
    }

    fn time(&mut self) -> u64 {
        self.random.of(&[0, 1, 50, 300, 1_500])
    }

    fn end(&mut self) -> End {
        match self.random.below(4) {
            0 | 1 => End::Drop,
            2 => End::Background,
            _ => End::Timeout(self.time()),
        }
    }

    /// Chooses an end that does not wait where rule 3 forbids that.
    fn end_of_any(&mut self, blocked: u32) -> (usize, End) {
        let runtime = self.any_runtime();
        match blocked >> runtime {
            0 => (runtime, self.end()),
            _ => (runtime, End::Background),
        }
    }

    fn actions(&mut self, place: Place) -> Vec<Action> {
        let count = 1 + self.random.below(4);
        (0..count).map(|_| self.action(place.deeper())).collect()
    }

    fn boxed(&mut self, place: Place) -> Box<Action> {
        Box::new(self.action(place))
    }

    fn action(&mut self, place: Place) -> Action {
        self.left = self.left.saturating_sub(1);
        let is_leaf = self.left == 0 || place.depth > 6 || self.random.one_in(3);
        let composite = if is_leaf { None } else { self.composite(place) };
        composite.unwrap_or_else(|| self.leaf(place))
    }

    fn leaf(&mut self, place: Place) -> Action {
        if place.may_be_endless && self.random.one_in(3) {
            return Action::Endless(self.random.of(&[
                Endless::Pending,
                Endless::Sleep,
                Endless::Accept,
                Endless::Read,
                Endless::UdpReceive,
                Endless::PipeWrite,
                Endless::Child,
                Endless::Interval,
                Endless::Yields,
            ]));
        }
        let bytes = self.random.of(&[1, 1_000, 100_000]);
        match self.random.below(48) {
            0 | 1 => Action::Yields(self.random.below(20)),
            2..=4 => Action::Sleep(self.time()),
            5 => Action::Interval(1 + self.random.below(4)),
            6 => Action::Block(self.time()),
            7 => Action::Syscall(self.time()),
            8 => Action::Panic,
            9 | 10 => Action::Bomb,
            11 | 12 => match self.awaited_runtime(place) {
                Some(server_on) => Action::Tcp { server_on, bytes },
                None => Action::TcpRefused,
            },
            13 => Action::TcpRefused,
            14 => Action::Udp,
            15 => Action::UnixPair(bytes),
            16 => match self.awaited_runtime(place) {
                Some(server_on) => Action::UnixListener { server_on },
                None => Action::UnixPair(bytes),
            },
            17 | 18 => Action::Pipe(bytes),
            19 => Action::Child(self.random.of(&[
                ChildKind::True,
                ChildKind::Echo,
                ChildKind::Dropped,
                ChildKind::Killed,
                ChildKind::KilledByDrop,
                ChildKind::Output,
            ])),
            20 | 21 => Action::File(bytes),
            22 | 23 => match self.awaited_runtime(place) {
                Some(on) => Action::Messages {
                    on,
                    messages: self.random.below(20) as usize,
                    receives: self.random.below(20) as usize,
                },
                None => Action::Nothing,
            },
            24 => Action::Nested(self.any_runtime()),
            25 if self.random.one_in(2) => {
                let (runtime, end) = self.end_of_any(place.blocked);
                Action::End { runtime, end }
            }
            25 if self.actors.is_some() => Action::EndActors,
            26 => {
                let (runtime, end) = self.end_of_any(place.around);
                Action::EndInDrop { runtime, end }
            }
            27..=31 => Action::SpawnInDrop(self.any_runtime()),
            32..=34 => Action::KeepWaker,
            35 => Action::WakeAll,
            36 => Action::AbortHeld,
            37 => Action::Groups(self.any_runtime()),
            38 => Action::Budget(self.random.below(200)),
            39 => Action::OpenFile(bytes),
            40.. if self.actors.is_some() => Action::Actor {
                to: self.random.below(8) as usize,
                kind: self.actor_kind(),
            },
            _ => Action::Nothing,
        }
    }

    fn actor_kind(&mut self) -> ActorKind {
        match self.random.below(23) {
            0..=3 => ActorKind::Letters(self.random.below(30)),
            4..=6 => ActorKind::Call,
            7 => ActorKind::Kill,
            8 => ActorKind::Cancel,
            9 => ActorKind::Panic,
            10 => ActorKind::Fail,
            11 => ActorKind::Bomb,
            12 => ActorKind::Stop,
            13 | 14 => ActorKind::Send,
            15 => ActorKind::DroppedCall,
            16 | 17 => ActorKind::Link(self.random.one_in(2)),
            18 => ActorKind::TimerSleep(self.time()),
            19..=21 => ActorKind::Commands(self.random.below(6)),
            _ => ActorKind::Sleep,
        }
    }

    fn composite(&mut self, place: Place) -> Option<Action> {
        let inner = place.deeper();
        Some(match self.random.below(25) {
            0 | 1 => Action::Sequence(self.actions(place)),
            2 | 3 => Action::Join(self.actions(place)),
            4 => {
                let mut branches = vec![self.action(inner.ending())];
                let others = 1 + self.random.below(3);
                branches.extend((0..others).map(|_| self.action(inner.endless())));
                if self.random.one_in(2) {
                    branches.reverse();
                }
                Action::Select(branches)
            }
            5 => Action::Timeout(self.time(), self.boxed(inner.endless())),
            6 | 7 => {
                let polls = self.random.below(6);
                Action::PollThenDrop(polls, self.boxed(inner.endless()))
            }
            8..=11 => self.spawn(place)?,
            12 if !place.is_copied => {
                let on = self.awaited_runtime(place)?;
                Action::SpawnMany {
                    on,
                    tasks: self.random.below(40) as usize,
                    body: self.boxed(Place {
                        is_copied: true,
                        ..inner.on(on).ending()
                    }),
                }
            }
            13..=15 => self.blocking(place)?,
            16 | 17 if !place.moves => {
                // Others take the blocked worker over only in a runtime with threads of its own.
                let runtime = &self.runtimes[place.on];
                let is_nested =
                    self.has_many_threads(place.on) && runtime.is_threaded() && !runtime.is_driven;
                Action::InPlace(Box::new(self.sync(inner.blocking(), is_nested)))
            }
            18 | 19 => {
                let on = self.awaited_runtime(place)?;
                let end = self.random.of(&[
                    SetEnd::JoinAll,
                    SetEnd::Shutdown,
                    SetEnd::AbortAll,
                    SetEnd::Drop,
                    SetEnd::Detach,
                ]);
                let inner = match end {
                    SetEnd::JoinAll => inner.ending(),
                    SetEnd::Shutdown => inner.endless(),
                    _ => place.detached(),
                };
                let bodies = self.actions(inner.on(on));
                Action::Set {
                    on,
                    end,
                    has_bombs: self.random.one_in(4),
                    bodies,
                }
            }
            22 => Action::Wander(self.boxed(inner)),
            23 => {
                let on = self.awaited_runtime(place)?;
                let place = Place {
                    moves: true,
                    ..inner
                };
                Action::Move {
                    polls: self.random.below(5),
                    on,
                    body: self.boxed(place),
                }
            }
            20 if self.actors.is_some() => {
                let on = self.any_runtime();
                let body = self.boxed(place.detached().on(on));
                Action::Process { on, body }
            }
            _ => {
                let on = self.awaited_runtime(place)?;
                // The thread stays one of the outer runtime.
                let body = self.boxed(inner);
                Action::Inside { on, body }
            }
        })
    }

    fn spawn(&mut self, place: Place) -> Option<Action> {
        let handling = match self.random.below(8) {
            0..=3 => Handling::Await,
            4 => Handling::Detach,
            5 | 6 => Handling::Abort(self.random.below(10)),
            _ => Handling::Hold,
        };
        let (on, inner) = match handling {
            Handling::Await => (self.awaited_runtime(place)?, place.deeper()),
            Handling::Abort(_) => (self.awaited_runtime(place)?, place.deeper().endless()),
            _ => (self.any_runtime(), place.detached()),
        };
        Some(Action::Spawn {
            on,
            group: self.random.below(4) as usize,
            handling,
            has_bomb: self.random.one_in(8),
            body: self.boxed(inner.on(on)),
        })
    }

    fn blocking(&mut self, place: Place) -> Option<Action> {
        let handling = match self.random.below(6) {
            0..=2 => Handling::Await,
            3 => Handling::Detach,
            4 => Handling::Abort(self.random.below(10)),
            _ => Handling::Hold,
        };
        let on = self.any_runtime();
        let inner = match handling {
            Handling::Detach | Handling::Hold => place.detached(),
            _ => place.deeper(),
        };
        let is_nested = self.has_many_threads(on);
        Some(Action::Blocking {
            on,
            handling,
            has_bomb: self.random.one_in(8),
            body: Box::new(self.sync(inner.on(on).blocking(), is_nested)),
        })
    }

    /// Chooses what a blocked thread does; it awaits others only if `is_nested` (rule 4).
    fn sync(&mut self, place: Place, is_nested: bool) -> Sync {
        let fit = self.runtime_where(|one| one.is_threaded() && one.blocking > 100);
        let kind = self.random.below(14);
        match (kind, fit) {
            (0..=3, Some(on)) if is_nested => Sync::BlockOn {
                on,
                body: self.action(place.deeper().on(on)),
            },
            (4 | 5, Some(on)) if is_nested => Sync::Local {
                on,
                body: self.action(place.deeper().on(on)),
            },
            (6 | 7, Some(on)) if is_nested => Sync::Thread {
                on,
                body: self.action(place.deeper().on(on)),
            },
            (8, _) if is_nested && self.random.one_in(2) => {
                let (runtime, end) = self.end_of_any(place.blocked);
                Sync::End { runtime, end }
            }
            (8, _) if self.actors.is_some() => Sync::EndActors,
            (9, Some(on)) if is_nested => Sync::Channel {
                on,
                messages: self.random.below(20) as usize,
            },
            (12, Some(on)) if is_nested => Sync::Foreign {
                on,
                body: self.action(place.deeper().on(on)),
            },
            (10, _) => Sync::Panic,
            (11, _) => Sync::Bomb,
            _ => Sync::Sleep(self.time()),
        }
    }
}
