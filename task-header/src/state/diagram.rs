//! Draws the README's diagram from the transitions themselves. It visits all words to which the
//! transitions lead. In each word it makes every transition that a holder of a reference may make.
use super::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// Returns the name of the state that the word shows, together with [`GOES_ON`]. The bits that this
/// function ignores tell which references exist.
fn name(s: usize) -> &'static str {
    if s == FREED {
        return "freed";
    }
    if s & GOES_ON != 0 {
        return match (s & NOTIFIED != 0, s & CANCELLED != 0) {
            (false, false) => "goes_on",
            (true, false) => "goes_on_woken",
            (true, true) => "goes_on_aborted",
            (false, true) => panic!("an abort that nobody will see: {s:#b}"),
        };
    }
    match (
        s & COMPLETE != 0,
        s & RUNNING != 0,
        s & NOTIFIED != 0,
        s & CANCELLED != 0,
    ) {
        (true, ..) => "complete",
        (_, true, true, true) => "running_aborted",
        (_, true, true, false) => "running_woken",
        (_, true, false, true) => "cancelling",
        (_, true, false, false) => "running",
        (_, false, true, true) => "queued_aborted",
        (_, false, true, false) => "queued",
        (_, false, false, cancelled) => {
            assert!(!cancelled, "an idle task that was aborted: {s:#b}");
            "idle"
        }
    }
}

/// Stands for the word of a task that was freed.
const FREED: usize = usize::MAX;

/// A flag that is not in the word: the run is in a `Notified` (rule 8).
const GOES_ON: usize = 1 << (usize::BITS - 2);

/// The highest number of wakers and abort handles at a time.
const MOST: usize = 2;

/// Returns the transitions that the holders may make from a word, each with the resulting word.
fn transitions(word: usize) -> Vec<(&'static str, usize)> {
    let (s, goes_on) = (word & !GOES_ON, word & GOES_ON);
    let mut all = Vec::new();
    let mut add = |event: &'static str, transition: &dyn Fn(&State) -> Option<Duty>| {
        let state = State(AtomicUsize::new(s));
        let duty = transition(&state);
        // Ordering: Relaxed, here and below; no other thread has this word.
        let after = state.0.load(Relaxed);
        if duty == Some(Duty::Submit) {
            assert!(
                after & NOTIFIED != 0 && after & (RUNNING | COMPLETE) == 0,
                "{event}: {s:#b}"
            );
        }
        all.push((
            event,
            if duty == Some(Duty::Dealloc) {
                FREED
            } else if event == "start" {
                after
            } else {
                after | goes_on
            },
        ));
    };
    let complete = s & COMPLETE != 0;
    let runs = s & RUNNING != 0 && !complete && goes_on == 0;
    let held = s / REF_ONE;
    let joined = s & JOIN_INTEREST != 0;

    if (s & NOTIFIED != 0 || goes_on != 0) && !runs && !complete {
        add("start", &|state| {
            assert_eq!(state.start() == Start::Cancel, s & CANCELLED != 0);
            None
        });
    }
    // Rule 9.
    if runs && s & NOTIFIED != 0 && s & CANCELLED != 0 {
        add("abort_seen", &|state| {
            assert!(state.is_aborted());
            assert_eq!(state.start(), Start::Cancel);
            None
        });
    }
    // A start that found an abort drops the future, so there is no poll to end.
    if runs && s & (CANCELLED | NOTIFIED) != CANCELLED {
        for list in [false, true] {
            if list && s & LISTED != 0 {
                continue;
            }
            add("pending", &|state| {
                let _ = state.pend(list);
                None
            });
        }
        add("wake", &|state| Some(state.wake_by_ref()));
    }
    if runs {
        for unlisted in [false, true] {
            if unlisted && s & LISTED == 0 {
                continue;
            }
            add("end", &|state| match state.complete(joined, unlisted) {
                Complete::DropOutput => panic!("nobody joins, so it was dropped: {s:#b}"),
                Complete::WakeJoin => Some(state.release_run(unlisted)),
                Complete::Done => None,
                Complete::Dealloc => Some(Duty::Dealloc),
            });
        }
    }
    if held > 0 {
        add("wake", &|state| Some(state.wake_by_ref()));
        add("wake", &|state| Some(state.wake_by_val()));
        add("last_drop", &|state| Some(state.ref_dec()));
    }
    if (held > 0 || runs || joined) && held < MOST {
        add("clone", &|state| {
            state.ref_inc();
            None
        });
    }
    if held > 0 || joined {
        add("abort", &|state| Some(state.abort()));
    }
    if joined {
        if !complete {
            add("register", &|state| {
                let toggled = if s & JOIN_WAKER == 0 {
                    state.set_join_waker()
                } else {
                    state.unset_join_waker()
                };
                assert_eq!(toggled, Ok(()));
                None
            });
        }
        add("last_drop", &|state| loop {
            match state.leave_join() {
                LeaveJoin::DropWaker => {}
                LeaveJoin::DropOutput => break Some(state.release_join()),
                LeaveJoin::Left(duty) => break Some(duty),
            }
        });
    }
    if complete && s & LISTED != 0 {
        add("last_drop", &|state| Some(state.release_listed()));
    }
    if runs && s & (CANCELLED | NOTIFIED) != CANCELLED {
        all.push(("again", s | GOES_ON));
    }
    all
}

/// Returns the edges of the diagram: two states, and the events that lead from the first to the
/// second.
fn edges() -> BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>> {
    let mut edges = BTreeMap::<_, BTreeSet<_>>::new();
    let mut seen = BTreeSet::new();
    // Ordering: Relaxed, as above.
    let first = [true, false].map(|joined| State::new(joined, false).0.load(Relaxed));
    let listed = [true, false].map(|joined| State::new(joined, true).0.load(Relaxed));
    let mut next = [first, listed].concat();
    while let Some(s) = next.pop() {
        if s == FREED || !seen.insert(s) {
            continue;
        }
        assert!(
            referenced(s & !GOES_ON),
            "nobody holds it, and it is not freed: {s:#b}"
        );
        for (why, to) in transitions(s) {
            if name(s) != name(to) {
                edges.entry((name(s), name(to))).or_default().insert(why);
            }
            next.push(to);
        }
    }
    edges
}

fn diagram() -> String {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> queued: spawn\n");
    for ((from, to), why) in edges() {
        let why: Vec<_> = why.into_iter().collect();
        let to = if to == "freed" { "[*]" } else { to };
        let why = why.join(", ").replace('_', " ");
        writeln!(text, "    {from} --> {to}: {why}").unwrap();
    }
    text + "```\n"
}

/// With `SELVEDGE_BLESS=1`, this test writes the diagram into the README.
#[test]
fn readme_diagram_equals_the_transitions() {
    super::tests::on_the_backend(|| {
        crate::readme::holds("states", &diagram());
    });
}
