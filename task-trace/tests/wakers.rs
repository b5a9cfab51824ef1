//! Traced futures, polled by hand, under a subscriber that records all calls.
use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};
use task_trace::{TaskKind, enabled, trace};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::with_default,
};

#[derive(Clone, Default)]
struct Recorder {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
    /// Whether the subscriber panics at each event.
    panics: Arc<AtomicBool>,
}

impl Recorder {
    fn line(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !field.name().starts_with("loc.") && field.name() != "size.bytes" {
            self.0 += &format!(" {}={value:?}", field.name());
        }
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        self.line(format!("span{}", fields.0));
        Id::from_u64(7 + self.spans.fetch_add(1, SeqCst))
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.line(format!("record{}", fields.0));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        assert!(!self.panics.load(SeqCst), "the subscriber panics");
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.line(format!("event{}", fields.0));
    }
    fn enter(&self, _: &Id) {
        self.line("enter".into());
    }
    fn exit(&self, _: &Id) {
        self.line("exit".into());
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn span_and_waker_events_are_recorded_in_order() {
    let recorder = Recorder::default();
    let count = Arc::new(Count::default());
    with_default(recorder.clone(), || {
        assert!(enabled());
        let mut kept = None;
        let future = std::future::poll_fn(|cx| {
            kept = Some(cx.waker().clone());
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let (span, future) = trace(TaskKind::Task, Some("one"), Location::caller(), future);
        span.record_id(&"0x1");
        let waker = Waker::from(count.clone());
        {
            let mut future = pin!(future);
            assert!(
                future
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        kept.unwrap().wake();
    });
    assert_eq!(
        recorder.take(),
        [
            "span kind=task task.name=one",
            "record task.id=0x1",
            "enter",
            "event op=\"waker.clone\" task.id=7",
            "event op=\"waker.wake_by_ref\" task.id=7",
            "exit",
            "enter", // The future's drop.
            "exit",
            "event op=\"waker.wake\" task.id=7",
        ]
    );
    assert_eq!(count.0.load(SeqCst), 2);
    assert_eq!(Arc::strong_count(&count), 1, "all wakers are gone");
}

#[test]
fn traced_wakers_are_equal_exactly_if_the_tasks_wakers_are() {
    with_default(Recorder::default(), || {
        let mut wakers = Vec::new();
        let future = std::future::poll_fn(|cx| {
            wakers.push(cx.waker().clone());
            Poll::<()>::Pending
        });
        let (span, future) = trace(TaskKind::Local, None, Location::caller(), future);
        span.record_id(&1);
        let own = [Arc::new(Count::default()), Arc::new(Count::default())];
        {
            let mut future = pin!(future);
            for which in [0, 0, 1] {
                let waker = Waker::from(own[which].clone());
                assert!(
                    future
                        .as_mut()
                        .poll(&mut Context::from_waker(&waker))
                        .is_pending()
                );
            }
        }
        assert!(wakers[0].will_wake(&wakers[1]));
        assert!(!wakers[1].will_wake(&wakers[2]));
        wakers.into_iter().for_each(Waker::wake);
        assert_eq!(own.each_ref().map(|count| count.0.load(SeqCst)), [2, 1]);
    });
}

#[test]
fn panicking_subscriber_does_not_stop_the_wake() {
    let recorder = Recorder::default();
    let count = Arc::new(Count::default());
    with_default(recorder.clone(), || {
        let mut kept = None;
        let future = std::future::poll_fn(|cx| {
            kept = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        let (span, future) = trace(TaskKind::Task, None, Location::caller(), future);
        span.record_id(&1);
        {
            let mut future = pin!(future);
            let waker = Waker::from(count.clone());
            assert!(
                future
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        recorder.panics.store(true, SeqCst);
        let waker = kept.unwrap();
        let used = catch_unwind(AssertUnwindSafe(|| {
            drop(waker.clone());
            waker.wake_by_ref();
            waker.wake();
        }));
        assert!(used.is_ok());
    });
    assert_eq!(count.0.load(SeqCst), 2);
    assert_eq!(Arc::strong_count(&count), 1);
}
