//! Weakens one call site, which the environment names. So one build of the models serves all
//! mutants of their orderings.
//!
//! - `SELVEDGE_MUTANT` is `FILE:LINE:COLUMN INDEX HOW`. The first word is the place of a call.
//!   `INDEX` is the index of one of the call's orderings (1 is that of a failed exchange). `HOW` is
//!   a weaker ordering, or `dropped` (the fence does nothing), or `stored` (the exchange is a
//!   store). Instead the whole variable can be the name of a source change, for [`is_on`].
//! - `SELVEDGE_SITES` is a file. When the process first reaches a call, this module appends a line
//!   to the file: the call's place, name and orderings.
use std::{
    cell::RefCell,
    collections::HashSet,
    env,
    fs::OpenOptions,
    io::Write,
    panic::Location,
    sync::{
        LazyLock,
        atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst},
    },
};

struct Mutant {
    file: String,
    line: u32,
    column: u32,
    index: usize,
    how: String,
}

static NAME: LazyLock<String> = LazyLock::new(|| env::var("SELVEDGE_MUTANT").unwrap_or_default());
static MUTANT: LazyLock<Option<Mutant>> = LazyLock::new(|| parse(&NAME));
static SITES: LazyLock<Option<String>> = LazyLock::new(|| env::var("SELVEDGE_SITES").ok());

std::thread_local! {
    /// The places of the calls that are recorded. All threads of a model share this set, as they
    /// run on one real thread.
    static SEEN: RefCell<HashSet<&'static Location<'static>>> = RefCell::default();
}

fn parse(text: &str) -> Option<Mutant> {
    let mut words = text.split(' ');
    let mut place = words.next()?.rsplitn(3, ':');
    let (column, line) = (place.next()?.parse().ok()?, place.next()?.parse().ok()?);
    Some(Mutant {
        file: place.next()?.to_owned(),
        line,
        column,
        index: words.next()?.parse().ok()?,
        how: words.next()?.to_owned(),
    })
}

/// Returns whether the mutant is the source change with this name.
pub fn is_on(name: &str) -> bool {
    *NAME == name
}

/// Returns the orderings that the caller's call is to use. If the mutant of this call is `dropped`
/// or `stored`, also returns that word.
#[track_caller]
pub(super) fn at<const N: usize>(
    operation: &str,
    mut orders: [Ordering; N],
) -> ([Ordering; N], Option<&'static str>) {
    let here = Location::caller();
    if let Some(file) = &*SITES {
        record(file, here, operation, &orders);
    }
    let is_here = |mutant: &&Mutant| {
        (mutant.line, mutant.column) == (here.line(), here.column()) && mutant.file == here.file()
    };
    let Some(mutant) = MUTANT.as_ref().filter(is_here) else {
        return (orders, None);
    };
    let weaker = [Relaxed, Acquire, Release, AcqRel, SeqCst];
    let weaker = weaker.into_iter().find(|o| format!("{o:?}") == mutant.how);
    match weaker {
        None => (orders, Some(&mutant.how)),
        Some(weaker) => {
            orders[mutant.index] = weaker;
            (orders, None)
        }
    }
}

fn record(file: &str, here: &'static Location<'static>, operation: &str, orders: &[Ordering]) {
    if SEEN.with_borrow_mut(|seen| seen.insert(here)) {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| writeln!(file, "{here} {operation} {orders:?}"));
        written.expect("the file of SELVEDGE_SITES is to be written");
    }
}
