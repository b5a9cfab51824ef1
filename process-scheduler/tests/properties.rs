//! Two threads send messages to a supervised process, make it fail, kill it and cancel it, in any
//! mix. Meanwhile its supervisor may restart it. Each message is delivered once, returned to its
//! sender, or counted as a dead letter. Messages of one sender arrive in order. Each incarnation,
//! which is one start of the process, is closed once.
use process_scheduler::{
    Address, Backoff, Child, Event, EventsOf, ExitReason, Mailbox, NoCommand, OutputOf, Policy,
    Process, Scheduler, Spawn, Step, StepOf, Strategy, Supervisor,
};
use proptest::{
    collection::vec,
    prelude::{Just, ProptestConfig, prop_assert_eq, prop_oneof, proptest},
    strategy::Strategy as AnyStrategy,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    SendByPid,
    /// A message with which the process fails.
    Fail,
    Kill,
    Cancel,
}

#[derive(Debug)]
struct Letter {
    sender: usize,
    turn: usize,
    fails: bool,
}

#[derive(Default)]
struct Seen {
    delivered: AtomicU64,
    made: AtomicU64,
    closed: AtomicU64,
    /// For each sender, the lowest turn that its next message may have.
    turns: Mutex<[usize; 2]>,
}

/// An incarnation. It adds its start, its messages and its close to `seen`.
struct Counted {
    seen: Arc<Seen>,
    is_closed: bool,
}

impl Counted {
    fn new(seen: &Arc<Seen>) -> Self {
        seen.made.fetch_add(1, SeqCst);
        Self {
            seen: seen.clone(),
            is_closed: false,
        }
    }
}

impl Process for Counted {
    type Message = Letter;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        assert!(!self.is_closed, "a step after the close");
        for event in events {
            match event {
                Event::Message(letter) => {
                    self.seen.delivered.fetch_add(1, SeqCst);
                    let next = &mut self.seen.turns.lock().unwrap()[letter.sender];
                    assert!(letter.turn >= *next, "once, and in order");
                    *next = letter.turn + 1;
                    if letter.fails {
                        return Step::Failed(ExitReason::failed("as asked"));
                    }
                }
                Event::Cancel(_) => return Step::Done,
                _ => {}
            }
        }
        Step::Idle
    }

    fn close(&mut self) {
        assert!(!self.is_closed, "closed twice");
        self.is_closed = true;
        self.seen.closed.fetch_add(1, SeqCst);
    }
}

fn op() -> impl AnyStrategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Send),
        4 => Just(Op::SendByPid),
        1 => Just(Op::Fail),
        1 => Just(Op::Kill),
        1 => Just(Op::Cancel),
    ]
}

/// Performs the operations. Returns the number of messages that it tried to send, and the number of
/// those that were handed back.
fn act(scheduler: &Scheduler, to: &Address<Letter>, sender: usize, ops: &[Op]) -> (u64, u64) {
    let (mut sent, mut returned) = (0, 0);
    for (turn, op) in ops.iter().enumerate() {
        let letter = |fails| Letter {
            sender,
            turn,
            fails,
        };
        let result = match op {
            Op::Send => to.try_send(letter(false)),
            Op::SendByPid => scheduler.try_send(to.pid(), letter(false)),
            Op::Fail => to.try_send(letter(true)),
            Op::Kill => {
                scheduler.kill(to.pid());
                continue;
            }
            Op::Cancel => {
                scheduler.cancel(to.pid());
                continue;
            }
        };
        sent += 1;
        if let Err(refused) = result {
            let letter = refused.into_inner();
            assert_eq!((letter.sender, letter.turn), (sender, turn));
            returned += 1;
        }
    }
    (sent, returned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_message_has_one_end(
        ops in [vec(op(), 0..60), vec(op(), 0..60)],
        mailbox in prop_oneof![
            Just(Mailbox::Unbounded),
            (0_usize..4).prop_map(Mailbox::Bounded),
            (0_usize..4).prop_map(Mailbox::DropOldest),
        ],
        policy in prop_oneof![
            Just(Policy::Permanent), Just(Policy::Transient), Just(Policy::Temporary),
        ],
        keep_mail: bool,
        messages in 1_u32..4,
    ) {
        let seen = Arc::new(Seen::default());
        let scheduler = Scheduler::builder().workers(2).messages(messages).build();
        let makes = seen.clone();
        let spawn = Spawn::new().name("child").mailbox(mailbox);
        let child = Child::new(move || Counted::new(&makes)).spawn(spawn);
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(usize::MAX, Duration::from_secs(1))
            .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
            .child(child.policy(policy).keep_mail(keep_mail));
        supervisor.start(&scheduler).unwrap();
        let to = scheduler.named::<Letter>("child").unwrap();
        let mut sums = (0, 0);
        thread::scope(|scope| {
            let (scheduler, to) = (&scheduler, &to);
            let each = ops.iter().enumerate();
            let threads: Vec<_> = each
                .map(|(sender, ops)| scope.spawn(move || act(scheduler, to, sender, ops)))
                .collect();
            for thread in threads {
                let (sent, returned) = thread.join().unwrap();
                sums = (sums.0 + sent, sums.1 + returned);
            }
        });
        let (sent, returned) = sums;
        let handle = scheduler.handle();
        let report = scheduler.shutdown_timeout(Duration::from_secs(600));
        prop_assert_eq!((report.forced, report.stuck), (0, 0));
        let metrics = handle.metrics();
        let delivered = seen.delivered.load(SeqCst);
        prop_assert_eq!(metrics.panics, 0);
        prop_assert_eq!(metrics.processes, 0);
        prop_assert_eq!(metrics.delivered, delivered);
        prop_assert_eq!(sent, delivered + returned + metrics.dead_letters);
        prop_assert_eq!(seen.made.load(SeqCst), seen.closed.load(SeqCst));
    }
}
