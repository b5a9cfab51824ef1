//! `Stalls`: keeps the newest stalls of a runtime, for its page.
use crate::json::Json;
use selvedge::{Stall, sync::Notify};
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// The number of stalls that are kept.
const KEPT: usize = 64;

/// The newest stalls of a runtime: 64 of them, whether or not somebody looks at the page.
///
/// A runtime's hook for stalls is set before the runtime is built, and the page is served
/// afterwards. So a program makes this value first. A clone shares the stalls.
///
/// ```
/// use selvedge_top::{Builder, Stalls};
///
/// let stalls = Stalls::new();
/// let runtime = selvedge::Builder::new().on_stall(stalls.hook()).build()?;
/// let page = Builder::new().runtime(runtime.handle()).stalls(&stalls).serve("127.0.0.1:0")?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Stalls(Arc<Shared>);

#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    changed: Notify,
}

#[derive(Default)]
struct Kept {
    /// The number of stalls so far. A stall's number is the count before it.
    count: u64,
    stalls: VecDeque<Reported>,
}

/// A stall, and when it was reported.
#[derive(Clone)]
struct Reported {
    number: u64,
    at: Instant,
    stall: Stall,
}

impl Stalls {
    /// Makes a value without stalls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the hook for [`selvedge::Builder::on_stall`].
    ///
    /// With this hook the monitor writes no reports to standard error. For both, call this hook in
    /// one of your own:
    ///
    /// ```
    /// let stalls = selvedge_top::Stalls::new();
    /// let keep = stalls.hook();
    /// let builder = selvedge::Builder::new().on_stall(move |stall| {
    ///     eprintln!("{stall}");
    ///     keep(stall);
    /// });
    /// # drop(builder);
    /// ```
    pub fn hook(&self) -> impl Fn(&Stall) + Send + Sync + use<> {
        let this = self.clone();
        move |stall| this.add(stall)
    }

    fn add(&self, stall: &Stall) {
        let stall = stall.clone();
        let mut kept = self.lock();
        let number = kept.count;
        kept.count += 1;
        let oldest = match kept.stalls.len() < KEPT {
            true => None,
            false => kept.stalls.pop_front(),
        };
        kept.stalls.push_back(Reported {
            number,
            at: Instant::now(),
            stall,
        });
        drop(kept);
        drop(oldest);
        self.0.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of stalls so far.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Waits for the next stall. May miss one that comes before the first poll.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Returns the stall of this number, with its stack, as text. Looks the names of the stack up,
    /// which may take a second.
    pub(crate) fn text(&self, number: u64) -> Option<String> {
        let kept = self.lock();
        let found = kept.stalls.iter().find(|kept| kept.number == number)?;
        let stall = found.stall.clone();
        drop(kept);
        Some(stall.to_string())
    }

    /// Returns the stalls as JSON, the newest first.
    pub(crate) fn json(&self) -> String {
        let kept = self.lock();
        let (count, stalls) = (kept.count, kept.stalls.clone());
        drop(kept);
        let mut json = Json::new();
        json.object(|json| {
            json.key("count").number(count);
            json.key("stalls")
                .list(stalls.iter().rev(), |json, reported| {
                    json.object(|json| reported.write(json));
                });
        });
        json.into_string()
    }
}

impl Reported {
    fn write(&self, json: &mut Json) {
        let Self { number, at, stall } = self;
        json.key("number").number(*number);
        json.key("ago_ms").number(at.elapsed().as_millis() as u64);
        json.key("lasted_us")
            .number(stall.lasted.as_micros() as u64);
        json.key("task")
            .text_or_null(stall.task.map(|task| format!("{task:#x}")));
        json.key("name").text_or_null(stall.name.as_ref());
        json.key("place").text_or_null(stall.location);
        json.key("group").text_or_null(stall.group.as_ref());
        json.key("worker").number(stall.worker as u64);
        json.key("cause").text(&stall.cause);
        json.key("waiting").number(stall.waiting);
        json.key("held_back").number(stall.held_back);
    }
}

impl fmt::Debug for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stalls")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}
