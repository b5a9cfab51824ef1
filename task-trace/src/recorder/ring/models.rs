//! Models of a writer that overwrites records while a reader copies them.
use super::Ring;
use sync_shim::{model, sync::Arc, thread};

/// Checks that the words of each record agree, that the records are in sequence, and that none is
/// missing.
fn assert_whole(copy: &super::RingCopy<2>) {
    for (place, record) in copy.records.iter().enumerate() {
        let number = copy.lost + place as u64;
        assert_eq!(*record, [number + 1, number + 1], "a torn record");
    }
}

/// Fails if `fence(Release)` or `fence(Acquire)` is left out, if the release store of `written`
/// comes before the words, or if `whole` ignores `begun`.
#[test]
fn copy_beside_an_overwrite_has_no_torn_record() {
    model(|| {
        let ring = Arc::new(Ring::<2>::new(1));
        ring.push([1, 1]);
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || ring.push([2, 2]))
        };
        let copy = ring.copy();
        assert_whole(&copy);
        writer.join().unwrap();
        let copy = ring.copy();
        assert_eq!((copy.records, copy.lost), (vec![[2, 2]], 1));
    });
}

/// Fails if `written` is stored or loaded with Relaxed, in place of Release and Acquire.
#[test]
fn copy_beside_a_first_push_has_the_record_or_nothing() {
    model(|| {
        let ring = Arc::new(Ring::<2>::new(2));
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || {
                ring.push([1, 1]);
                ring.push([2, 2]);
            })
        };
        let copy = ring.copy();
        assert_whole(&copy);
        assert_eq!(copy.lost, 0);
        writer.join().unwrap();
        assert_eq!(ring.copy().records, [[1, 1], [2, 2]]);
    });
}

/// Fails with the changes that make the first model fail. Here each slot is written twice.
#[test]
fn full_laps_beside_a_copy_tear_no_record() {
    model(|| {
        let ring = Arc::new(Ring::<2>::new(2));
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || (1..=4).for_each(|n| ring.push([n, n])))
        };
        assert_whole(&ring.copy());
        writer.join().unwrap();
        let copy = ring.copy();
        assert_eq!((copy.records, copy.lost), (vec![[3, 3], [4, 4]], 2));
    });
}
