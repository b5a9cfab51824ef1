//! Runs a plan.
use crate::{
    checks::{Bomb, Token, fault, planned_panic},
    plan::{
        Action, ActorKind, ActorsPlan, ChildKind, End, Endless, Handling, Plan, RuntimePlan,
        SetEnd, Sync,
    },
};
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt, SinkExt, StreamExt, channel::mpsc, future};
use process_scheduler::{
    Address, Child as ActorChild, Completer, Event, EventsOf, Flow, Inbox, Mailbox, OutputOf,
    Process, Reply, Scheduler, Spawn, Step, StepOf, Strategy, Supervisor, from_fn,
};
use selvedge::{
    Budget, Builder, Handle, JoinHandle, JoinSet, LocalRuntime, Runtime, SchedulingGroup,
    UnhandledPanic, block_in_place, fs,
    net::{
        TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream,
        unix::pipe::{self, pipe},
    },
    park::ThreadPark,
    process::Command,
    spawn_in, syscall,
    task::{consume_budget, yield_if_needed},
    time, yield_now,
};
use std::{
    future::{Future, pending, poll_fn},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    pin::{Pin, pin},
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc as std_mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

type Boxed = Pin<Box<dyn Future<Output = Token> + Send>>;

/// The value that a task or closure returns.
enum Output {
    #[allow(dead_code, reason = "their drops count")]
    Token(Token),
    #[allow(dead_code, reason = "their drops count")]
    Bomb(Bomb),
}

fn output(token: Token, has_bomb: bool) -> Output {
    match has_bomb {
        false => Output::Token(token),
        true => Output::Bomb(Bomb(token)),
    }
}

/// The values that all actions of a round share.
struct Round {
    plans: Vec<RuntimePlan>,
    /// The runtimes that nobody has ended yet. The main thread takes those that are left.
    runtimes: Vec<Mutex<Option<Runtime>>>,
    handles: Vec<Handle>,
    groups: Vec<Vec<SchedulingGroup>>,
    scheduler: Mutex<Option<Scheduler>>,
    actors: Option<Actors>,
    held: Mutex<Vec<JoinHandle<Output>>>,
    wakers: Mutex<Vec<Waker>>,
    folder: PathBuf,
    files: AtomicU32,
}

struct Actors {
    handle: process_scheduler::Handle,
    addresses: Vec<Address<Mail>>,
}

enum Mail {
    Letter(#[allow(dead_code, reason = "its drop counts")] Token),
    Ask(Token, Reply<Token>),
    Fail,
    Panic,
    Stop,
    Sleep,
    Commands(u64),
    Bomb(#[allow(dead_code, reason = "its drop counts")] Bomb),
}

fn micros(time: u64) -> Duration {
    Duration::from_micros(time)
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Runs a closure whose panics are planned or promised: the hook has recorded the others.
fn contained(f: impl FnOnce()) {
    // A payload's drop does not panic.
    drop(catch_unwind(AssertUnwindSafe(f)));
}

/// Runs a round's program until its runtimes have ended, as far as the plan waits for that.
pub fn run(plan: &Plan, folder: PathBuf) {
    let runtimes: Vec<_> = plan.runtimes.iter().map(build).collect();
    let handles: Vec<_> = runtimes.iter().map(|one| one.handle().clone()).collect();
    let groups = plan.runtimes.iter().zip(&handles).map(|(plan, handle)| {
        let group = |n: usize| {
            let group = handle.group(format!("{n}")).shares(50 + 100 * n as u32);
            group.build().expect("a runtime without groups takes one")
        };
        (0..plan.groups).map(group).collect()
    });
    let groups = groups.collect();
    let scheduler = plan.actors.map(|actors| scheduler(actors, &handles[0]));
    let (scheduler, actors) = scheduler.unzip();
    let round = Arc::new(Round {
        plans: plan.runtimes.clone(),
        runtimes: runtimes
            .into_iter()
            .map(|one| Mutex::new(Some(one)))
            .collect(),
        handles,
        groups,
        scheduler: Mutex::new(scheduler),
        actors,
        held: Mutex::default(),
        wakers: Mutex::default(),
        folder,
        files: AtomicU32::new(0),
    });
    for (on, exit) in &plan.exits {
        round.handles[*on].at_exit(round.run(exit).map(drop));
    }
    drive(&round, plan);
    let drop_handles = || {
        let held = std::mem::take(&mut *round.held.lock().unwrap_or_else(PoisonError::into_inner));
        // An output's drop may panic.
        held.into_iter()
            .for_each(|handle| contained(|| drop(handle)));
    };
    if plan.handles_first {
        drop_handles();
    }
    for &(runtime, how) in &plan.ends {
        contained(|| round.end(runtime, how));
    }
    contained(|| round.end_actors());
    drop_handles();
    // Wakers outlive their runtimes.
    round.wake_all();
}

/// Takes a runtime of one thread, for the thread that drives it.
fn take_local(round: &Round, on: usize) -> Option<Runtime> {
    (!round.plans[on].is_threaded()).then(|| take(&round.runtimes[on]))?
}

/// Runs the root in the first runtime. Meanwhile, a thread drives each other runtime of one thread.
fn drive(round: &Arc<Round>, plan: &Plan) {
    let mut drivers = Vec::new();
    for on in 1..round.plans.len() {
        if let Some(runtime) = take_local(round, on) {
            let (stop, stopped) = futures::channel::oneshot::channel::<()>();
            let thread = thread::spawn(move || {
                contained(|| _ = runtime.block_on(stopped));
                runtime
            });
            drivers.push((on, stop, thread));
        }
    }
    let first = take_local(round, 0);
    let block_on = |future: Boxed| {
        contained(|| {
            drop(match &first {
                Some(runtime) => runtime.block_on(future),
                None => round.handles[0].block_on(future),
            });
        });
    };
    let (root, others) = (round.run(&plan.root), round.run_boxed(&plan.others));
    thread::scope(|scope| {
        for other in others {
            scope.spawn(|| block_on(other));
        }
        block_on(root);
    });
    if let Some(runtime) = first {
        *round.runtimes[0].lock().expect("no panic here") = Some(runtime);
    }
    for (on, stop, thread) in drivers {
        drop(stop);
        let runtime = thread.join().expect("its panics are contained");
        *round.runtimes[on].lock().expect("no panic here") = Some(runtime);
    }
}

fn build(plan: &RuntimePlan) -> Runtime {
    let mut builder = match plan.workers {
        0 => Builder::new_current_thread(),
        workers => Builder::new().workers(workers).ring_capacity(plan.ring),
    };
    builder = builder
        .monitor(plan.monitor)
        .on_stall(|_| {})
        .lifo_slot(plan.lifo)
        .blocking_threads(plan.blocking)
        .measure_polls(plan.measures)
        .measure_busy(plan.measures)
        .list_tasks(plan.measures);
    if plan.workers > 0 && plan.sharded {
        builder = builder.sharded(true);
    }
    if plan.prestart {
        builder = builder.prestart();
    }
    if plan.budget_is_small {
        builder = builder.budget(Budget::new(1));
    }
    if let Some(ticks) = plan.event_interval {
        builder = builder.event_interval(ticks);
    }
    if plan.has_hooks {
        let panics = plan.hooks_panic;
        let hook = move || {
            if panics {
                planned_panic();
            }
        };
        builder = builder
            .on_task_spawn(move |_| hook())
            .on_task_end(move |_| hook())
            .on_before_poll(move |_| hook())
            .on_after_poll(move |_| hook())
            .on_thread_park(hook)
            .on_thread_unpark(hook)
            .on_thread_start(hook)
            .on_thread_stop(hook)
            .on_panic(move |_| hook());
    }
    if plan.ends_at_panic {
        builder = builder.unhandled_panic(UnhandledPanic::Shutdown);
    }
    if plan.is_driven && plan.is_threaded() {
        return build_driven(builder, plan);
    }
    let mut builder = selvedge::runtime::Builder::from(builder);
    if plan.enable_io {
        builder.enable_io();
    }
    builder.build().expect("the system has threads")
}

/// Builds a runtime whose workers are driven by threads of the program.
fn build_driven(builder: Builder, plan: &RuntimePlan) -> Runtime {
    let parks = (0..plan.workers).map(|_| ThreadPark::new());
    let (runtime, workers) = builder.build_driven(parks);
    for worker in workers {
        thread::spawn(move || worker.run());
    }
    runtime
}

/// A process that gives commands.
struct Asks(Vec<Token>);

impl Process for Asks {
    type Message = Mail;
    type Cmd = Token;
    type Output = Token;
    type Error = Token;

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match event {
                Event::Message(Mail::Commands(count)) => {
                    (0..count).for_each(|tag| out.command(tag, Token::new()));
                }
                Event::Message(mail) => match take_mail(mail, &mut self.0) {
                    Flow::Continue => {}
                    Flow::Stop => return Step::Done,
                    Flow::Fail(reason) => return Step::Failed(reason),
                },
                Event::YieldComplete { result, .. } => self.0.extend(result.ok()),
                Event::Cancel(_) => return Step::Done,
                _ => {}
            }
        }
        Step::Idle
    }
}

/// Completes a command: at once, in a task, in a closure, by an error, or by the drop of its
/// completer.
fn complete(runtime: &Handle, token: Token, completer: Completer<Token, Token>) {
    match completer.tag() {
        0 => drop(completer.complete(Ok(token))),
        1 => runtime.spawn_detached(async move {
            yield_now().await;
            drop(completer.complete(Ok(token)));
        }),
        2 => drop(runtime.spawn_blocking(move || drop(completer.complete(Err(token))))),
        3 => planned_panic(),
        _ => {}
    }
}

fn scheduler(plan: ActorsPlan, runtime: &Handle) -> (Scheduler, Actors) {
    let scheduler = Scheduler::builder()
        .workers(plan.workers)
        .shutdown_timeout(micros(plan.limit))
        .on_panic(|_, _| {})
        .build();
    let handle = scheduler.handle();
    let mut addresses = Vec::new();
    if plan.is_supervised {
        let mut supervisor = Supervisor::new(Strategy::OneForOne);
        for n in 0..plan.processes {
            let make = || {
                let mut kept = vec![Token::new()];
                from_fn(move |mail: Mail, _: &mut process_scheduler::Cx<'_>| {
                    take_mail(mail, &mut kept)
                })
            };
            let spawn = Spawn::new().name(n.to_string());
            supervisor = supervisor.child(ActorChild::new(make).spawn(spawn).keep_mail(n % 2 == 0));
        }
        supervisor.start(&handle).expect("the scheduler is new");
        addresses.extend((0..plan.processes).filter_map(|n| handle.named(&n.to_string())));
    } else {
        for n in 0..plan.processes {
            let mut kept = vec![Token::new()];
            let spawn = Spawn::new().mailbox(match n {
                0 => Mailbox::Unbounded,
                1 => Mailbox::Bounded(4),
                _ => Mailbox::DropOldest(4),
            });
            let address = match n % 3 {
                2 => {
                    let (runtime, asks) = (runtime.clone(), Asks(kept));
                    handle.spawn_process(
                        asks,
                        spawn.handler(move |token, completer| {
                            complete(&runtime, token, completer);
                        }),
                    )
                }
                0 => handle.spawn_with(spawn, move |mail, _: &mut _| take_mail(mail, &mut kept)),
                _ => handle.spawn_async(|mut inbox: Inbox<Mail>| async move {
                    while let Some(mail) = inbox.receive().await {
                        match take_mail(mail, &mut kept) {
                            Flow::Continue => {}
                            flow => return flow,
                        }
                    }
                    Flow::Stop
                }),
            };
            addresses.push(address.expect("the scheduler is new"));
        }
    }
    (scheduler, Actors { handle, addresses })
}

/// Handles a message, and keeps some tokens in the process.
fn take_mail(mail: Mail, kept: &mut Vec<Token>) -> Flow {
    match mail {
        Mail::Letter(token) => {
            kept.push(token);
            if kept.len() > 5 {
                kept.clear();
            }
        }
        Mail::Ask(token, reply) => drop(reply.send(token)),
        Mail::Fail => return Flow::fail("planned"),
        Mail::Panic => planned_panic(),
        Mail::Stop => return Flow::Stop,
        Mail::Sleep => thread::sleep(micros(300)),
        // Only the process below gives commands.
        Mail::Commands(_) => {}
        Mail::Bomb(bomb) => drop(bomb),
    }
    Flow::Continue
}

impl Round {
    fn end(&self, runtime: usize, how: End) {
        let Some(runtime) = take(&self.runtimes[runtime]) else {
            return;
        };
        match how {
            End::Drop => drop(runtime),
            End::Background => runtime.shutdown_background(),
            End::Timeout(limit) => drop(runtime.shutdown_timeout(micros(limit))),
        }
    }

    fn end_actors(&self) {
        drop(take(&self.scheduler));
    }

    fn wake_all(&self) {
        let wakers = std::mem::take(&mut *self.wakers.lock().expect("no panic here"));
        wakers.into_iter().for_each(Waker::wake);
    }

    fn abort_held(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().for_each(JoinHandle::abort);
    }

    fn keep_handle(&self, handle: JoinHandle<Output>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(handle);
    }

    fn run_boxed(self: &Arc<Self>, bodies: &[Action]) -> Vec<Boxed> {
        bodies.iter().map(|body| self.run(body)).collect()
    }

    /// Returns the future of an action. The future has a token from the start, and returns it.
    fn run(self: &Arc<Self>, action: &Action) -> Boxed {
        let (round, action) = (self.clone(), action.clone());
        let token = Token::new();
        Box::pin(async move {
            match action {
                Action::Sequence(bodies) => {
                    for body in &bodies {
                        drop(round.run(body).await);
                    }
                }
                Action::Join(bodies) => drop(future::join_all(round.run_boxed(&bodies)).await),
                Action::Select(bodies) => {
                    drop(future::select_all(round.run_boxed(&bodies)).await);
                }
                Action::Timeout(limit, body) => {
                    drop(time::timeout(micros(limit), round.run(&body)).await);
                }
                Action::PollThenDrop(polls, body) => {
                    let mut body = round.run(&body);
                    drop(poll_some(polls, &mut body).await);
                }
                Action::Spawn {
                    on,
                    group,
                    handling,
                    has_bomb,
                    body,
                } => {
                    let body = round.run(&body);
                    let body = async move { output(body.await, has_bomb) };
                    let handle = match round.groups[on].get(group) {
                        None => round.handles[on].spawn(body),
                        Some(group) => match spawn_in(group, body) {
                            Ok(handle) => handle,
                            Err(_) => return token,
                        },
                    };
                    round.handle(handle, handling).await;
                }
                Action::SpawnMany { on, tasks, body } => {
                    let bodies: Vec<_> = (0..tasks).map(|_| round.run(&body)).collect();
                    let mut handles = Vec::new();
                    round.handles[on].spawn_many(bodies, &mut handles);
                    for handle in handles {
                        drop(handle.await);
                    }
                }
                Action::Blocking {
                    on,
                    handling,
                    has_bomb,
                    body,
                } => {
                    let (inner, token) = (round.clone(), Token::new());
                    let closure = move || {
                        inner.block(&body);
                        output(token, has_bomb)
                    };
                    let handle = round.handles[on].spawn_blocking(closure);
                    round.handle(handle, handling).await;
                }
                Action::InPlace(body) => block_in_place(|| round.block(&body)),
                Action::Set {
                    on,
                    end,
                    has_bombs,
                    bodies,
                } => {
                    let mut set = JoinSet::new();
                    for (n, body) in round.run_boxed(&bodies).into_iter().enumerate() {
                        let body = body.map(move |token| output(token, has_bombs && n % 2 == 0));
                        set.spawn_on(body, &round.handles[on]);
                    }
                    end_set(set, end).await;
                }
                Action::Process { on, body } => round.spawn_process(on, &body),
                Action::Inside { on, body } => {
                    let (handle, body) = (round.handles[on].clone(), round.run(&body));
                    drop(Inside { handle, body }.await);
                }
                Action::Wander(body) => {
                    let mut body = round.run(&body);
                    let mut turns = round.handles.iter().cycle();
                    let poll = poll_fn(|cx| {
                        let _entered = turns.next().expect("a round has runtimes").enter();
                        body.poll_unpin(cx)
                    });
                    drop(poll.await);
                }
                Action::Move { polls, on, body } => {
                    let mut body = round.run(&body);
                    if poll_some(polls, &mut body).await.is_none() {
                        drop(round.handles[on].spawn(body).await);
                    }
                }
                Action::Nested(on) => drop(round.handles[on].block_on(async { Token::new() })),
                Action::Endless(endless) => return endless.run(&round).await,
                Action::End { runtime, end } => round.end(runtime, end),
                Action::EndActors => round.end_actors(),
                Action::EndInDrop { runtime, end } => {
                    let ending = round.clone();
                    let _guard = InDrop(Some(move || ending.end(runtime, end)));
                    yield_now().await;
                }
                Action::SpawnInDrop(on) => {
                    let (handle, task) = (round.handles[on].clone(), Token::new());
                    let _guard = InDrop(Some(move || {
                        handle.spawn_detached(async move {
                            yield_now().await;
                            drop(task);
                        });
                    }));
                    yield_now().await;
                }
                Action::WakeAll => round.wake_all(),
                Action::AbortHeld => round.abort_held(),
                Action::Actor { to, kind } => round.actor(to, kind).await,
                leaf => {
                    // An error means that a runtime has ended.
                    drop(round.leaf(leaf).await);
                }
            }
            token
        })
    }

    async fn handle(&self, mut handle: JoinHandle<Output>, handling: Handling) {
        match handling {
            Handling::Await => drop(handle.await),
            Handling::Detach => drop(handle),
            Handling::Abort(yields) => {
                for _ in 0..yields {
                    yield_now().await;
                }
                handle.abort();
                drop((&mut handle).await);
            }
            Handling::Hold => self.keep_handle(handle),
        }
    }

    fn spawn_process(self: &Arc<Self>, on: usize, body: &Action) {
        let Some(actors) = &self.actors else { return };
        let (handle, body) = (self.handles[on].clone(), self.run(body));
        let begin = |mut inbox: Inbox<Mail>| async move {
            let inside = Inside { handle, body };
            // A cancel is a request, and the body does not hear it: so it ends the body.
            drop(future::select(inside, pin!(inbox.receive())).await);
            Flow::Stop
        };
        // An error means that the scheduler has ended.
        drop(actors.handle.spawn_async(begin));
    }

    async fn actor(&self, to: usize, kind: ActorKind) {
        let Some(actors) = &self.actors else { return };
        let Some(address) = actors.addresses.get(to % actors.addresses.len().max(1)) else {
            return;
        };
        let send = |mail| drop(address.try_send(mail));
        match kind {
            ActorKind::Letters(count) => {
                for n in 0..count {
                    match n % 3 {
                        0 => drop(
                            actors
                                .handle
                                .try_send(address.pid(), Mail::Letter(Token::new())),
                        ),
                        _ => send(Mail::Letter(Token::new())),
                    }
                }
            }
            ActorKind::Call => {
                let ask = |reply| Mail::Ask(Token::new(), reply);
                drop(address.call(ask, micros(20_000)).await);
            }
            ActorKind::Send => {
                let sending = address.send(Mail::Letter(Token::new()));
                drop(time::timeout(micros(2_000), sending).await);
            }
            ActorKind::DroppedCall => {
                let ask = |reply| Mail::Ask(Token::new(), reply);
                drop(address.call(ask, micros(20_000)).now_or_never());
            }
            ActorKind::Link(is_link) => {
                let next = &actors.addresses[(to + 1) % actors.addresses.len()];
                match is_link {
                    true => actors.handle.link(address.pid(), next.pid()),
                    false => actors.handle.monitor(address.pid(), next.pid()),
                }
            }
            ActorKind::TimerSleep(time) => actors.handle.sleep(micros(time)).await,
            ActorKind::Kill => drop(actors.handle.kill(address.pid())),
            ActorKind::Cancel => drop(actors.handle.cancel(address.pid())),
            ActorKind::Panic => send(Mail::Panic),
            ActorKind::Fail => send(Mail::Fail),
            // A message that nobody takes: the drop of the error must not panic in this task.
            ActorKind::Bomb => contained(|| send(Mail::Bomb(Bomb(Token::new())))),
            ActorKind::Stop => send(Mail::Stop),
            ActorKind::Sleep => send(Mail::Sleep),
            ActorKind::Commands(count) => send(Mail::Commands(count)),
        }
    }

    async fn leaf(&self, action: Action) -> io::Result<()> {
        match action {
            Action::Yields(count) => {
                for _ in 0..count {
                    yield_now().await;
                }
            }
            Action::Sleep(time) => time::sleep(micros(time)).await,
            Action::Interval(ticks) => {
                let mut interval = time::interval(micros(200));
                for _ in 0..ticks {
                    interval.tick().await;
                }
            }
            Action::Block(time) => thread::sleep(micros(time)),
            Action::Syscall(time) => syscall(|| thread::sleep(micros(time))),
            Action::Panic => planned_panic(),
            Action::Bomb => {
                let _bomb = Bomb(Token::new());
                yield_now().await;
            }
            Action::Tcp { server_on, bytes } => self.tcp(server_on, bytes).await?,
            Action::TcpRefused => {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?;
                let client = TcpStream::connect(address).await?;
                drop(listener);
                drop(client);
                drop(TcpStream::connect(address).await);
            }
            Action::Udp => {
                let (one, other) = (
                    UdpSocket::bind("127.0.0.1:0").await?,
                    UdpSocket::bind("127.0.0.1:0").await?,
                );
                one.send_to(b"message", other.local_addr()?).await?;
                let mut to = [0; 16];
                // The system may lose a message.
                drop(time::timeout(micros(5_000), other.recv_from(&mut to)).await);
            }
            Action::UnixPair(bytes) => {
                let (one, other) = UnixStream::pair()?;
                transfer(one, other, bytes).await?;
            }
            Action::UnixListener { server_on } => {
                let path = self.file();
                let listener = UnixListener::bind(&path)?;
                let server = async move { listener.accept().await.map(drop) };
                let server = self.handles[server_on].spawn(server);
                let client = UnixStream::connect(&path).await;
                std::fs::remove_file(&path)?;
                drop(client?);
                drop(server.await);
            }
            Action::Pipe(bytes) => {
                let (sender, receiver) = pipe()?;
                transfer(sender, receiver, bytes).await?;
            }
            Action::Child(kind) => child(kind).await?,
            Action::File(bytes) => {
                let path = self.file();
                let content = pattern(bytes);
                let written = fs::write(&path, &content).await;
                let read = fs::read(&path).await;
                std::fs::remove_file(&path)?;
                if written.is_ok() && read? != content {
                    fault("a file has other bytes than were written".into());
                }
            }
            Action::OpenFile(bytes) => {
                let path = self.file();
                let mut file = fs::File::create(&path).await?;
                file.write_all(&pattern(bytes)).await?;
                drop(file);
                std::fs::remove_file(&path)?;
            }
            Action::KeepWaker => {
                poll_fn(|cx| {
                    let mut wakers = self.wakers.lock().expect("no panic here");
                    wakers.push(cx.waker().clone());
                    Poll::Ready(())
                })
                .await;
                yield_now().await;
            }
            Action::Groups(on) => self.change_groups(on),
            Action::Budget(operations) => {
                for _ in 0..operations {
                    consume_budget().await;
                }
                yield_if_needed().await;
            }
            Action::Messages {
                on,
                messages,
                receives,
            } => {
                let (mut sender, mut receiver) = mpsc::channel(4);
                let task = self.handles[on].spawn(async move {
                    for _ in 0..messages {
                        if sender.send(Token::new()).await.is_err() {
                            return;
                        }
                    }
                });
                for _ in 0..receives {
                    drop(receiver.next().await);
                }
                drop(receiver);
                drop(task.await);
            }
            _ => {}
        }
        Ok(())
    }

    fn change_groups(&self, on: usize) {
        let handle = &self.handles[on];
        let mut builder = handle.group("passing").shares(10);
        if let Some(parent) = self.groups[on].first() {
            builder = builder.parent(parent);
        }
        // An error means that there are too many groups, or that the parent is gone.
        if let Ok(group) = builder.build() {
            let token = Token::new();
            drop(spawn_in(&group, async move { drop(token) }));
            _ = group.set_shares(700);
            _ = group.destroy();
        }
        handle.preempt_overdue_groups();
    }

    async fn tcp(&self, server_on: usize, bytes: usize) -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = self.handles[server_on].spawn(async move {
            let (stream, _) = listener.accept().await?;
            let (mut reader, mut writer) = stream.into_split();
            futures::io::copy(&mut reader, &mut writer).await?;
            writer.close().await
        });
        let (mut reader, mut writer) = TcpStream::connect(address).await?.into_split();
        let sends = async {
            writer.write_all(&pattern(bytes)).await?;
            writer.close().await
        };
        let mut back = Vec::new();
        let (sent, received) = future::join(sends, reader.read_to_end(&mut back)).await;
        let served = server.await;
        if sent.is_ok()
            && received.is_ok()
            && matches!(served, Ok(Ok(())))
            && back != pattern(bytes)
        {
            fault("an echo has other bytes than were sent".into());
        }
        Ok(())
    }

    fn file(&self) -> PathBuf {
        let number = self.files.fetch_add(1, Relaxed);
        self.folder.join(number.to_string())
    }

    /// Does what a thread does that may block.
    fn block(self: &Arc<Self>, body: &Sync) {
        match body {
            Sync::Sleep(time) => thread::sleep(micros(*time)),
            Sync::Panic => planned_panic(),
            Sync::Bomb => drop(Bomb(Token::new())),
            Sync::BlockOn { on, body } => drop(self.handles[*on].block_on(self.run(body))),
            Sync::Local { on, body } => {
                let (handle, body) = (self.handles[*on].clone(), self.run(body));
                let inside = Inside { handle, body };
                let waits = |token: Token| async move {
                    pending::<()>().await;
                    drop(token);
                };
                let runtime = LocalRuntime::new().expect("the system has memory");
                drop(runtime.spawn_local(waits(Token::new())));
                drop(runtime.block_on(runtime.spawn_local(inside)));
            }
            Sync::Thread { on, body } => {
                let (handle, body) = (self.handles[*on].clone(), self.run(body));
                let thread = thread::spawn(move || contained(|| drop(handle.block_on(body))));
                thread.join().expect("its panics are contained");
            }
            Sync::Foreign { on, body } => {
                let (handle, body) = (self.handles[*on].clone(), self.run(body));
                drop(futures::executor::block_on(Inside { handle, body }));
            }
            Sync::End { runtime, end } => self.end(*runtime, *end),
            Sync::EndActors => self.end_actors(),
            Sync::Channel { on, messages } => {
                let (sender, receiver) = std_mpsc::channel();
                let messages = *messages;
                let send = move || {
                    for _ in 0..messages {
                        drop(sender.send(Token::new()));
                    }
                };
                drop(self.handles[*on].spawn_blocking(send));
                while receiver.recv().is_ok() {}
            }
        }
    }
}

