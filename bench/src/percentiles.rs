//! Percentiles of single operations' times.

/// Returns the median, and the value that one in a hundred exceeds.
pub(crate) fn percentiles(values: Vec<u64>) -> Option<(f64, f64)> {
    let [median, p99] = quantiles(values, [500, 990])?;
    Some((median, p99))
}

/// Returns the median, the values that one in ten and one in a hundred exceed, and the largest.
pub(crate) fn distribution(values: Vec<u64>) -> Option<[f64; 4]> {
    quantiles(values, [500, 900, 990, 1_000])
}

/// Returns for each part, in thousandths, a value that this part of all values does not exceed.
pub(crate) fn quantiles<const N: usize>(
    mut values: Vec<u64>,
    thousandths: [usize; N],
) -> Option<[f64; N]> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    Some(thousandths.map(|part| values[(values.len() * part / 1_000).min(last)] as f64))
}

#[cfg(test)]
mod tests {
    use super::{distribution, percentiles, quantiles};

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

    #[test]
    fn quantile_of_one_in_a_thousand_is_among_the_last_values() {
        let values = (0..2_000).rev().collect();
        assert_eq!(quantiles(values, [999]), Some([1_998.0]));
    }
}
