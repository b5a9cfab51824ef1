use super::*;
use std::{collections::HashSet, env, process::Command, thread};

/// Runs the test of this name once more, in a process of its own, and returns false. The call in
/// that process empties the depot and returns true.
///
/// All threads of a process share one depot. So another test of the same process could hold the
/// depot's lock.
fn is_alone(test: &str) -> bool {
    // `cargo xtask sanitize` sets this variable too, and runs one test at a time.
    const ALONE: &str = "SELVEDGE_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        let mut depot = DEPOT.lock().unwrap();
        for class in 0..CLASSES {
            while let Some(chain) = depot.take(class) {
                chain.free(class);
            }
        }
        return true;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("blocks::tests::{test}")])
        .env(ALONE, "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    // With a wrong name, the process would run no test and still succeed.
    let passed = child.status.success() && said.contains("1 passed");
    assert!(passed, "{said}{}", String::from_utf8_lossy(&child.stderr));
    false
}

fn blocks(layout: Layout, n: usize) -> Vec<*mut u8> {
    // SAFETY: no layout of these tests has the size zero.
    (0..n).map(|_| unsafe { alloc(layout) }).collect()
}

fn free(layout: Layout, blocks: Vec<*mut u8>) {
    for block in blocks {
        // SAFETY: the function `blocks` allocated this block with this layout.
        unsafe { block.write_bytes(0xA5, layout.size()) };
        // SAFETY: as above, and each block is freed once.
        unsafe { dealloc(block, layout) };
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, align_of::<usize>()).unwrap()
}

fn in_depot() -> usize {
    DEPOT.lock().unwrap().bytes.iter().sum()
}

#[test]
fn size_class_holds_its_size_and_wastes_less_than_a_step() {
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
    if !is_alone("a_freed_block_is_the_next_of_its_size") {
        return;
    }
    let layout = layout(200);
    let [a, b] = *blocks(layout, 2) else { panic!() };
    free(layout, vec![a, b]);
    assert_eq!(blocks(layout, 2), [b, a]);
    free(layout, vec![a, b]);
}

