//! Blocks of one thread and of many. Each of these tests has sizes of its own, which no cell or
//! node of another test has.
use super::{
    Heap, Kept, Nodes, Use,
    magazines::{DEPOT, MAGAZINE, is_kept, put},
    new_arc, recycle,
};
use std::{
    alloc::Layout,
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
    sync::{Arc, mpsc},
    thread,
};

/// Fails if a block is given out twice, or if an `Arc` that is shared is recycled.
#[test]
fn recycled_arcs_have_blocks_of_their_own() {
    struct Odd([u64; 63]);
    let shared = new_arc(Odd([7; 63]));
    let other = shared.clone();
    recycle(shared);
    for round in 0..3 {
        let all: Vec<_> = (0..200).map(|n| new_arc(Odd([n; 63]))).collect();
        let places: HashSet<_> = all.iter().map(Arc::as_ptr).collect();
        assert_eq!(places.len(), all.len(), "round {round}");
        for (n, arc) in (0..).zip(all) {
            assert!(arc.0.iter().all(|word| *word == n));
            recycle(arc);
        }
    }
    assert!(other.0.iter().all(|word| *word == 7));
}

/// One thread makes `Arc`s, and another one recycles more of them than all magazines hold. Each
/// value is dropped once.
///
/// Fails if a recycled value is not dropped. Under Miri and the leak checkers, it also fails if a
/// magazine that the depot refuses is lost.
#[test]
fn arcs_recycled_by_another_thread_are_dropped_once() {
    #[expect(dead_code)]
    struct Value([u64; 60], Arc<()>);
    let count = Arc::new(());
    let many = (DEPOT + 4) * MAGAZINE;
    let (sender, values) = mpsc::channel::<Arc<Value>>();
    let other = thread::spawn(move || values.into_iter().for_each(recycle));
    let hold: Vec<_> = (0..many)
        .map(|_| new_arc(Value([0; 60], count.clone())))
        .collect();
    assert_eq!(Arc::strong_count(&count), many + 1);
    hold.into_iter().for_each(|arc| sender.send(arc).unwrap());
    drop(sender);
    other.join().unwrap();
    assert_eq!(Arc::strong_count(&count), 1);
    let again = new_arc(Value([0; 60], count.clone()));
    assert_eq!(Arc::strong_count(&count), 2);
    recycle(again);
}

/// Fails if a type whose alignment is not that of the pool's blocks gets a block of the pool.
#[test]
fn arc_of_another_alignment_is_aligned() {
    #[repr(align(64))]
    struct Wide(u8);
    for n in 0..3 {
        let wide = new_arc(Wide(n));
        assert_eq!(Arc::as_ptr(&wide).addr() % 64, 0);
        assert_eq!(wide.0, n);
        recycle(wide);
    }
}

/// Fails if a layout is kept whose size is not that of its class.
#[test]
fn layouts_between_two_classes_are_not_kept() {
    let keeps = |size| is_kept(Layout::from_size_align(size, 8).unwrap());
    assert!(keeps(8) && keeps(16) && keeps(512));
    assert!(!keeps(0) && !keeps(12) && !keeps(15) && !keeps(520));
}

/// Fails if the panic of a value's drop loses the block.
#[test]
fn block_of_a_value_whose_drop_panics_is_kept() {
    #[expect(dead_code)]
    struct Bomb([u64; 62]);
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("this drop panics");
        }
    }
    let bomb = new_arc(Bomb([0; 62]));
    let place = Arc::as_ptr(&bomb).addr();
    assert!(catch_unwind(AssertUnwindSafe(|| recycle(bomb))).is_err());
    let again = new_arc([7_u64; 62]);
    assert_eq!(Arc::as_ptr(&again).addr(), place);
    recycle(again);
}

/// Frees more blocks than a thread and the depot keep. The free function of these blocks allocates
/// and frees a node: it stands for an allocator that comes back to the pool.
///
/// Fails if a thread that changes its magazines enters them again.
#[test]
fn free_function_may_use_the_pool_again() {
    /// # Safety
    /// The contract of `Heap::free`.
    unsafe fn free(block: NonNull<u8>, layout: Layout) {
        let node = Layout::new::<[u64; 61]>();
        let other = Kept::allocate(node);
        // SAFETY: the node is from `allocate`, and is not used.
        unsafe { Kept::free(other, node) };
        // SAFETY: the caller keeps the contract.
        unsafe { Heap::free(block, layout) }
    }
    let layout = Layout::new::<[u64; 59]>();
    for _ in 0..(DEPOT + 4) * MAGAZINE {
        let block = Heap::allocate(layout);
        // SAFETY: the block is from `Heap`, and is given away.
        unsafe { put(Use::Node, layout, block, free) };
    }
}
