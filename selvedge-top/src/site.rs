//! The state of a page, which its connections share.
#[cfg(feature = "processes")]
use crate::processes::Scheduler;
use crate::{
    Stalls,
    access::Access,
    json::Json,
    pace::{Made, Paced},
    tasks::{Table, Waits},
    tick,
};
use selvedge::{
    Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The number of pages that may be open.
const PAGES: usize = 16;

/// The number of large answers that may be under way, such as dumps and recordings.
const LARGE: usize = 2;

/// The number of stacks that may be looked up at a time.
const STACKS: usize = 8;

/// The time after which the table of tasks is dropped, if nobody has looked at it.
const UNUSED: Duration = Duration::from_secs(15);

pub(crate) struct Site {
    handle: Handle,
    access: Access,
    stalls: Option<Stalls>,
    #[cfg(feature = "processes")]
    schedulers: Vec<Scheduler>,
    begun: Instant,
    program: String,
    tick: Paced<String>,
    table: Paced<Table>,
    tables: Mutex<TableUse>,
    pages: Arc<Semaphore>,
    large: Arc<Semaphore>,
    stacks: Arc<Semaphore>,
}

/// The use of the table of tasks.
#[derive(Default)]
struct TableUse {
    /// The last time. `None` if there is no task that drops the table.
    last: Option<Instant>,
    waits: Option<Arc<Waits>>,
}

impl Site {
    pub(crate) fn new(
        handle: Handle,
        access: Access,
        stalls: Option<Stalls>,
        #[cfg(feature = "processes")] schedulers: Vec<(String, process_scheduler::Handle)>,
    ) -> Arc<Self> {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(|path| path.file_stem());
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Arc::new(Self {
            handle,
            access,
            stalls,
            #[cfg(feature = "processes")]
            schedulers: named(schedulers),
            begun: Instant::now(),
            program: program.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            tick: Paced::cheap(),
            table: Paced::new(),
            tables: Mutex::default(),
            pages: semaphore(PAGES),
            large: semaphore(LARGE),
            stacks: semaphore(STACKS),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) fn stalls(&self) -> Option<&Stalls> {
        self.stalls.as_ref()
    }

    #[cfg(feature = "processes")]
    pub(crate) fn schedulers(&self) -> &[Scheduler] {
        &self.schedulers
    }

    pub(crate) fn runtime_name(&self) -> &str {
        self.handle.name().unwrap_or("main")
    }

    /// Returns a permit for an open page, unless there are too many.
    pub(crate) fn page(&self) -> Option<OwnedSemaphorePermit> {
        self.pages.clone().try_acquire_owned().ok()
    }

    /// Returns a permit for a large answer, unless there are too many.
    pub(crate) fn large(&self) -> Option<OwnedSemaphorePermit> {
        self.large.clone().try_acquire_owned().ok()
    }

    /// Returns a permit for a look at a stack, unless there are too many.
    pub(crate) fn stack(&self) -> Option<OwnedSemaphorePermit> {
        self.stacks.clone().try_acquire_owned().ok()
    }

    /// Returns the state of the runtime as JSON, at most a second old.
    pub(crate) fn tick(&self) -> Arc<String> {
        self.tick.get(|| self.make_tick()).value
    }

    fn make_tick(&self) -> String {
        let mut json = Json::new();
        json.object(|json| {
            // The page's clock is not this one: the page divides by the difference of two of these.
            json.key("at_us")
                .number(self.begun.elapsed().as_micros() as u64);
            json.key("program").text(&self.program);
            json.key("process").number(std::process::id().into());
            json.key("name").text(self.runtime_name());
            json.key("keeps_stalls").boolean(self.stalls.is_some());
            json.key("recording");
            #[cfg(feature = "recorder")]
            json.boolean(self.handle.trace().is_on());
            #[cfg(not(feature = "recorder"))]
            json.raw("null");
            tick::write(json, &self.handle.snapshot());
            #[cfg(feature = "processes")]
            json.key("schedulers")
                .list(&self.schedulers, |json, scheduler| scheduler.write(json));
            #[cfg(not(feature = "processes"))]
            json.key("schedulers").raw("[]");
        });
        json.into_string()
    }

    /// Makes the next page's tick a new one.
    #[cfg(feature = "recorder")]
    pub(crate) fn forget_tick(&self) {
        self.tick.clear();
    }

    /// Returns the table of tasks, unless the runtime does not list its tasks.
    pub(crate) fn table(self: &Arc<Self>) -> Option<(Made<Table>, Option<Arc<Waits>>)> {
        let waits = self.use_tables(|tables| tables.waits.clone());
        // A runtime that does not list its tasks has no table at all.
        let mut is_listed = true;
        let table = self.table.get(|| {
            let tasks = self.handle.tasks();
            is_listed = tasks.is_some();
            Table::new(tasks.unwrap_or_default())
        });
        if !is_listed {
            self.table.clear();
            return None;
        }
        Some((table, waits))
    }

    /// Notes a use of the tables, and sees to it that they are dropped later.
    fn use_tables<T>(self: &Arc<Self>, with: impl FnOnce(&mut TableUse) -> T) -> T {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.last.replace(Instant::now()).is_none() {
            selvedge::spawn_detached(drop_unused_table(self.clone()));
        }
        with(&mut tables)
    }

    /// Finds a task of the table by the text of its id.
    pub(crate) fn find(self: &Arc<Self>, id: &str) -> Option<selvedge::Id> {
        let (table, _) = self.table()?;
        table.value.find(id)
    }

    /// Keeps what the tasks wait for, for the table.
    pub(crate) fn keep_waits(self: &Arc<Self>, waits: Waits) {
        let old = self.use_tables(|tables| tables.waits.replace(Arc::new(waits)));
        drop(old);
        // A table from before the dump may have other counts of polls.
        self.table.clear();
    }
}

/// Makes the schedulers, each under a name of its own.
#[cfg(feature = "processes")]
fn named(schedulers: Vec<(String, process_scheduler::Handle)>) -> Vec<Scheduler> {
    let names = crate::names::distinct(schedulers.iter().map(|(name, _)| &**name));
    let handles = schedulers.into_iter().map(|(_, handle)| handle);
    names.into_iter().zip(handles).map(Scheduler::new).collect()
}

/// Drops the table of tasks once nobody has looked at it for a while.
async fn drop_unused_table(site: Arc<Site>) {
    loop {
        time::sleep(UNUSED).await;
        let mut tables = site.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.last.is_none_or(|last| last.elapsed() >= UNUSED) {
            tables.last = None;
            let waits = tables.waits.take();
            drop(tables);
            drop(waits);
            site.table.clear();
            return;
        }
    }
}
