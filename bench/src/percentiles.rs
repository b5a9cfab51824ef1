//! Percentiles of single operations' times.

/// Returns the median, and the value that one in a hundred exceeds.
pub(crate) fn percentiles(values: Vec<u64>) -> Option<(f64, f64)> {
    let [median, _, p99, _] = distribution(values)?;
    Some((median, p99))
}

/// Returns the median, the values that one in ten and one in a hundred exceed, and the largest.
pub(crate) fn distribution(mut values: Vec<u64>) -> Option<[f64; 4]> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    Some([50, 90, 99, 100].map(|part| values[(values.len() * part / 100).min(last)] as f64))
}

#[cfg(test)]
mod tests {
    use super::{distribution, percentiles};

    #[test]
    fn percentiles_of_unsorted_values_are_those_of_sorted_ones() {
        assert_eq!(percentiles((0..200).rev().collect()), Some((100.0, 198.0)));
        assert_eq!(percentiles(vec![7]), Some((7.0, 7.0)));
        assert_eq!(percentiles(vec![]), None);
    }

    #[test]
    fn distribution_ends_with_the_largest_value() {
        let values = (0..200).rev().collect();
        assert_eq!(distribution(values), Some([100.0, 180.0, 198.0, 199.0]));
        assert_eq!(distribution(vec![7]), Some([7.0; 4]));
        assert_eq!(distribution(vec![]), None);
    }
}
