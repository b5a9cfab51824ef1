//! Tests of the spans and events that a subscriber gets, under the names that tokio's console uses.
use selvedge_executor::{Builder, LocalRuntime, Runtime, TaskBuilder, spawn, yield_now};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Poll, Waker},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Span as the subscriber has recorded it.
#[derive(Clone, Default, Debug)]
struct Told {
    name: &'static str,
    target: &'static str,
    fields: Fields,
    entered: u32,
    exited: u32,
    closed: bool,
    root: bool,
    /// Operations on the task's wakers, in order.
    wakers: Vec<String>,
}

#[derive(Clone, Default, Debug)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }
}

/// The spans that the subscriber keeps.
struct Recorder {
    next: AtomicU64,
    spans: Mutex<BTreeMap<u64, (Told, u32)>>,
    /// The targets of the events.
    targets: Mutex<BTreeSet<&'static str>>,
}

impl Recorder {
    fn spans(&self) -> MutexGuard<'_, BTreeMap<u64, (Told, u32)>> {
        self.spans
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Subscriber that keeps all spans. The whole process has one subscriber: a subscriber of the
/// test's thread would not get the spans of the workers' threads.
struct Shared(Arc<Recorder>);

impl Subscriber for Shared {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.next.fetch_add(1, Relaxed);
        let mut told = Told {
            name: span.metadata().name(),
            target: span.metadata().target(),
            root: span.is_root(),
            ..Told::default()
        };
        span.record(&mut told.fields);
        self.0.spans().insert(id, (told, 1));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some((told, _)) = self.0.spans().get_mut(&span.into_u64()) {
            values.record(&mut told.fields);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut targets = self.0.targets.lock().unwrap();
        targets.insert(event.metadata().target());
        drop(targets);
        let mut fields = Fields::default();
        event.record(&mut fields);
        if event.metadata().target() != "tokio::task::waker" {
            return;
        }
        let id: u64 = fields.0["task.id"].parse().unwrap();
        if let Some((told, _)) = self.0.spans().get_mut(&id) {
            assert!(!told.closed || fields.0["op"] == "waker.drop");
            told.wakers.push(fields.0["op"].clone());
        }
    }

    fn enter(&self, span: &Id) {
        if let Some((told, _)) = self.0.spans().get_mut(&span.into_u64()) {
            told.entered += 1;
        }
    }

    fn exit(&self, span: &Id) {
        if let Some((told, _)) = self.0.spans().get_mut(&span.into_u64()) {
            told.exited += 1;
        }
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some((_, count)) = self.0.spans().get_mut(&span.into_u64()) {
            *count += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut spans = self.0.spans();
        let Some((told, count)) = spans.get_mut(&span.into_u64()) else {
            return false;
        };
        *count -= 1;
        told.closed = *count == 0;
        told.closed
    }
}

fn recorder() -> &'static Recorder {
    static RECORDER: OnceLock<Arc<Recorder>> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let recorder = Arc::new(Recorder {
            next: AtomicU64::new(1),
            spans: Mutex::default(),
            targets: Mutex::default(),
        });
        tracing::subscriber::set_global_default(Shared(recorder.clone())).unwrap();
        recorder
    })
}

/// Returns the span of the task with this name.
fn told(name: &str) -> Told {
    let spans = recorder().spans();
    let mut named = spans
        .values()
        .filter(|(told, _)| told.fields.0.get("task.name").is_some_and(|n| n == name));
    let told = named.next().expect("there is a span").0.clone();
    assert!(named.next().is_none(), "one span a task");
    told
}

fn runtime() -> Runtime {
    recorder();
    Builder::new().workers(2).build().unwrap()
}

fn named(name: &'static str) -> TaskBuilder {
    TaskBuilder::new().name(name)
}

