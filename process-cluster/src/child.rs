//! A supervisor's child that lives on another node.
//!
//! The supervisor's child is a process of its own node, the *proxy*, which spawns the process
//! elsewhere, monitors it, and ends for the reason for which that process ends. So the supervisor's
//! strategy, policy, intensity and backoff hold for it as for any child.
//!
//! | state | the proxy |
//! |---|---|
//! | *waits* | waits until the named node is reached |
//! | *spawning* | has asked the node for the process |
//! | *up* | ends with the process |
//! | *over* | has ended |
//!
//! 1. The process is linked to the proxy. So it ends if the proxy is killed, or if its node does
//!    not reach the proxy's any more.
//! 2. A proxy that is cancelled cancels the process, and ends when that has. One that ends before
//!    the process ends that, and the relations to it: the next incarnation has the proxy's pid, and
//!    a late exit would end it.
use crate::{
    cluster::Cluster,
    peer::Peers,
    spawn_on::{SpawnOn, SpawnOnError, Spawning, dispose},
    wire::Message,
};
use process_scheduler::{
    Child, Event, EventsOf, ExitReason, Handle, NoCommand, OutputOf, Pid, Process, Step, StepOf,
};
use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

/// The node of a supervisor's child: see [`Cluster::child`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Home {
    /// The node of this name. While it is not reached, the child waits for it. The supervisor
    /// counts that as one restart, however long it takes.
    Node(String),
    /// The node to which a key belongs: see [`Cluster::place`]. If that node is lost, the restart
    /// is on another one.
    Key(Vec<u8>),
}

impl Home {
    /// Returns the home on the node of this name.
    pub fn node(name: impl Into<String>) -> Self {
        Self::Node(name.into())
    }

    /// Returns the home on the node of this key.
    pub fn key(key: impl AsRef<[u8]>) -> Self {
        Self::Key(key.as_ref().to_vec())
    }
}

impl Cluster {
    /// Returns a child for a [`Supervisor`](process_scheduler::Supervisor) of this node, which
    /// lives at its home: a process by the behaviour of this tag, as
    /// [`spawn_on`](Self::spawn_on) spawns it. `started` is called with its pid at each start,
    /// unless the process has ended before that.
    ///
    /// The end of the process is the end of the child, and so is the loss of its node, with
    /// [`ExitReason::NodeDown`]. The strategy then decides. A spawn that is refused is an end, too.
    /// A restart is a new process with another pid.
    ///
    /// When the supervisor's node and the home lose each other, the process at the home ends: it is
    /// linked to the supervisor's side. The home may notice the loss later than the supervisor. So
    /// for up to a lease of the home, a child with the home of a key may run twice: the old
    /// process, and the one of the restart elsewhere. A process that traps exits must end by
    /// itself, when it gets an exit of the process that it is linked to.
    ///
    /// ```
    /// # use process_cluster::{Cluster, Home, MemoryNetwork};
    /// # use process_scheduler::{Scheduler, Spawn, Strategy, Supervisor, from_fn};
    /// # let network = MemoryNetwork::new();
    /// # let [here, there] = [(); 2].map(|()| Scheduler::new());
    /// # let a = Cluster::builder("a").join(&here, network.engine("a")).unwrap();
    /// # let b = Cluster::builder("b")
    /// #     .behaviour("adder/1", |mut sum: u64| {
    /// #         (from_fn(move |n: u64, _| sum += n), Spawn::new())
    /// #     })
    /// #     .allow_spawn(|node, tag| node == "a" && tag == "adder/1")
    /// #     .join(&there, network.engine("b"))
    /// #     .unwrap();
    /// let (sender, seen) = std::sync::mpsc::channel();
    /// let started = move |pid| sender.send(pid).unwrap();
    /// let supervisor = Supervisor::new(Strategy::OneForOne)
    ///     .child(a.child(Home::node("b"), "adder/1", 7_u64, started))
    ///     .start(&here)
    ///     .unwrap();
    /// let adder = seen.recv().unwrap();
    /// assert_eq!(adder.node(), a.nodes()[0].number);
    /// # here.cancel(supervisor);
    /// # here.wait(supervisor);
    /// ```
    pub fn child<A>(
        &self,
        home: Home,
        tag: impl Into<String>,
        arguments: A,
        started: impl Fn(Pid) + Send + Sync + 'static,
    ) -> Child
    where
        A: Message + Clone + Sync,
    {
        let plan = Arc::new(Plan {
            peers: Arc::downgrade(self.peers()),
            home,
            tag: tag.into(),
            arguments,
            started: Box::new(started),
        });
        Child::new(move || Proxy {
            plan: plan.clone(),
            own: None,
            state: ProxyState::Waits,
            exits: Vec::new(),
            is_cancelled: false,
        })
    }
}

