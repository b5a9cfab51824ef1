//! Counts the read-modify-writes of the counters.
use super::{counter::Counter, times::Times};
use std::time::Duration;
use sync_shim::count::counted;

#[test]
fn no_metric_costs_a_read_modify_write() {
    let (counter, times) = (Counter::new(), Times::new());
    let ((), counts) = counted(|| {
        counter.add(1);
        times.record(Duration::from_nanos(1));
        assert_eq!(counter.get(), 1);
    });
    assert_eq!((counts.rmws, counts.seqcst_fences), (0, 0));
}
