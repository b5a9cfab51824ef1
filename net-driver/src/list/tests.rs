use super::*;
use proptest::prelude::*;

#[test]
fn removal_of_the_last_value_empties_the_list() {
    let mut list = List::new();
    let places: Vec<_> = (0..1000).map(|value| list.insert(value)).collect();
    for (value, at) in places.into_iter().enumerate() {
        assert_eq!(list.entries(), 1000);
        assert_eq!(list.remove(at), value);
    }
    assert_eq!(list.entries(), 0);
    assert!(list.entries.capacity() < 1000);
    let at = list.insert(7);
    assert_eq!((*list.get(at), list.entries()), (7, 1));
}

#[test]
fn free_entries_are_used_before_new_ones() {
    let mut list = List::new();
    let places: Vec<_> = (0..4).map(|value| list.insert(value)).collect();
    for at in &places[..3] {
        list.remove(*at);
    }
    for value in 4..7 {
        list.insert(value);
    }
    assert_eq!(list.entries(), 4);
    list.insert(7);
    assert_eq!(list.entries(), 5);
}

proptest! {
    /// Each value is found at its index until its removal, and a walk finds all values.
    #[test]
    fn list_agrees_with_a_map(steps in prop::collection::vec(0_usize..10, 0..200)) {
        let (mut list, mut map) = (List::new(), std::collections::BTreeMap::new());
        for (value, step) in steps.into_iter().enumerate() {
            match map.keys().nth(step).copied() {
                Some(at) => prop_assert_eq!(Some(list.remove(at)), map.remove(&at)),
                None => prop_assert_eq!(map.insert(list.insert(value), value), None),
            }
            for (at, value) in &mut map {
                prop_assert_eq!(list.get(*at), &*value);
                prop_assert_eq!(list.get_mut(*at), value);
            }
            let walk: Vec<_> = list.iter_mut().map(|value| *value).collect();
            let values: Vec<_> = map.values().copied().collect();
            prop_assert_eq!(walk, values);
            prop_assert!(!map.is_empty() || list.entries() == 0);
        }
    }
}
