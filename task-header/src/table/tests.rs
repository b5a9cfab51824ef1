//! The table beside a list of what is in it. Its tasks are addresses that nobody follows.
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn task(number: usize) -> TaskPtr {
    NonNull::new(ptr::without_provenance_mut((number + 1) * 16)).unwrap()
}

/// Nobody looks at what is there.
fn stack() -> NonNull<Releases> {
    NonNull::dangling()
}

fn chunks(table: &Table) -> usize {
    // SAFETY: a chunk of this table, which nobody changes.
    let next = |chunk: &ChunkPtr| unsafe { chunk.as_ref() }.older;
    std::iter::successors(table.newest, next).count()
}

fn insert(table: &mut Table, number: usize) -> NonNull<Place> {
    // SAFETY: the same each time, and nobody looks what is there.
    unsafe { table.insert(task(number), stack()) }
}

/// A place that `insert` gave is given up once.
fn remove(table: &mut Table, place: NonNull<Place>) {
    // SAFETY: so it is.
    unsafe { table.remove(place) };
}

/// As an owner goes through its list.
fn all(table: &Table, places: &BTreeMap<TaskPtr, NonNull<Place>>) -> Vec<TaskPtr> {
    // SAFETY: in the table, which nobody changes.
    let next = |task: &TaskPtr| unsafe { table.after(places[task]) };
    let mut all: Vec<_> = std::iter::successors(table.first(), next).collect();
    all.sort();
    all
}

proptest! {
    #[test]
    fn what_was_put_in_and_not_taken_out_is_there_once(
        steps in proptest::collection::vec((0..3_u8, any::<usize>()), 0..1_500),
    ) {
        let mut table = Table::new();
        let mut places = BTreeMap::new();
        for (number, (step, which)) in steps.into_iter().enumerate() {
            let taken: Option<TaskPtr> = places.keys().nth(which % places.len().max(1)).copied();
            match taken {
                Some(task) if step == 0 => remove(&mut table, places.remove(&task).unwrap()),
                _ => {
                    let place = insert(&mut table, number);
                    prop_assert!(places.values().all(|&other| other != place));
                    // SAFETY: just put in.
                    prop_assert_eq!(unsafe { releases(place) }, stack());
                    places.insert(task(number), place);
                }
            }
            prop_assert_eq!(table.len(), places.len());
        }
        let tasks: Vec<_> = places.keys().copied().collect();
        prop_assert_eq!(all(&table, &places), tasks);
        for place in places.into_values() {
            remove(&mut table, place);
        }
        prop_assert_eq!(table.first(), None);
        prop_assert!(chunks(&table) <= 1);
    }
}

#[test]
fn places_that_were_given_up_are_given_out_again_and_chunks_go_with_the_last_task() {
    let mut table = Table::new();
    assert_eq!(chunks(&table), 0);
    for _ in 0..3 {
        let places: Vec<_> = (0..10 * PLACES).map(|i| insert(&mut table, i)).collect();
        assert_eq!(chunks(&table), 10);
        for &place in &places[1..] {
            remove(&mut table, place);
        }
        let again: Vec<_> = (1..10 * PLACES).map(|i| insert(&mut table, i)).collect();
        assert_eq!(chunks(&table), 10);
        for place in again {
            remove(&mut table, place);
        }
        assert_eq!((table.first(), chunks(&table)), (Some(task(0)), 10));
        remove(&mut table, places[0]);
        assert_eq!((table.first(), chunks(&table)), (None, 1));
    }
}
