//! Tests of the runs of hand-overs.
use super::*;

/// An event in the life of a [`Run`].
#[derive(Debug)]
enum Event {
    /// A waiter is woken with `Turn::Try`.
    Tries,
    /// A waiter was overtaken; the new run has this length.
    Begins(u8),
    /// This many hand-overs go on with the run, and the next one ends it.
    Lasts(u8),
}
use Event::{Begins, Lasts, Tries};

#[track_caller]
fn check(events: &[Event]) {
    let mut run = Run::NEW;
    for (index, event) in events.iter().enumerate() {
        match *event {
            Tries => run.tries(),
            Begins(length) => {
                run.begin();
                assert_eq!(run.length, length, "{index}: {event:?}");
            }
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
    let lengths = [1, 3, 7, 15, 31, 63, 63, 63];
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
