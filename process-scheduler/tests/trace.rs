//! The spans of processes, as a `tracing` subscriber sees them.
use process_scheduler::{
    Backoff, Child, EventsOf, ExitReason, Flow, NoCommand, OutputOf, Process, Scheduler, Spawn,
    SpawnError, Step, StepOf, Strategy, Supervisor, from_fn,
};
use std::{
    collections::HashMap,
    fmt,
    panic::panic_any,
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// The fields of a span or an event.
#[derive(Clone, Default)]
struct Fields(HashMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Fields {
    fn is(&self, name: &str, value: &str) -> bool {
        self.0.get(name).is_some_and(|found| found == value)
    }
}

/// The record of one span.
#[derive(Clone, Default)]
struct Span {
    fields: Fields,
    entered: u32,
    exited: u32,
    events: Vec<Fields>,
    closed: bool,
}

static SPANS: Mutex<Vec<Span>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The names of processes for which the subscriber panics: each time that it enters the span of the
/// first, leaves that of the second, or gets an event of the third; and when it leaves the span of
/// the fourth for the second time, which is after the first step.
const FRAGILE: [&str; 4] = [
    "panics in enter",
    "panics in exit",
    "panics in event",
    "panics in second exit",
];

fn change(id: u64, f: impl FnOnce(&mut Span)) {
    let mut spans = SPANS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = usize::try_from(id).unwrap();
    if spans.len() <= at {
        spans.resize_with(at + 1, Span::default);
    }
    f(&mut spans[at]);
}

struct Recorder;

fn record() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Recorder).unwrap());
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "process_scheduler"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = NEXT.fetch_add(1, SeqCst);
        let mut fields = Fields::default();
        span.record(&mut fields);
        change(id, |span| span.fields = fields);
        Id::from_u64(id)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let parent = event.parent().expect("an event has its process's span");
        change(parent.into_u64(), |span| {
            assert!(!span.fields.is("process.name", FRAGILE[2]));
            span.events.push(fields);
        });
    }
    fn enter(&self, id: &Id) {
        change(id.into_u64(), |span| {
            span.entered += 1;
            assert!(!span.fields.is("process.name", FRAGILE[0]));
        });
    }
    fn exit(&self, id: &Id) {
        change(id.into_u64(), |span| {
            span.exited += 1;
            assert!(!span.fields.is("process.name", FRAGILE[1]));
            assert!(span.exited != 2 || !span.fields.is("process.name", FRAGILE[3]));
        });
    }
    fn try_close(&self, id: Id) -> bool {
        change(id.into_u64(), |span| span.closed = true);
        true
    }
}

/// Returns the only span of a pid.
fn span_of(pid: &str) -> Span {
    let spans = SPANS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut of = spans
        .iter()
        .filter(|span| span.fields.is("process.pid", pid));
    let found = of.next().expect("a process has a span").clone();
    assert!(of.next().is_none(), "a process has one span");
    found
}

/// Returns the reasons of the ends that a span's events report.
fn exits(span: &Span) -> Vec<&str> {
    let exits = span.events.iter().filter_map(|event| event.0.get("exit"));
    exits.map(String::as_str).collect()
}

/// Fails if a span lacks the place of the spawn, is not entered for each step, or is not closed by
/// the end of its process; if a restart makes another span; or if the panic of a subscriber ends a
/// worker.
#[test]
fn process_has_a_span_with_its_place_and_steps() {
    record();
    let scheduler = Scheduler::builder().workers(1).build();
    let spawn = Spawn::new().name("clerk");
    let (line, clerk) = (line!(), scheduler.spawn_with(spawn, |_: u8, _| ()).unwrap());
    clerk.try_send(1).unwrap();
    clerk.try_send(2).unwrap();
    let pid = clerk.pid();
    scheduler.cancel(pid);
    scheduler.wait(pid);

    let child_line = line!() + 1;
    let child = Child::new(|| from_fn(|n: u8, _| assert_ne!(n, 1, "as asked")))
        .spawn(Spawn::new().name("child"));
    let supervisor =
        Supervisor::new(Strategy::OneForOne).intensity(0, std::time::Duration::from_secs(1));
    let supervisor = supervisor.child(child).start(&scheduler).unwrap();
    let failing = scheduler.named::<u8>("child").unwrap();
    failing.try_send(1).unwrap();
    let failing = failing.pid();
    scheduler.wait(failing);
    scheduler.wait(supervisor);

    let spawn = Spawn::new().name(FRAGILE[2]);
    let next = scheduler
        .spawn_with(spawn, |n: process_scheduler::Reply<u8>, _| {
            n.send(7).unwrap()
        })
        .unwrap();
    let answer = next
        .call(|reply| reply, std::time::Duration::from_secs(600))
        .wait();
    assert_eq!(answer, Ok(7));
    scheduler.shutdown();

    let span = span_of(&pid.to_string());
    assert!(span.fields.is("process.name", "clerk"));
    assert!(span.fields.is("loc.file", file!()));
    assert!(span.fields.is("loc.line", &line.to_string()));
    assert!(span.closed && span.entered == span.exited);
    let steps = span
        .events
        .iter()
        .filter(|event| event.0.contains_key("step"));
    // The span is entered for `init`, each step, and `close`.
    assert_eq!(u32::try_from(steps.count()).unwrap() + 2, span.entered);
    assert!(span.events.iter().any(|event| event.is("step", "Done")));
    assert_eq!(exits(&span), ["cancelled"]);

    let span = span_of(&failing.to_string());
    assert!(span.fields.is("loc.line", &child_line.to_string()));
    assert!(span.events.iter().any(|event| event.is("step", "Panicked")));
    assert_eq!(exits(&span).len(), 1);
    assert!(span.closed);
}