#[test]
fn blocks_freed_by_another_thread_come_back_each_once() {
    if !is_alone("blocks_freed_by_another_thread_come_back_each_once") {
        return;
    }
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
fn blocks_beyond_the_depots_limit_are_freed() {
    if !is_alone("blocks_beyond_the_depots_limit_are_freed") {
        return;
    }
    let layout = layout(LARGEST);
    let n = 3 * DEPOT_BYTES / LARGEST;
    thread::spawn(move || free(layout, blocks(layout, n)))
        .join()
        .unwrap();
    let most = in_depot();
    assert!(most <= DEPOT_BYTES && most > DEPOT_BYTES / 2, "{most}");
    free(layout, blocks(layout, n));
    assert!(in_depot() <= DEPOT_BYTES);
}

#[test]
fn locked_depot_makes_no_thread_wait() {
    if !is_alone("locked_depot_makes_no_thread_wait") {
        return;
    }
    let layout = layout(250);
    let held = DEPOT.lock().unwrap();
    thread::spawn(move || {
        let class = class(250);
        free(layout, blocks(layout, full(class) * 9));
        CACHE.with(|cache| {
            let local = &cache.0[class];
            let kept = [local.open(|open| open.len), local.spare.get().len];
            let full = full(class);
            assert!(
                (full..=4 * full + 1).contains(&kept.iter().sum()),
                "{kept:?} of {full}"
            );
        });
    })
    .join()
    .unwrap();
    drop(held);
}

#[test]
fn large_or_over_aligned_blocks_come_from_the_allocator() {
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
fn blocks_of_one_size_leave_room_for_the_others() {
    if !is_alone("blocks_of_one_size_leave_room_for_the_others") {
        return;
    }
    let (small, other) = (layout(88), layout(400));
    let n = 2 * DEPOT_BYTES / 88;
    thread::spawn(move || free(small, blocks(small, n)))
        .join()
        .unwrap();
    assert!(in_depot() > DEPOT_BYTES / 2);
    let n = 20 * full(class(400));
    thread::spawn(move || free(other, blocks(other, n)))
        .join()
        .unwrap();
    let kept = DEPOT.lock().unwrap().bytes[class(400)];
    assert!(
        kept >= 17 * full(class(400)) * layout_of(class(400)).size(),
        "{kept}"
    );
    assert!(in_depot() <= DEPOT_BYTES);
}

/// Makes a chain of `n` blocks from the allocator.
fn chain_of(class: usize, n: usize) -> Chain {
    let mut chain = Chain::EMPTY;
    for _ in 0..n {
        // SAFETY: the layout's size is not zero.
        let block = unsafe { new_block(layout_of(class)) };
        // SAFETY: the block is of this class, and nothing else uses it.
        unsafe { chain.push(NonNull::new(block.cast()).expect("there is memory")) };
    }
    chain
}

fn blocks_of(mut chain: Chain) -> Vec<NonNull<Free>> {
    std::iter::from_fn(|| chain.pop()).collect()
}

fn chain_from(blocks: impl IntoIterator<Item = NonNull<Free>>) -> Chain {
    let mut chain = Chain::EMPTY;
    for block in blocks {
        // SAFETY: the block came from `blocks_of`, so it is in no chain.
        unsafe { chain.push(block) };
    }
    chain
}

/// Asserts that the depot has the expected bytes, and that its lists, maps and places agree.
fn assert_sound(depot: &Depot, expected: &[usize; CLASSES]) {
    let mut bytes = depot
        .rest
        .each_ref()
        .map(|rest| rest.len)
        .iter()
        .enumerate()
        .map(|(class, len)| len * layout_of(class).size())
        .collect::<Vec<_>>();
    for (place, page) in depot.pages.iter().enumerate() {
        let bits: u32 = page.map.iter().map(|word| word.count_ones()).sum();
        assert_eq!(bits as usize, page.list.len);
        for class in 0..CLASSES {
            let is_there = depot.places[class][place / 64] >> (place % 64) & 1 == 1;
            assert_eq!(is_there, page.list.len > 0 && page.class == class);
        }
        bytes[page.class] += page.list.len * layout_of(page.class).size();
    }
    assert_eq!(
        (bytes.as_slice(), depot.bytes.as_slice()),
        (expected.as_slice(), expected.as_slice())
    );
}

#[test]
fn freed_blocks_return_by_page_in_address_order() {
    let mut depot = Box::new(Depot::EMPTY);
    let class = class(140);
    let mut all = blocks_of(chain_of(class, 1_000));
    all.sort_by_key(|block| block.addr().get().wrapping_mul(0x9E37_79B9) >> 7 & 0xFFFF);
    for some in all.chunks(full(class)) {
        depot.put(class, chain_from(some.iter().copied()));
    }
    assert_eq!(depot.rest[class].len, 0);
    let mut seen = 0;
    let mut pages = HashSet::new();
    while let Some(chain) = depot.take(class) {
        let chain = blocks_of(chain);
        seen += chain.len();
        for page in chain.chunk_by(|a, b| Page::number(*a) == Page::number(*b)) {
            assert!(page.is_sorted());
            assert!(pages.insert(Page::number(page[0])));
        }
        chain_from(chain).free(class);
    }
    assert_eq!(seen, 1_000);
    assert!(pages.len() < 100, "{} pages", pages.len());
}

#[test]
fn block_whose_page_has_no_place_is_kept_in_the_rest() {
    let mut depot = Box::new(Depot::EMPTY);
    let class = class(72);
    let mut pages = HashSet::new();
    // More pages than places; the depot gets one block of each.
    let n = 2 * PLACES * PAGE / layout_of(class).size();
    let (ours, others): (Vec<_>, Vec<_>) = blocks_of(chain_of(class, n))
        .into_iter()
        .partition(|block| pages.insert(Page::number(*block)));
    chain_from(others).free(class);
    let n = ours.len();
    assert!(n > PLACES);
    for block in ours {
        depot.put(class, chain_from([block]));
    }
    let rest = depot.rest[class].len;
    assert!(
        (n - PLACES..n - PLACES * 7 / 8).contains(&rest),
        "{rest} of {n}"
    );
    let mut bytes = [0; CLASSES];
    bytes[class] = n * layout_of(class).size();
    assert_sound(&depot, &bytes);
    let mut taken = 0;
    while let Some(chain) = depot.take(class) {
        taken += chain.len;
        chain.free(class);
    }
    assert_eq!(taken, n);
    assert_sound(&depot, &[0; CLASSES]);
}

#[test]
fn blocks_of_sizes_that_share_pages_come_out_once_each() {
    // The test uses all classes, so that pages of two sizes hash to one place.
    let classes: [usize; CLASSES] = std::array::from_fn(|class| class);
    let mut depot = Box::new(Depot::EMPTY);
    let mut out = [const { Vec::new() }; CLASSES];
    for _ in 0..60 {
        // The classes take turns, so that their blocks share pages.
        for (class, out) in classes.into_iter().zip(&mut out) {
            out.extend(blocks_of(chain_of(class, 1)));
        }
    }
    let mut bytes = [0; CLASSES];
    let mut random = 1_u32;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) as usize % below
    };
    for _ in 0..400 {
        let which = next(CLASSES);
        let (class, out) = (classes[which], &mut out[which]);
        let size = layout_of(class).size();
        if next(2) == 0 {
            let n = next(60).min(out.len());
            let mut chain = Chain::EMPTY;
            for _ in 0..n {
                let block = out.swap_remove(next(out.len()));
                // SAFETY: the block came out of the depot, or was never in it.
                unsafe { chain.push(block) };
            }
            bytes[class] += n * size;
            depot.put(class, chain);
        } else if let Some(chain) = depot.take(class) {
            bytes[class] -= chain.len * size;
            out.extend(blocks_of(chain));
        }
        assert_sound(&depot, &bytes);
    }
    for (class, mut out) in classes.into_iter().zip(out) {
        out.extend(std::iter::from_fn(|| depot.take(class)).flat_map(blocks_of));
        let distinct: HashSet<_> = out.iter().collect();
        assert_eq!((out.len(), distinct.len()), (60, 60));
        chain_from(out).free(class);
    }
}
