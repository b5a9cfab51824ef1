//! A list whose values keep their indices until they are removed: a [`slab::Slab`]. The removal of
//! the last value also frees all entries: otherwise each walk would visit as many entries as the
//! list has ever had values at once.
pub(crate) use slab::Slab as List;

/// The number of entries for which an empty list keeps memory.
const KEPT: usize = 32;

/// Removes the value at an index that `insert` returned.
pub(crate) fn remove<T>(list: &mut List<T>, at: usize) -> T {
    let value = list.remove(at);
    if list.is_empty() {
        list.clear();
        if list.capacity() > KEPT {
            *list = List::new();
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_of_the_last_value_empties_the_list() {
        for len in [4, 1000] {
            let mut list = List::new();
            let places: Vec<_> = (0..len).map(|value| list.insert(value)).collect();
            for (value, at) in places.into_iter().enumerate() {
                assert_eq!(remove(&mut list, at), value);
            }
            // A list with free entries would use the one that was freed last.
            assert_eq!(list.vacant_key(), 0);
            assert!(list.capacity() <= KEPT);
        }
    }
}
