//! Tests of the runs of hand-overs.
use super::*;

/// An event in the life of a [`Run`].
#[derive(Debug)]
enum Event {
    /// A waiter is woken with `Turn::Try`.
    Tries,
    /// A waiter was overtaken by one task; the new run has this length.
    Begins(u16),
    /// A waiter was overtaken by more than one.
    Ends,
    /// This many hand-overs go on with the run, and the next one ends it.
    Lasts(u16),
}
use Event::{Begins, Ends, Lasts, Tries};

#[track_caller]
fn check(events: &[Event]) {
    let mut run = Run::NEW;
    for (index, event) in events.iter().enumerate() {
        match *event {
            Tries => run.tries(),
            Begins(length) => {
                run.begin(false);
                assert_eq!(run.length, length, "{index}: {event:?}");
            }
            Ends => run.begin(true),
            Lasts(hand_overs) => {
                let went_on = (0..).take_while(|_| run.goes_on()).count();
                assert_eq!(went_on, usize::from(hand_overs), "{index}: {event:?}");
            }
        }
    }
}

#[test]
fn new_run_ends_with_the_first_hand_over() {
    check(&[Lasts(0)]);
}

#[test]
fn run_ends_after_as_many_hand_overs_as_its_length() {
    check(&[Begins(1), Lasts(1), Lasts(0), Begins(3), Lasts(3), Lasts(0)]);
}

/// Fails if the length is not doubled, or has another limit.
#[test]
fn run_after_an_overtaking_doubles_up_to_the_limit() {
    let lengths = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1023, 1023];
    for count in 1..=lengths.len() {
        let mut events: Vec<_> = lengths[..count].iter().copied().map(Begins).collect();
        events.push(Lasts(lengths[count - 1]));
        check(&events);
    }
}

/// The first wake after an overtaking does not count: that waiter may be overtaken yet.
#[test]
fn first_wake_after_a_run_leaves_the_next_length() {
    check(&[
        Begins(1),
        Tries,
        Begins(3),
        Tries,
        Begins(7),
        Tries,
        Begins(15),
    ]);
}

/// Fails if a wake does not halve the length, or if an overtaking does not clear `was_tried`.
#[test]
fn each_wake_without_an_overtaking_halves_the_next_run() {
    check(&[Begins(1), Begins(3), Begins(7), Tries, Tries, Begins(7)]);
    check(&[
        Begins(1),
        Begins(3),
        Begins(7),
        Tries,
        Tries,
        Tries,
        Begins(3),
    ]);
    check(&[Begins(1), Begins(3), Tries, Tries, Tries, Tries, Begins(1)]);
    check(&[Tries, Begins(1), Tries, Begins(3)]);
}

/// Fails if the length stays, or is not shorter after that.
#[test]
fn overtaking_by_many_ends_the_runs() {
    check(&[Begins(1), Begins(3), Ends, Lasts(0), Begins(1), Lasts(1)]);
}

/// Fails if a bit is set without a woken waiter, or is not set at the second overtaking.
#[test]
fn state_counts_the_tasks_that_overtake_a_woken_waiter() {
    assert_eq!(taken(0), LOCKED);
    assert_eq!(taken(QUEUED), LOCKED | QUEUED);
    let once = taken(WOKEN);
    assert_eq!(once, WOKEN | OVERTAKEN | LOCKED);
    let twice = taken(once & !LOCKED);
    assert_eq!(twice, ON_THE_WAY | LOCKED);
    assert_eq!(taken(twice & !LOCKED), twice);
}
