use super::*;
use std::{
    collections::HashSet,
    sync::{MutexGuard, PoisonError},
    thread,
};

/// The depot is one for all threads, and so for all tests: empty when one begins.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut depot = DEPOT_OF_ALL.lock().unwrap();
    for class in 0..CLASSES {
        while let Some(chain) = depot.take(class) {
            chain.free(class);
        }
    }
    turn
}

fn blocks(layout: Layout, n: usize) -> Vec<*mut u8> {
    // SAFETY: the layouts of these tests have a size.
    (0..n).map(|_| unsafe { alloc(layout) }).collect()
}

fn free(layout: Layout, blocks: Vec<*mut u8>) {
    for block in blocks {
        // SAFETY: from `blocks`, with this layout.
        unsafe { block.write_bytes(0xA5, layout.size()) };
        // SAFETY: as above, and once.
        unsafe { dealloc(block, layout) };
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, align_of::<usize>()).unwrap()
}

fn in_depot() -> usize {
    DEPOT_OF_ALL.lock().unwrap().bytes.iter().sum()
}

#[test]
fn each_size_has_a_class_that_holds_it_and_wastes_less_than_a_step() {
    for size in 1..=LARGEST {
        let class = layout_of(class(size)).size();
        assert!(class >= size && class - size < STEP.max(SMALLEST), "{size}");
    }
    assert!(is_kept(layout(LARGEST)) && !is_kept(layout(LARGEST + 1)));
    assert!(is_kept(Layout::from_size_align(64, 16).unwrap()));
    assert!(!is_kept(Layout::from_size_align(64, 32).unwrap()));
    assert!(full(CLASSES - 1) > 1);
}

#[test]
fn a_freed_block_is_the_next_of_its_size() {
    let _turn = turn();
    let layout = layout(200);
    let [a, b] = *blocks(layout, 2) else { panic!() };
    free(layout, vec![a, b]);
    assert_eq!(blocks(layout, 2), [b, a]);
    free(layout, vec![a, b]);
}

#[test]
fn blocks_freed_by_another_thread_come_back_each_once() {
    let _turn = turn();
    let layout = layout(300);
    let n = full(class(300)) * 10;
    let first: HashSet<usize> = thread::spawn(move || {
        let all = blocks(layout, n);
        let addresses = all.iter().map(|block| block.addr()).collect();
        free(layout, all);
        addresses
    })
    .join()
    .unwrap();
    let again = blocks(layout, n);
    let distinct: HashSet<usize> = again.iter().map(|block| block.addr()).collect();
    assert_eq!((first.len(), distinct.len()), (n, n));
    assert!(first.intersection(&distinct).count() >= n - 2 * full(class(300)));
    free(layout, again);
}

#[test]
fn the_depot_has_a_limit_and_what_is_beyond_goes_back() {
    let _turn = turn();
    let layout = layout(LARGEST);
    let n = 3 * DEPOT / LARGEST;
    thread::spawn(move || free(layout, blocks(layout, n)))
        .join()
        .unwrap();
    let most = in_depot();
    assert!(most <= DEPOT && most > DEPOT / 2, "{most}");
    free(layout, blocks(layout, n));
    assert!(in_depot() <= DEPOT);
}

#[test]
fn a_held_lock_keeps_nobody_waiting() {
    let _turn = turn();
    let layout = layout(250);
    let held = DEPOT_OF_ALL.lock().unwrap();
    thread::spawn(move || {
        let all = blocks(layout, full(class(250)) * 5);
        free(layout, all);
    })
    .join()
    .unwrap();
    drop(held);
}

#[test]
fn large_and_over_aligned_blocks_are_the_allocators() {
    for layout in [
        layout(LARGEST + 1),
        Layout::from_size_align(64, 64).unwrap(),
    ] {
        let all = blocks(layout, 3);
        assert!(all.iter().all(|block| block.addr() % layout.align() == 0));
        free(layout, all);
    }
}

#[test]
fn one_size_does_not_keep_the_others_out() {
    let _turn = turn();
    let (small, other) = (layout(88), layout(400));
    let n = 2 * DEPOT / 88;
    thread::spawn(move || free(small, blocks(small, n)))
        .join()
        .unwrap();
    assert!(in_depot() > DEPOT / 2);
    let n = 20 * full(class(400));
    thread::spawn(move || free(other, blocks(other, n)))
        .join()
        .unwrap();
    let kept = DEPOT_OF_ALL.lock().unwrap().bytes[class(400)];
    assert!(
        kept >= 17 * full(class(400)) * layout_of(class(400)).size(),
        "{kept}"
    );
    assert!(in_depot() <= DEPOT);
}

#[test]
fn blocks_come_by_the_page_and_in_a_row_whatever_the_order_in_which_they_were_freed() {
    let _turn = turn();
    let layout = layout(140);
    thread::spawn(move || {
        let mut all = blocks(layout, 1_000);
        all.sort_by_key(|block| block.addr().wrapping_mul(0x9E37_79B9) >> 7 & 0xFFFF);
        free(layout, all);
    })
    .join()
    .unwrap();
    let n = in_depot() / layout_of(class(140)).size();
    assert!(n > 800, "{n}");
    let again = blocks(layout, n);
    assert_eq!(in_depot(), 0);
    let mut pages = HashSet::new();
    for page in again.chunk_by(|a, b| a.addr() / PAGE == b.addr() / PAGE) {
        assert!(page.is_sorted_by_key(|block| block.addr()));
        assert!(pages.insert(page[0].addr() / PAGE));
    }
    assert!(pages.len() < n / 10, "{} pages", pages.len());
    free(layout, again);
}

#[test]
fn a_page_that_finds_no_place_takes_that_of_another() {
    let _turn = turn();
    let mut depot = Box::new(Depot::EMPTY);
    let layout = layout(72);
    let class = class(72);
    let size = layout_of(class).size();
    let mut pages = HashSet::new();
    let mut others = Vec::new();
    let mut put = 0;
    while pages.len() <= PLACES + PLACES / 4 {
        let block = NonNull::new(blocks(layout, 1)[0].cast::<Free>()).unwrap();
        if !pages.insert(Page::number(block)) {
            others.push(block.as_ptr().cast());
            continue;
        }
        let mut chain = Chain::EMPTY;
        // SAFETY: this test's, of this class.
        unsafe { chain.push(block) };
        depot.put(class, chain);
        put += 1;
        assert!(depot.bytes[class] <= PLACES.min(put) * size);
    }
    let mut taken = 0;
    while let Some(chain) = depot.take(class) {
        taken += chain.len;
        chain.free(class);
    }
    assert!(taken > PLACES / 2 && taken < put, "{taken} of {put}");
    assert_eq!(depot.bytes, [0; CLASSES]);
    free(layout, others);
}
