//! Draws the README's diagram from the transitions themselves: the test follows them to all state
//! words that a process may have.
use super::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// Runs a transition from a word.
fn after(word: u64, event: impl Fn(&RunState)) -> u64 {
    let state = RunState(AtomicU64::new(word));
    event(&state);
    // Ordering: Relaxed, there is one thread.
    state.0.load(Relaxed)
}

/// Returns the events that a state allows, and the words after them.
fn transitions(word: u64) -> Vec<(&'static str, u64)> {
    let after_event = |event: fn(&RunState)| after(word, event);
    let after_bit = |bit| after(word, |state| _ = state.notify(bit));
    let mut all = vec![
        ("message", after_bit(MESSAGE)),
        ("completion, signal", after_bit(URGENT)),
        ("waker", after_bit(WAKE)),
        ("kill", after_bit(KILL)),
        ("kill for good", after_bit(FINAL)),
    ];
    match word & PHASE {
        READY => all.push(("worker", after_event(|state| _ = state.begin()))),
        RUNNING => {
            all.push(("Continue", after_event(RunState::requeue)));
            all.push((
                "Blocked",
                after_event(|state| _ = state.suspend(Wait::Blocked)),
            ));
            all.push(("Idle", after_event(|state| _ = state.suspend(Wait::Idle))));
            all.push(("Done", after_event(RunState::end)));
            all.push(("Done, supervised", after_event(|state| _ = state.stop())));
        }
        STOPPED => all.push(("restart", after_event(|state| _ = state.revive()))),
        _ => {}
    }
    all
}

fn name(word: u64) -> &'static str {
    match word & PHASE {
        READY => "Ready",
        RUNNING => "Running",
        BLOCKED => "Blocked",
        IDLE => "Idle",
        STOPPED => "Stopped",
        _ => "Complete",
    }
}

/// Returns the edges: from, to, and the events that lead there.
fn edges() -> BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>> {
    let mut edges = BTreeMap::<_, BTreeSet<_>>::new();
    let (mut seen, mut next) = (BTreeSet::new(), vec![READY]);
    while let Some(word) = next.pop() {
        // Further incarnations would only add the same edges again.
        if !seen.insert(word) || incarnation(word) > 1 {
            continue;
        }
        for (why, to) in transitions(word) {
            if name(word) != name(to) {
                edges.entry((name(word), name(to))).or_default().insert(why);
            }
            next.push(to);
        }
    }
    edges
}

#[test]
fn readme_diagram_is_what_the_transitions_do() {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> Ready: spawn\n");
    for ((from, to), why) in edges() {
        let why: Vec<_> = why.into_iter().collect();
        writeln!(text, "    {from} --> {to}: {}", why.join(", ")).unwrap();
    }
    text += "    Complete --> [*]\n```\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).expect("a checkout has a README");
    let (begin, end) = ("<!-- states -->\n", "<!-- /states -->");
    let from = readme.find(begin).expect("the mark is there") + begin.len();
    let to = from + readme[from..].find(end).expect("the mark is there");
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        let new = [&readme[..from], &text, &readme[to..]].concat();
        std::fs::write(path, new).expect("a checkout may be written");
    } else {
        assert_eq!(&readme[from..to], text, "SELVEDGE_BLESS=1 writes it");
    }
}

/// The transitions include all seven edges of the diagram from which the design of this crate
/// started: six here, and the spawn, which leads to Ready.
#[test]
fn transitions_include_the_seven_original_edges() {
    let edges = edges();
    let expected = [
        ("Ready", "Running"),
        ("Running", "Complete"),
        ("Running", "Blocked"),
        ("Running", "Idle"),
        ("Blocked", "Ready"),
        ("Idle", "Ready"),
    ];
    for edge in expected {
        assert!(edges.contains_key(&edge), "{edge:?}");
    }
    let wakes = |from, event| edges[&(from, "Ready")].contains(event);
    assert!(wakes("Idle", "message") && wakes("Idle", "completion, signal"));
    assert!(wakes("Blocked", "completion, signal") && !wakes("Blocked", "message"));
}

#[test]
fn message_to_blocked_process_waits_until_it_idles() {
    let state = RunState::new();
    state.begin();
    assert_eq!(state.suspend(Wait::Blocked), SuspenderDuty::Waits);
    assert_eq!(state.notify(MESSAGE), NotifierDuty::DoNothing);
    assert_eq!(state.notify(URGENT), NotifierDuty::Submit);
    assert_eq!(state.notify(MESSAGE), NotifierDuty::DoNothing);
    state.begin();
    assert_eq!(state.suspend(Wait::Idle), SuspenderDuty::Waits);
    assert_eq!(state.notify(KILL), NotifierDuty::Submit);
    assert!(state.is_killed() && !state.is_final());
}