/// A supervised child fails twice: by a message, and when its restart makes it. After the second
/// failure it is not restarted.
///
/// Fails if an end of an incarnation has no event or count, or more than one.
#[test]
fn each_end_of_an_incarnation_is_reported_once() {
    record();
    let scheduler = Scheduler::builder().workers(1).node(8).build();
    let is_made = AtomicBool::new(false);
    let child = Child::new(move || {
        if is_made.swap(true, SeqCst) {
            panic!("in a maker");
        }
        from_fn(|n: u8, _| match n {
            0 => Flow::Continue,
            _ => panic!("in a step"),
        })
    });
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
        .intensity(1, Duration::from_secs(600))
        .child(child.spawn(Spawn::new().name("fails twice")));
    let supervisor = supervisor.start(&scheduler).unwrap();
    let child = scheduler.named::<u8>("fails twice").unwrap();
    child.try_send(1).unwrap();
    scheduler.wait(child.pid());
    scheduler.wait(supervisor);
    let metrics = scheduler.metrics();
    scheduler.shutdown();
    let span = span_of(&child.pid().to_string());
    assert_eq!(
        exits(&span),
        ["panicked: in a step", "panicked: in a maker"]
    );
    // The third end is that of the supervisor.
    assert_eq!((metrics.exited, metrics.abnormal), (3, 3));
}

/// Reports its close.
struct Closes(mpsc::Sender<()>);

impl Process for Closes {
    type Message = NoCommand;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        Step::Done
    }

    fn close(&mut self) {
        self.0.send(()).unwrap();
        // A second panic while this panic unwinds would end the program.
        panic!("in a close");
    }
}

/// Fails if the panic of a subscriber at the begin or the end of a close skips the close, repeats
/// it, or comes while the thread panics already.
#[test]
fn close_runs_once_if_the_subscriber_panics() {
    record();
    // The pids differ from those of the other tests.
    let scheduler = Scheduler::builder().workers(1).node(9).build();
    for name in &FRAGILE[..2] {
        let (sender, closed) = mpsc::channel();
        let spawned = scheduler.spawn_process(Closes(sender), Spawn::new().name(*name));
        assert!(matches!(spawned, Err(SpawnError::Panicked(_))));
        assert_eq!(closed.iter().count(), 1, "{name}");
    }
}

static UPGRADES_DROPPED: AtomicU64 = AtomicU64::new(0);

/// Panics in its drop if it is an upgrade. The first process upgrades itself, or panics with a
/// value whose drop panics.
struct Upgrades {
    is_upgrade: bool,
    panics: bool,
}

impl Process for Upgrades {
    type Message = NoCommand;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        let upgrade = Upgrades {
            is_upgrade: true,
            panics: false,
        };
        if self.panics {
            panic_any(upgrade)
        }
        Step::Upgrade(Box::new(upgrade))
    }
}

impl Drop for Upgrades {
    fn drop(&mut self) {
        if self.is_upgrade {
            UPGRADES_DROPPED.fetch_add(1, SeqCst);
            panic!("in a drop");
        }
    }
}

/// The subscriber panics at the end of a step that returns a value, or panics with a value, whose
/// drop panics too.
///
/// Fails if that value is leaked, or is dropped while the subscriber's panic unwinds.
#[test]
fn value_of_a_step_is_dropped_guarded_if_the_subscriber_panics() {
    record();
    for panics in [false, true] {
        let scheduler = Scheduler::builder().workers(1).node(10).build();
        let process = Upgrades {
            is_upgrade: false,
            panics,
        };
        let process = scheduler.spawn_process(process, Spawn::new().name(FRAGILE[3]));
        let reason = scheduler.wait(process.unwrap().pid());
        // The process may have ended before the wait.
        assert!(matches!(
            reason,
            ExitReason::Panicked(_) | ExitReason::NoProcess
        ));
        assert_eq!(scheduler.metrics().abnormal, 1);
        assert_eq!(scheduler.shutdown().stuck, 0);
    }
    assert_eq!(UPGRADES_DROPPED.load(SeqCst), 2);
}