#[test]
fn task_span_has_name_place_and_kind_and_one_entry_a_poll() {
    let runtime = runtime();
    let mut polls = 0;
    let line = line!() + 1;
    let task = named("polled").spawn_on(
        poll_fn(move |cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls < 4 {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        }),
        runtime.handle(),
    );
    let id = task.id();
    runtime.block_on(task).unwrap();
    drop(runtime);

    let told = told("polled");
    assert_eq!((told.name, told.target), ("runtime.spawn", "tokio::task"));
    let field = |name: &str| told.fields.0[name].clone();
    assert_eq!(field("kind"), "task");
    assert_eq!(field("task.id"), id.to_string());
    assert_eq!(field("loc.file"), file!());
    let place: u32 = field("loc.line").parse().unwrap();
    assert!((line..line + 3).contains(&place), "{place}, not {line}");
    assert!(field("loc.col").parse::<u32>().is_ok());
    assert!(told.root && told.closed, "{told:?}");
    assert_eq!(told.entered, told.exited);
    assert!(told.entered >= 4, "{told:?}"); // The future's drop may be a further entry.
    assert_eq!(told.wakers, ["waker.wake_by_ref"; 4]);
}

#[test]
fn waker_operations_are_events_of_the_tasks_span() {
    let runtime = runtime();
    let slot: Arc<Mutex<Option<Waker>>> = Arc::default();
    let ours = slot.clone();
    let mut first = true;
    let task = named("woken").spawn_on(
        poll_fn(move |cx| {
            if !std::mem::take(&mut first) {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            assert!(waker.will_wake(cx.waker()));
            *ours.lock().unwrap() = Some(waker.clone());
            Poll::Pending
        }),
        runtime.handle(),
    );
    let waker = loop {
        match slot.lock().unwrap().take() {
            Some(waker) => break waker,
            None => std::thread::yield_now(),
        }
    };
    waker.wake();
    runtime.block_on(task).unwrap();
    drop(runtime);
    let wakers = told("woken").wakers;
    assert_eq!(wakers[..2], ["waker.clone"; 2]);
    let mut rest = wakers[2..].to_vec();
    rest.sort();
    assert_eq!(rest, ["waker.drop", "waker.wake"]);
}

#[test]
fn plain_spawn_has_a_span_with_the_callers_place() {
    let runtime = runtime();
    let line = line!();
    let task = async { spawn(yield_now()).await };
    runtime.block_on(task).unwrap();
    drop(runtime);
    let spans = recorder().spans();
    let here = |told: &Told| {
        told.fields
            .0
            .get("loc.file")
            .is_some_and(|at| at == file!())
            && told.fields.0["loc.line"] == (line + 1).to_string()
    };
    let told: Vec<_> = spans.values().filter(|(told, _)| here(told)).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].0.closed && told[0].0.fields.0["task.name"].is_empty());
}

#[test]
fn closures_and_local_tasks_have_kinds_of_their_own() {
    let runtime = runtime();
    let entered = runtime.enter();
    let closure = named("closure").spawn_blocking(|| 1);
    drop(entered);
    assert_eq!(runtime.block_on(closure).unwrap(), 1);
    LocalRuntime::new().unwrap().block_on(async {
        named("local").spawn_local(async {}).await.unwrap();
    });
    drop(runtime);
    let (closure, local) = (told("closure"), told("local"));
    assert_eq!(closure.target, "tokio::task::blocking");
    assert_eq!(closure.fields.0["kind"], "blocking");
    assert_eq!(local.fields.0["kind"], "local");
    assert!(closure.closed && local.closed);
}

#[test]
fn the_span_of_a_task_that_never_ran_is_closed_too() {
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let task = named("cancelled").spawn_on(std::future::pending::<()>(), &handle);
    drop(runtime);
    let late = named("refused").spawn_on(async {}, &handle);
    let other = self::runtime();
    assert!(other.block_on(task).unwrap_err().is_cancelled());
    assert!(other.block_on(late).unwrap_err().is_cancelled());
    assert!(told("cancelled").closed && told("refused").closed);
}

/// Fails if a user's filter of stall reports, by their target, finds none.
#[test]
fn stall_is_an_event_under_the_target_that_users_filter() {
    let runtime = runtime();
    let reported = || {
        recorder()
            .targets
            .lock()
            .unwrap()
            .contains("selvedge::stall")
    };
    while !reported() {
        let blocks = || std::thread::sleep(std::time::Duration::from_millis(50));
        runtime
            .block_on(runtime.spawn(async move { blocks() }))
            .unwrap();
    }
}