/// Calls a closure in its drop.
struct InDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for InDrop<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

/// Polls a future up to that number of times.
async fn poll_some(mut polls: u64, body: &mut Boxed) -> Option<Token> {
    poll_fn(|cx| {
        if polls == 0 {
            return Poll::Ready(None);
        }
        polls -= 1;
        match body.poll_unpin(cx) {
            Poll::Ready(token) => Poll::Ready(Some(token)),
            Poll::Pending => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
}

async fn end_set(mut set: JoinSet<Output>, end: SetEnd) {
    match end {
        SetEnd::JoinAll => while set.join_next().await.is_some() {},
        SetEnd::Shutdown => set.shutdown().await,
        SetEnd::AbortAll => set.abort_all(),
        SetEnd::Drop => {}
        SetEnd::Detach => set.detach_all(),
    }
}

/// Polls a future inside a runtime.
struct Inside {
    handle: Handle,
    body: Boxed,
}

impl Future for Inside {
    type Output = Token;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Token> {
        let one = &mut *self;
        let _entered = one.handle.enter();
        one.body.as_mut().poll(cx)
    }
}

impl Endless {
    async fn run(self, round: &Round) -> Token {
        // An error means that a runtime has ended.
        drop(self.try_run(round).await);
        pending().await
    }

    async fn try_run(self, round: &Round) -> io::Result<()> {
        match self {
            Self::Pending => {}
            Self::Sleep => time::sleep(Duration::from_secs(3600)).await,
            Self::Accept => drop(TcpListener::bind("127.0.0.1:0").await?.accept().await?),
            Self::Read => {
                let (mut one, _other) = UnixStream::pair()?;
                one.read_to_end(&mut Vec::new()).await?;
            }
            Self::UdpReceive => {
                let socket = UdpSocket::bind("127.0.0.1:0").await?;
                socket.recv(&mut [0; 8]).await?;
            }
            Self::PipeWrite => {
                let (mut sender, _receiver): (pipe::Sender, pipe::Receiver) = pipe()?;
                sender.write_all(&pattern(1 << 20)).await?;
            }
            Self::Child => {
                let mut command = Command::new("cat");
                command
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .kill_on_drop(true);
                let mut child = command.spawn()?;
                let _stdin = child.stdin.take();
                child.wait().await?;
            }
            Self::Interval => {
                let mut interval = time::interval(Duration::from_millis(1));
                loop {
                    interval.tick().await;
                }
            }
            Self::Yields => {
                let folder = round.folder.as_os_str();
                while !folder.is_empty() {
                    yield_now().await;
                }
            }
        }
        Ok(())
    }
}

async fn child(kind: ChildKind) -> io::Result<()> {
    let mut cat = Command::new("cat");
    cat.stdin(Stdio::piped()).stdout(Stdio::piped());
    match kind {
        ChildKind::True => drop(Command::new("true").status().await?),
        ChildKind::Output => drop(Command::new("echo").arg("text").output().await?),
        ChildKind::Echo => {
            let mut child = cat.spawn()?;
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
            if let (Some(stdin), Some(stdout)) = (stdin, stdout) {
                transfer(stdin, stdout, 100_000).await?;
            }
            child.wait().await?;
        }
        // The end of its input ends it.
        ChildKind::Dropped => drop(cat.spawn()?),
        ChildKind::Killed => {
            let mut child = cat.spawn()?;
            child.kill().await?;
        }
        ChildKind::KilledByDrop => {
            let mut child = cat.kill_on_drop(true).spawn()?;
            let stdin = child.stdin.take();
            drop(child);
            drop(stdin);
        }
    }
    Ok(())
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
}

/// Sends bytes from one end to the other, and closes the sending end.
async fn transfer(
    mut from: impl futures::AsyncWrite + Unpin,
    mut to: impl futures::AsyncRead + Unpin,
    bytes: usize,
) -> io::Result<()> {
    let sends = async {
        from.write_all(&pattern(bytes)).await?;
        from.close().await?;
        drop(from);
        Ok::<_, io::Error>(())
    };
    let mut back = Vec::new();
    let (sent, received) = future::join(sends, to.read_to_end(&mut back)).await;
    sent?;
    received?;
    if back != pattern(bytes) {
        fault("other bytes arrived than were sent".into());
    }
    Ok(())
}
