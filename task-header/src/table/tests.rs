//! Compares the table with a plain map of the same tasks. The tasks are addresses that are never
//! followed.
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

fn task(number: usize) -> TaskPtr {
    NonNull::new(ptr::without_provenance_mut((number + 1) * 16)).unwrap()
}

/// Returns the address of a stack, which is never followed.
fn stack() -> NonNull<Releases> {
    NonNull::dangling()
}

fn chunks(table: &Table) -> usize {
    // SAFETY: the chunk belongs to this table, and the table does not change meanwhile.
    let next = |chunk: &ChunkPtr| unsafe { chunk.as_ref() }.older;
    std::iter::successors(table.newest, next).count()
}

fn insert(table: &mut Table, number: usize) -> NonNull<Place> {
    // SAFETY: each call passes the same address of a stack, which is never followed.
    unsafe { table.insert(task(number), stack()) }
}

/// Removes a task by the place that `insert` returned. The test does this once for each place.
fn remove(table: &mut Table, place: NonNull<Place>) {
    // SAFETY: the caller promises this.
    unsafe { table.remove(place) };
}

/// Walks the table as an owner walks its list.
fn all(table: &Table, places: &BTreeMap<TaskPtr, NonNull<Place>>) -> Vec<TaskPtr> {
    // SAFETY: the place is in the table, which does not change meanwhile.
    let next = |task: &TaskPtr| unsafe { table.after(places[task]) };
    let mut all: Vec<_> = std::iter::successors(table.first(), next).collect();
    all.sort();
    all
}

proptest! {
    // A case has hundreds of steps, which are slow without optimisation.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 256 }))]
    #[test]
    fn inserted_tasks_are_in_the_table_once_until_removed(
        steps in proptest::collection::vec((0..3_u8, any::<usize>()), 0..1_500),
    ) {
        let mut table = Table::new();
        let mut places = BTreeMap::new();
        // The keys of `places` in any order, and its values: no step looks at all of them.
        let (mut tasks, mut taken) = (Vec::new(), HashSet::new());
        for (number, (step, which)) in steps.into_iter().enumerate() {
            if step == 0 && !tasks.is_empty() {
                let place = places.remove(&tasks.swap_remove(which % tasks.len())).unwrap();
                taken.remove(&place);
                remove(&mut table, place);
            } else {
                let place = insert(&mut table, number);
                prop_assert!(taken.insert(place));
                // SAFETY: the place was just inserted.
                prop_assert_eq!(unsafe { releases(place) }, stack());
                places.insert(task(number), place);
                tasks.push(task(number));
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
fn freed_places_are_reused_and_last_removal_frees_chunks() {
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
