//! Histories that the checker accepts, and histories that it rejects.
use super::*;
use std::collections::VecDeque;

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct Queue(VecDeque<u32>);

#[derive(Clone, Debug)]
enum Call {
    Push(u32),
    Pop,
}

impl Sequential for Queue {
    type Call = Call;
    type Answer = Option<u32>;

    fn allows(&mut self, call: &Call, answer: &Option<u32>) -> bool {
        match call {
            Call::Push(item) => {
                self.0.push_back(*item);
                answer.is_none()
            }
            Call::Pop => self.0.pop_front() == *answer,
        }
    }
}

fn push(item: u32, from: u64, to: u64) -> Event<Queue> {
    Event {
        call: Call::Push(item),
        answer: None,
        from,
        to,
    }
}

fn pop(answer: Option<u32>, from: u64, to: u64) -> Event<Queue> {
    Event {
        call: Call::Pop,
        answer,
        from,
        to,
    }
}

fn explained<const N: usize>(events: [Event<Queue>; N]) -> Result<(), usize> {
    check(Queue::default(), events.map(|event| vec![event])).map_err(|wrong| wrong.explained)
}

#[test]
fn overlapping_calls_may_take_effect_in_either_order() {
    assert_eq!(
        explained([push(1, 0, 3), push(2, 1, 2), pop(Some(2), 4, 5)]),
        Ok(())
    );
    assert_eq!(
        explained([push(1, 0, 3), push(2, 1, 2), pop(Some(1), 4, 5)]),
        Ok(())
    );
}

#[test]
fn consecutive_calls_take_effect_in_their_order() {
    assert_eq!(
        explained([push(1, 0, 1), push(2, 2, 3), pop(Some(2), 4, 5)]),
        Err(2)
    );
}

#[test]
fn history_with_an_item_taken_twice_is_rejected() {
    assert_eq!(
        explained([push(1, 0, 1), pop(Some(1), 2, 4), pop(Some(1), 3, 5)]),
        Err(2)
    );
}

#[test]
fn history_with_a_lost_item_is_rejected() {
    assert_eq!(explained([push(1, 0, 1), pop(None, 2, 3)]), Err(1));
}

/// A pop that returned nothing overlaps other calls. The history is accepted only if the queue may
/// have been empty at some moment during the pop.
#[test]
fn empty_answer_needs_a_moment_without_items() {
    let held = [push(1, 0, 1), push(2, 3, 4), pop(Some(1), 5, 6)];
    let [a, b, c] = held.clone();
    assert_eq!(explained([a, b, c, pop(None, 2, 7)]), Err(3));
    let [a, b, c] = held;
    assert_eq!(explained([a, pop(None, 2, 7), c, b]), Err(3));
    assert_eq!(
        explained([
            push(1, 0, 1),
            pop(Some(1), 3, 4),
            push(2, 5, 6),
            pop(None, 2, 7)
        ]),
        Ok(())
    );
}

/// The set of placed calls is copied and hashed in each step.
///
/// Fails if the set grows with calls that end one after the other.
#[test]
fn set_of_consecutive_calls_has_one_size() {
    let mut placed = Placed::default();
    for index in 0..1_000 {
        // Two calls that overlap: the later one is placed first.
        placed = placed.with(2 * index + 1);
        assert_eq!(
            (placed.first, &*placed.later),
            (2 * index, &[2 * index + 1][..])
        );
        assert!(!placed.has(2 * index) && placed.has(2 * index + 1));
        placed = placed.with(2 * index);
        assert_eq!((placed.first, placed.later.len()), (2 * index + 2, 0));
    }
    assert!(placed.has(0) && placed.has(1_999) && !placed.has(2_000));
}

/// Takes gigabytes, and many minutes, if the cost of a call grows with the calls before it.
#[test]
fn history_of_a_hundred_thousand_calls_is_checked() {
    let events: Vec<_> = (0..50_000)
        .flat_map(|n| {
            let at = 4 * u64::from(n);
            [push(n, at, at + 1), pop(Some(n), at + 2, at + 3)]
        })
        .collect();
    assert!(check(Queue::default(), [events]).is_ok());
}

#[test]
fn rejected_history_is_printed() {
    let wrong = check(Queue::default(), [vec![pop(Some(9), 0, 1)]]).unwrap_err();
    let said = wrong.to_string();
    assert!(
        said.contains("more than 0") && said.contains("Pop -> Some(9)"),
        "{said}"
    );
}
