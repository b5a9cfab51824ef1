//! Buckets and their bounds.
use super::{PollTimes, counter::Counter, times::Times};
use std::time::Duration;

fn of(times: &[Duration]) -> PollTimes {
    let own = Times::new();
    times.iter().for_each(|&took| own.record(took));
    let mut histogram = PollTimes::default();
    histogram.add(&own);
    histogram
}

#[test]
fn a_quantile_is_at_most_twice_a_time_and_above_it() {
    for ns in (0..38).flat_map(|bit| [1 << bit, (1 << bit) + 1, (2 << bit) - 1]) {
        let time = Duration::from_nanos(ns);
        let quantile = of(&[time]).quantile(1.0).unwrap();
        assert!(
            time < quantile && quantile <= 2 * time,
            "{time:?} {quantile:?}"
        );
    }
}

#[test]
fn the_longest_times_are_in_the_last_bucket() {
    let histogram = of(&[Duration::from_secs(600), Duration::MAX]);
    assert_eq!(histogram.buckets().last(), Some(&2));
    assert_eq!(histogram.quantile(1.0), Some(Duration::from_nanos(1 << 39)));
}

#[test]
fn quantile_of_a_part_outside_0_to_1_takes_the_nearest() {
    let histogram = of(&[Duration::from_nanos(1), Duration::from_nanos(1_000)]);
    for (part, ns) in [
        (-1.0, 2),
        (0.0, 2),
        (0.5, 2),
        (0.51, 1024),
        (7.0, 1024),
        (f64::INFINITY, 1024),
        (f64::NAN, 2),
    ] {
        assert_eq!(
            histogram.quantile(part),
            Some(Duration::from_nanos(ns)),
            "{part}"
        );
    }
    assert_eq!(PollTimes::default().quantile(0.5), None);
    assert_eq!(of(&[]).quantile(0.5), None);
}

#[test]
fn histograms_of_several_threads_add_up() {
    let mut sum = of(&[Duration::from_nanos(1)]);
    let own = Times::default();
    own.record(Duration::from_nanos(1));
    sum.add(&own);
    assert_eq!((sum.count(), sum.buckets()[1]), (2, 2));
}

#[test]
fn a_counter_shows_its_number() {
    let counter = Counter::default();
    counter.add(7);
    assert_eq!(format!("{counter:?}"), "Counter(7)");
}

#[cfg(feature = "metrics")]
#[test]
fn a_histogram_is_serialised_as_its_buckets() {
    assert_eq!(
        serde_json::to_string(&PollTimes::default()).unwrap(),
        r#"{"buckets":[]}"#
    );
}
