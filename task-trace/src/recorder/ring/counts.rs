//! Counts the cost of each operation.
use super::Ring;
use sync_shim::count::counted;

#[test]
fn push_and_copy_make_no_read_modify_write() {
    let ring = Ring::<4>::new(2);
    let (copy, counts) = counted(|| {
        (0..3).for_each(|n| ring.push([n; 4]));
        ring.copy()
    });
    assert_eq!((copy.records.len(), copy.lost), (2, 1));
    assert_eq!((counts.rmws, counts.seqcst_fences), (0, 0));
}
