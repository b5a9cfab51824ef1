//! Different names for groups and schedulers, which may have equal ones.
use std::collections::{HashMap, HashSet};

/// Returns the names, of which equal ones get numbers: no two samples may have the same labels.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut given, mut counts) = (HashSet::new(), HashMap::new());
    let name = |name: &'a str| {
        let mut distinct = name.to_owned();
        while !given.insert(distinct.clone()) {
            let count = counts.entry(name).or_insert(1);
            *count += 1;
            distinct = format!("{name} ({count})");
        }
        distinct
    };
    names.map(name).collect()
}

#[cfg(test)]
#[test]
fn equal_names_get_numbers_that_no_other_name_has() {
    let names = ["a", "b", "a", "a (2)", "a"];
    let distinct = distinct(names.into_iter());
    assert_eq!(distinct, ["a", "b", "a (2)", "a (2) (2)", "a (3)"]);
}