struct Plan<A> {
    peers: Weak<Peers>,
    home: Home,
    tag: String,
    arguments: A,
    started: Box<dyn Fn(Pid) + Send + Sync>,
}

struct Proxy<A> {
    plan: Arc<Plan<A>>,
    /// The pid, once a process is up.
    own: Option<Pid>,
    state: ProxyState<A>,
    /// The exits that have come. That of the process may come before a step sees the pid.
    exits: Vec<(Pid, ExitReason)>,
    is_cancelled: bool,
}

enum ProxyState<A> {
    Waits,
    Spawning(Spawning<A>),
    Up(Pid),
    Over,
}

impl<A: Message + Clone + Sync> Proxy<A> {
    fn fail<T>(why: impl fmt::Display) -> Result<T, ExitReason> {
        Err(ExitReason::failed(why))
    }

    /// Begins the spawn, if the node is known.
    fn begin(&self, own: Pid, cx: &Context<'_>) -> Result<Option<Spawning<A>>, ExitReason> {
        let plan = &*self.plan;
        let Some(peers) = plan.peers.upgrade().filter(|peers| !peers.is_over()) else {
            return Self::fail("the node has left the cluster");
        };
        let node = match &plan.home {
            Home::Key(key) => peers.place(key),
            Home::Node(name) => match peers.poll_named(name, cx.waker()) {
                Poll::Ready(node) => node,
                Poll::Pending => return Ok(None),
            },
        };
        let spawn = SpawnOn::new(peers, node, plan.tag.clone(), plan.arguments.clone());
        Ok(Some(spawn.linked_to(own).monitored_by(own).into_future()))
    }

    /// Runs until the proxy waits for something, or is over. The error is the end of the process,
    /// or that of an attempt to spawn it.
    fn run(&mut self, handle: &Handle, own: Pid, cx: &mut Context<'_>) -> Result<(), ExitReason> {
        loop {
            match &mut self.state {
                ProxyState::Waits | ProxyState::Spawning(_) if self.is_cancelled => {
                    self.state = ProxyState::Over;
                }
                ProxyState::Waits => match self.begin(own, cx)? {
                    Some(spawning) => self.state = ProxyState::Spawning(spawning),
                    None => return Ok(()),
                },
                ProxyState::Spawning(spawning) => match Pin::new(spawning).poll(cx) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Ok(pid)) => {
                        self.own = Some(own);
                        self.state = ProxyState::Up(pid);
                        (self.plan.started)(pid);
                    }
                    // It may be reached again.
                    Poll::Ready(Err(SpawnOnError::NodeDown(_) | SpawnOnError::InDoubt(_))) => {
                        self.state = ProxyState::Over;
                        return Err(ExitReason::NodeDown);
                    }
                    Poll::Ready(Err(refused)) => return Self::fail(refused),
                },
                ProxyState::Up(pid) => {
                    let ended = self.exits.drain(..).find(|(ended, _)| ended == pid);
                    if let Some((_, reason)) = ended {
                        self.state = ProxyState::Over;
                        return Err(reason);
                    }
                    if self.is_cancelled {
                        handle.cancel(*pid);
                    }
                    return Ok(());
                }
                ProxyState::Over => return Ok(()),
            }
        }
    }
}

impl<A: Message + Clone + Sync> Process for Proxy<A> {
    type Message = NoCommand;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match event {
                Event::Exit { pid, reason } => self.exits.push((pid, reason)),
                Event::Cancel(_) => self.is_cancelled = true,
                _ => {}
            }
        }
        let (handle, own) = (out.handle().clone(), out.pid());
        match self.run(&handle, own, &mut Context::from_waker(out.waker())) {
            Err(ExitReason::Normal) => Step::Done,
            Err(reason) => Step::Failed(reason),
            Ok(()) if matches!(self.state, ProxyState::Over) => Step::Done,
            Ok(()) => Step::Blocked,
        }
    }

    fn close(&mut self) {
        // Rule 2.
        let state = std::mem::replace(&mut self.state, ProxyState::Over);
        let peers = self.plan.peers.upgrade();
        if let (ProxyState::Up(pid), Some(own), Some(peers)) = (state, self.own, peers) {
            dispose(&peers, pid, Some(own), Some(own));
        }
    }
}
