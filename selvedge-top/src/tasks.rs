//! The table of tasks: one look at the list, which many requests search and sort.
use crate::{
    json::Json,
    pace::{self, Made},
    query,
};
use selvedge::{DumpOutcome, Id, TaskDump, TaskSnapshot, TaskState};
use std::{
    cmp::Ordering,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The most rows of an answer.
const MOST_ROWS: usize = 500;

/// The characters of a search that count, and the words. Each word is compared with each task, on
/// the thread that serves the page.
const MOST_SEARCHED: usize = 200;
const MOST_WORDS: usize = 8;

/// The orders that a table keeps, for requests of further rows.
const KEPT_ORDERS: usize = 4;

/// The tasks at one moment.
pub(crate) struct Table {
    tasks: Vec<TaskSnapshot>,
    orders: Mutex<Vec<(Choice, Arc<[u32]>)>>,
}

/// The tasks that a request chooses, and their order.
#[derive(Clone, PartialEq, Eq)]
struct Choice {
    /// The words that a task's row contains, in lower case.
    words: Vec<String>,
    sort: Sort,
    descending: bool,
    /// The waits that the words were compared with.
    waits: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Since,
    Polls,
    Name,
    Place,
    Group,
    State,
}

/// The rows that a request asks for.
pub(crate) struct Wanted {
    choice: Choice,
    from: usize,
    count: usize,
}

/// The operations that tasks waited for at the last dump.
pub(crate) struct Waits {
    at: Instant,
    of: HashMap<Id, Wait>,
}

struct Wait {
    /// The polls of the task at the dump. If it was polled since, it waits for something else.
    polls: u64,
    what: String,
}

impl Waits {
    /// Reads a dump that has just ended. Looks at most one place of each task up.
    pub(crate) fn of(dump: &[TaskDump]) -> Self {
        let at = Instant::now();
        let what = |dump: &TaskDump| {
            let wait = dump.waits.first()?;
            // If the operation has no name, there is the place where a function awaits it. The
            // first function is the operation's own.
            let what = wait.what.clone().unwrap_or_else(|| {
                let frame = wait.frames.get(1).or(wait.frames.first());
                let frame = frame.map(ToString::to_string).unwrap_or_default();
                match frame.rsplit(" at ").next() {
                    None | Some("") => "an operation".to_owned(),
                    Some(place) => place.to_owned(),
                }
            });
            let went_on = dump.outcome == DumpOutcome::Progressed;
            let polls = dump.task.polls + u64::from(went_on);
            Some((dump.task.id, Wait { polls, what }))
        };
        Self {
            at,
            of: dump.iter().filter_map(what).collect(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }

    /// Returns the operation that a task waits for, if it was known at the dump and the task has
    /// not been polled since. `seen` is the latest moment of the look at the task.
    ///
    /// A new task may have the id of one that has ended, and as many polls. Its last poll ended
    /// after the dump.
    fn get(&self, task: &TaskSnapshot, seen: Instant) -> Option<&str> {
        let wait = self.of.get(&task.id)?;
        let is_older = seen
            .checked_sub(task.since)
            .is_none_or(|polled| polled <= self.at);
        let is_same = wait.polls == task.polls && task.state == TaskState::Waiting;
        (is_same && is_older).then_some(&*wait.what)
    }
}

impl Wanted {
    pub(crate) fn parse(text: &str) -> Self {
        let value = |name: &str| query::value(text, name).unwrap_or_default();
        let number = |name: &str| {
            let number = value(name).parse::<u64>().ok();
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let search: String = value("search").chars().take(MOST_SEARCHED).collect();
        let search = search.to_lowercase();
        let mut words: Vec<String> = Vec::new();
        for word in search.split_whitespace() {
            if words.len() < MOST_WORDS && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
        Self {
            choice: Choice {
                words,
                sort: match &*value("sort") {
                    "polls" => Sort::Polls,
                    "name" => Sort::Name,
                    "place" => Sort::Place,
                    "group" => Sort::Group,
                    "state" => Sort::State,
                    _ => Sort::Since,
                },
                descending: value("order") != "up",
                waits: None,
            },
            from: number("from").unwrap_or(0),
            count: number("count").unwrap_or(100).min(MOST_ROWS),
        }
    }
}

impl Table {
    pub(crate) fn new(tasks: Vec<TaskSnapshot>) -> Self {
        Self {
            tasks,
            orders: Mutex::default(),
        }
    }

    /// Finds a task by the text of its id.
    pub(crate) fn find(&self, id: &str) -> Option<Id> {
        let id = id.strip_prefix("0x").unwrap_or(id);
        let number = u64::from_str_radix(id, 16).ok()?;
        let found = self.tasks.iter();
        let mut found = found.filter(|task| u64::from(task.id) == number);
        found.next().map(|task| task.id)
    }

    /// Returns the positions of the chosen tasks, in their order.
    fn order(&self, choice: &Choice, waits: Option<(&Waits, Instant)>) -> Arc<[u32]> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, order)) = orders.iter().find(|(known, _)| known == choice) {
            return order.clone();
        }
        let matching = (0_u32..).zip(&self.tasks).filter(|(_, task)| {
            let wait = waits.and_then(|(waits, seen)| waits.get(task, seen));
            choice.words.iter().all(|word| matches(task, wait, word))
        });
        let mut order: Vec<u32> = matching.map(|(at, _)| at).collect();
        let task = |at: &u32| &self.tasks[*at as usize];
        order.sort_unstable_by(|a, b| {
            let ordering = compare(choice.sort, task(a), task(b));
            let ordering = match choice.descending {
                true => ordering.reverse(),
                false => ordering,
            };
            ordering.then(a.cmp(b))
        });
        let order: Arc<[u32]> = order.into();
        if orders.len() == KEPT_ORDERS {
            orders.remove(0);
        }
        orders.push((choice.clone(), order.clone()));
        order
    }
}

fn compare(sort: Sort, a: &TaskSnapshot, b: &TaskSnapshot) -> Ordering {
    let place = |task: &TaskSnapshot| {
        let at = task.location;
        (at.file(), at.line(), at.column())
    };
    match sort {
        Sort::Since => a.since.cmp(&b.since),
        Sort::Polls => a.polls.cmp(&b.polls),
        Sort::Name => a.name.cmp(&b.name),
        Sort::Place => place(a).cmp(&place(b)),
        Sort::Group => a.group.cmp(&b.group),
        Sort::State => (a.state as u8).cmp(&(b.state as u8)),
    }
}

/// Returns whether the row of a task contains a word, which is in lower case.
fn matches(task: &TaskSnapshot, wait: Option<&str>, word: &str) -> bool {
    let state = match task.state {
        TaskState::Waiting => "waiting",
        TaskState::Runnable => "runnable",
        TaskState::Executing => "executing",
        _ => "",
    };
    let texts = [
        task.name.as_deref(),
        Some(task.location.file()),
        task.group.as_deref(),
        wait,
        Some(state),
    ];
    let mut texts = texts.into_iter().flatten();
    if texts.any(|text| contains(text, word)) {
        return true;
    }
    // These take an allocation each.
    word.starts_with("0x") && task.id.to_string().starts_with(word)
        || word.contains(':') && contains(&task.location.to_string(), word)
}

/// Returns whether a text contains a word, which is in lower case.
fn contains(text: &str, word: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(word);
    }
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let mut windows = text.windows(word.len().max(1));
    word.is_empty() || windows.any(|window| window.eq_ignore_ascii_case(word))
}

/// Returns the rows of a table that a request wants, as JSON.
pub(crate) fn rows(table: &Made<Table>, mut wanted: Wanted, waits: Option<&Waits>) -> String {
    let begun = Instant::now();
    if !wanted.choice.words.is_empty() {
        wanted.choice.waits = waits.map(|waits| waits.at);
    }
    let Made { value, at, cost } = table;
    let waits = waits.map(|waits| (waits, *at + *cost));
    let order = value.order(&wanted.choice, waits);
    let from = wanted.from.min(order.len());
    let to = from.saturating_add(wanted.count).min(order.len());
    let mut json = Json::new();
    json.object(|json| {
        json.key("total").number(value.tasks.len() as u64);
        json.key("matched").number(order.len() as u64);
        json.key("from").number(from as u64);
        json.key("age_ms").number(millis(at.elapsed()));
        json.key("asked_ms_ago");
        match waits {
            Some((waits, _)) => json.number(millis(waits.at.elapsed())),
            None => json.raw("null"),
        }
        json.key("rows").list(&order[from..to], |json, at| {
            let task = &value.tasks[*at as usize];
            json.object(|json| write(json, task, waits));
        });
        json.key("next_ms")
            .number(millis(pace::pause(*cost + begun.elapsed())));
    });
    json.into_string()
}

fn write(json: &mut Json, task: &TaskSnapshot, waits: Option<(&Waits, Instant)>) {
    json.key("id").text(task.id);
    json.key("name").text_or_null(task.name.as_ref());
    json.key("place").text(task.location);
    json.key("group").text_or_null(task.group.as_ref());
    json.key("state").text(task.state);
    json.key("polls").number(task.polls);
    json.key("since_ms").number(millis(task.since));
    if let Some(wait) = waits.and_then(|(waits, seen)| waits.get(task, seen)) {
        json.key("waits").text(wait);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
