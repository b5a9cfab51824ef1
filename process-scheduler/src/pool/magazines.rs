//! The magazines of a thread, and the depot: see `pool.rs`.
use super::block::{Free, Use};
use std::{
    alloc::Layout,
    cell::RefCell,
    mem,
    ptr::NonNull,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The alignment of each block. A block's size is a multiple of it.
const UNIT: usize = 8;
/// The number of classes. The largest block that is kept has 512 bytes.
const CLASSES: usize = 64;
/// The number of blocks in a full magazine.
pub(super) const MAGAZINE: usize = 32;
/// The largest number of magazines of one class in the depot.
pub(super) const DEPOT: usize = 16;

#[inline]
pub(super) fn is_kept(layout: Layout) -> bool {
    let size = layout.size();
    layout.align() == UNIT && size % UNIT == 0 && (1..=CLASSES * UNIT).contains(&size)
}

/// Blocks of one class.
struct Magazine {
    blocks: Vec<NonNull<u8>>,
    /// The function that frees each of the blocks.
    free: Free,
}

// SAFETY: a magazine owns its blocks, which have no value.
unsafe impl Send for Magazine {}

impl Magazine {
    fn free_all(self, layout: Layout) {
        for block in self.blocks {
            // SAFETY: the block was put with the same use and layout as the function `self.free`.
            // Nobody else has the block.
            unsafe { (self.free)(block, layout) }
        }
    }
}

/// The part of the depot for one use and one class.
struct Depot {
    magazines: Mutex<Vec<Magazine>>,
    /// The number of magazines. It is a hint, so that a take from an empty depot takes no lock.
    len: AtomicUsize,
}

impl Depot {
    const fn new() -> Self {
        Self {
            magazines: Mutex::new(Vec::new()),
            len: AtomicUsize::new(0),
        }
    }

    fn take(&self) -> Option<Magazine> {
        // Ordering: Relaxed, the lock orders the magazines. A thread that misses a magazine
        // allocates.
        if self.len.load(Relaxed) == 0 {
            return None;
        }
        let mut magazines = self
            .magazines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let taken = magazines.pop();
        // Ordering: Relaxed, as above.
        self.len.store(magazines.len(), Relaxed);
        taken
    }

    /// Hands the magazine back if the depot is full.
    fn put(&self, magazine: Magazine) -> Option<Magazine> {
        let mut magazines = self
            .magazines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if magazines.len() == DEPOT {
            return Some(magazine);
        }
        magazines.push(magazine);
        // Ordering: Relaxed, as in `take`.
        self.len.store(magazines.len(), Relaxed);
        None
    }
}

static DEPOTS: [[Depot; CLASSES]; 2] = [const { [const { Depot::new() }; CLASSES] }; 2];

/// The magazines of a thread, of one class.
#[derive(Default)]
struct Shelf {
    current: Vec<NonNull<u8>>,
    other: Vec<NonNull<u8>>,
    /// The function that frees each of the blocks. It is `Some` if a magazine has a block.
    free: Option<Free>,
}

impl Shelf {
    fn exchange(&mut self, depot: &Depot) -> Option<NonNull<u8>> {
        mem::swap(&mut self.current, &mut self.other);
        if self.current.is_empty() {
            let magazine = depot.take()?;
            self.free = Some(magazine.free);
            self.current = magazine.blocks;
        }
        self.current.pop()
    }

    /// Makes room in `current`, which is full or has no memory yet.
    fn make_room(&mut self, depot: &Depot, free: Free, layout: Layout) {
        self.free = Some(free);
        mem::swap(&mut self.current, &mut self.other);
        // The length may exceed `MAGAZINE`: a vector may have more room than was asked for.
        if self.current.len() >= MAGAZINE {
            let blocks = mem::take(&mut self.current);
            if let Some(left) = depot.put(Magazine { blocks, free }) {
                left.free_all(layout);
            }
        }
        self.current.reserve_exact(MAGAZINE);
    }
}

struct Shelves([[Shelf; CLASSES]; 2]);

impl Drop for Shelves {
    fn drop(&mut self) {
        for shelves in &mut self.0 {
            for (class, shelf) in shelves.iter_mut().enumerate() {
                let Some(free) = shelf.free else {
                    continue;
                };
                let layout = layout_of(class);
                for blocks in [mem::take(&mut shelf.current), mem::take(&mut shelf.other)] {
                    Magazine { blocks, free }.free_all(layout);
                }
            }
        }
    }
}

#[inline]
fn class_of(layout: Layout) -> usize {
    layout.size() / UNIT - 1
}

fn layout_of(class: usize) -> Layout {
    let layout = Layout::from_size_align((class + 1) * UNIT, UNIT);
    layout.expect("a class has a small size")
}

thread_local! {
    /// The magazines of this thread. A thread makes them when it first takes or puts a block.
    static SHELVES: RefCell<Option<Box<Shelves>>> = const { RefCell::new(None) };
}

/// Takes a block that was kept for this use and layout.
#[inline]
pub(super) fn take(of: Use, layout: Layout) -> Option<NonNull<u8>> {
    if !is_kept(layout) {
        return None;
    }
    let class = class_of(layout);
    let taken = SHELVES.try_with(|shelves| {
        // Rule 6 of `pool.rs`: code below calls the allocator, which may call this function.
        let mut shelves = shelves.try_borrow_mut().ok()?;
        let Some(shelves) = &mut *shelves else {
            return first_take(&mut shelves, of, class);
        };
        let shelf = &mut shelves.0[of as usize][class];
        match shelf.current.pop() {
            None => shelf.exchange(&DEPOTS[of as usize][class]),
            block => block,
        }
    });
    // `try_with` fails if the thread ends.
    taken.ok().flatten()
}

/// Makes the thread's magazines, and takes a block from the depot.
#[cold]
fn first_take(shelves: &mut Option<Box<Shelves>>, of: Use, class: usize) -> Option<NonNull<u8>> {
    let shelf = &mut new_shelves(shelves).0[of as usize][class];
    shelf.exchange(&DEPOTS[of as usize][class])
}

#[cold]
fn new_shelves(shelves: &mut Option<Box<Shelves>>) -> &mut Shelves {
    let of_a_use = || std::array::from_fn(|_| Shelf::default());
    shelves.insert(Box::new(Shelves([of_a_use(), of_a_use()])))
}

/// Keeps a block, or frees it.
///
/// # Safety
/// The caller gives the block away. `free` frees each block of this use and layout.
#[inline]
pub(super) unsafe fn put(of: Use, layout: Layout, block: NonNull<u8>, free: Free) {
    let kept = is_kept(layout)
        && SHELVES
            .try_with(|shelves| {
                // As in `take`.
                let Ok(mut shelves) = shelves.try_borrow_mut() else {
                    return false;
                };
                let shelves = match &mut *shelves {
                    Some(shelves) => shelves,
                    none => new_shelves(none),
                };
                let class = class_of(layout);
                let shelf = &mut shelves.0[of as usize][class];
                if shelf.current.len() == shelf.current.capacity() {
                    shelf.make_room(&DEPOTS[of as usize][class], free, layout);
                }
                shelf.current.push(block);
                true
            })
            .unwrap_or(false);
    if !kept {
        // SAFETY: the caller promises this.
        unsafe { free(block, layout) }
    }
}
