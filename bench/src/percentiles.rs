//! Percentiles of single operations' times.

/// Returns the median, and the value that one in a hundred exceeds.
pub(crate) fn percentiles(mut values: Vec<u64>) -> Option<(f64, f64)> {
    values.sort_unstable();
    let at =
        |part: usize| values.get((values.len() * part / 100).min(values.len().checked_sub(1)?));
    Some((*at(50)? as f64, *at(99)? as f64))
}

#[cfg(test)]
mod tests {
    use super::percentiles;

    #[test]
    fn percentiles_of_unsorted_values_are_those_of_sorted_ones() {
        assert_eq!(percentiles((0..200).rev().collect()), Some((100.0, 198.0)));
        assert_eq!(percentiles(vec![7]), Some((7.0, 7.0)));
        assert_eq!(percentiles(vec![]), None);
    }
}
