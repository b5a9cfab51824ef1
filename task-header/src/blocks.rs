//! Memory for cells: the blocks of freed cells are kept for new cells. If no block of the size is
//! kept, a new cell gets a block from the allocator.
//!
//! An allocation and a free cost as much as all the rest of a short task. They cost many times as
//! much if ten thousand blocks are allocated before the first is freed, or if another thread frees
//! the blocks. Most tasks have one of a few sizes, so freed blocks of cells of up to [`LARGEST`]
//! bytes are kept, by size, for the next cells.
//!
//! | kept in | how many blocks | used by |
//! |---|---|---|
//! | a thread's open chain | up to [`full`] of a size, or twice that while other threads hold the depot's lock; up to a page more if the blocks came from the depot | the thread |
//! | a thread's spare chain | none, or those of an earlier open chain | the thread |
//! | the depot | up to [`DEPOT_BYTES`] bytes of all sizes, sorted by page; beyond that, it frees blocks of the size that takes the most bytes | any thread, under the depot's lock |
//!
//! Blocks are freed in the order in which tasks end, and with two workers this order becomes more
//! random in each round. Tasks that are made one after the other are also woken and run in that
//! order, and the processor prefetches memory that lies in a row. So the depot hands blocks out by
//! the page, in the order of their addresses, whatever order they came in. A thread first reuses
//! the block that it freed last.
//!
//! 1. A kept block is in one chain, and the thread that takes it out is its only user. A block is
//!    allocated and freed with the layout of its class: its size, rounded up.
//! 2. No thread waits for the depot's lock. A thread that does not get it at once uses the
//!    allocator instead.
//! 3. A thread that ends leaves its chains to the depot, or to the allocator. The block of a cell
//!    that the thread frees later goes to the allocator.
//! 4. The depot has [`PLACES`] *places*. A place holds free blocks of one class from one page, and
//!    the depot takes all of them together. A place records its blocks twice. The depot takes them
//!    by the bit map, in the order of their addresses. The list gives a leak checker pointers to
//!    them. A page has a place for each class of its blocks. Rarely it has several places for one
//!    class; then each of them has different blocks. The page and the class allow only [`PROBES`]
//!    of the places. If other blocks have all of these, a block goes to the *rest* of its class, a
//!    chain without order. The depot is 240 KiB of zeroed static memory, of which the system
//!    provides only the part that is used.
//!
//! This module uses no atomics but those of std's lock. Where a model or a sanitizer must see each
//! block come and go, the module is switched off: with `--cfg selvedge_plain_alloc`, or without the
//! feature `recycle`.
use std::{
    alloc::{Layout, alloc as new_block, dealloc as free_block},
    cell::{Cell, UnsafeCell},
    mem::replace,
    ptr::{NonNull, with_exposed_provenance_mut},
    sync::{Mutex, TryLockError},
};

/// The largest cell whose block is kept, in bytes.
const LARGEST: usize = 520;
/// The most bytes that the depot keeps.
const DEPOT_BYTES: usize = 4 << 20;
const PAGE: usize = 4_096;
/// The alignment of blocks. Allocators of 64-bit targets align to it anyway.
const GRAIN: usize = 16;
/// The number of places in the depot (rule 4).
const PLACES: usize = 4_096;
/// The number of places that the blocks of one class from one page may have.
const PROBES: usize = 8;
/// The difference in size between classes. The C libraries' allocators add 8 bytes to a block and
/// round the sum up to a multiple of 16.
const STEP: usize = 16;
const SMALLEST: usize = 40;
const CLASSES: usize = (LARGEST - SMALLEST) / STEP + 1;

/// A free block.
struct Free {
    next: Option<NonNull<Free>>,
}

const _: () = assert!(size_of::<Free>() <= SMALLEST && align_of::<Free>() <= GRAIN);

#[inline(always)]
const fn is_kept(layout: Layout) -> bool {
    layout.size() <= LARGEST && layout.align() <= GRAIN
}

#[inline(always)]
const fn class(size: usize) -> usize {
    size.saturating_sub(SMALLEST).div_ceil(STEP)
}

#[inline(always)]
const fn layout_of(class: usize) -> Layout {
    match Layout::from_size_align(SMALLEST + class * STEP, GRAIN) {
        Ok(layout) => layout,
        Err(_) => panic!("a small size and a power of two"),
    }
}

/// Returns the number of blocks in a full chain: as many as fit into 6 KiB.
#[inline(always)]
const fn full(class: usize) -> usize {
    6_144 / layout_of(class).size()
}

/// Blocks of one size.
#[derive(Clone, Copy)]
struct Chain {
    first: Option<NonNull<Free>>,
    len: usize,
}

impl Chain {
    const EMPTY: Self = Self {
        first: None,
        len: 0,
    };

    #[inline]
    fn pop(&mut self) -> Option<NonNull<Free>> {
        let block = self.first?;
        // SAFETY: the block is in a chain, so it is free and `push` has written it.
        self.first = unsafe { block.read() }.next;
        self.len -= 1;
        Some(block)
    }

    /// # Safety
    /// The caller owns the block and gives it up. The block is of this chain's class.
    #[inline]
    unsafe fn push(&mut self, block: NonNull<Free>) {
        let next = self.first;
        // SAFETY: the block is the caller's, and large and aligned enough.
        unsafe { block.write(Free { next }) };
        self.first = Some(block);
        self.len += 1;
    }

    /// Gives all blocks to the allocator.
    #[cold]
    fn free(mut self, class: usize) {
        while let Some(block) = self.pop() {
            // SAFETY: the block was allocated with this layout (rule 1).
            unsafe { free_block(block.as_ptr().cast(), layout_of(class)) };
        }
    }
}

/// A place: free blocks of one class that lie in one page (rule 4).
#[derive(Clone, Copy)]
struct Page {
    /// The blocks. Empty if this place is free.
    list: Chain,
    /// One bit per block, by its address in the page.
    map: [u64; PAGE / GRAIN / 64],
    class: usize,
}

/// The blocks that all threads share.
struct Depot {
    pages: [Page; PLACES],
    /// For each class, a bit for each place: whether the place holds a page of that class.
    places: [[u64; PLACES / 64]; CLASSES],
    rest: [Chain; CLASSES],
    bytes: [usize; CLASSES],
}

// SAFETY: only the depot uses its blocks (rule 1).
unsafe impl Send for Depot {}

static DEPOT: Mutex<Depot> = Mutex::new(Depot::EMPTY);

impl Page {
    const FREE: Self = Self {
        list: Chain::EMPTY,
        map: [0; PAGE / GRAIN / 64],
        class: 0,
    };

    #[inline]
    fn number(block: NonNull<Free>) -> usize {
        block.addr().get() / PAGE
    }

    /// # Safety
    /// As for [`Chain::push`], and the block lies in this page.
    #[inline]
    unsafe fn push(&mut self, block: NonNull<Free>) {
        let at = block.as_ptr().expose_provenance() % PAGE / GRAIN;
        self.map[at / 64] |= 1 << (at % 64);
        // SAFETY: the caller promises this.
        unsafe { self.list.push(block) };
    }

    /// Moves all blocks to a chain, so that the chain pops the lowest address first.
    fn pour(&mut self, chain: &mut Chain) {
        let Some(any) = self.list.first else { return };
        self.list = Chain::EMPTY;
        for (word, map) in self.map.iter_mut().enumerate().rev() {
            while let Some(bit) = map.checked_ilog2() {
                *map ^= 1 << bit;
                let at = Self::number(any) * PAGE + (word * 64 + bit as usize) * GRAIN;
                // SAFETY: this is the address of a block, which is not null.
                let block = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(at)) };
                // SAFETY: the bit's block, whose pointer `push` exposed, is this page's alone
                // (rules 1 and 4).
                unsafe { chain.push(block) };
            }
        }
    }
}

impl Depot {
    const EMPTY: Self = Self {
        pages: [Page::FREE; PLACES],
        places: [[0; PLACES / 64]; CLASSES],
        rest: [Chain::EMPTY; CLASSES],
        bytes: [0; CLASSES],
    };

    /// Runs `f` on the depot, unless another thread holds its lock (rule 2).
    fn with<R>(f: impl FnOnce(&mut Self) -> R) -> Option<R> {
        match DEPOT.try_lock() {
            Ok(mut depot) => Some(f(&mut depot)),
            // No code under this lock panics in the middle of a change.
            Err(TryLockError::Poisoned(depot)) => Some(f(&mut depot.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes about a full chain of blocks, or as many as there are. Starts with the last page,
    /// because a chain pops its newest block first.
    fn take(&mut self, class: usize) -> Option<Chain> {
        if self.bytes[class] == 0 {
            return None;
        }
        let mut chain = Chain::EMPTY;
        for (word, places) in self.places[class].iter_mut().enumerate().rev() {
            while chain.len < full(class) {
                let Some(bit) = places.checked_ilog2() else {
                    break;
                };
                *places ^= 1 << bit;
                self.pages[word * 64 + bit as usize].pour(&mut chain);
            }
        }
        while chain.len < full(class) {
            let Some(block) = self.rest[class].pop() else {
                break;
            };
            // SAFETY: the block comes from the rest of this class (rule 1).
            unsafe { chain.push(block) };
        }
        self.bytes[class] -= chain.len * layout_of(class).size();
        Some(chain)
    }

    /// Keeps a chain in the depot, or frees it.
    fn keep(class: usize, chain: Chain) {
        if chain.first.is_some() && Self::with(|depot| depot.put(class, chain)).is_none() {
            chain.free(class);
        }
    }

    /// Puts a chain into the depot. Makes room by freeing blocks of the size that takes most bytes,
    /// so that no size takes all the room for good.
    fn put(&mut self, class: usize, mut chain: Chain) {
        let bytes = chain.len * layout_of(class).size();
        while self.bytes.iter().sum::<usize>() + bytes > DEPOT_BYTES {
            let most = (0..CLASSES).max_by_key(|&class| self.bytes[class]);
            let Some((most, chain)) = most.and_then(|most| Some((most, self.take(most)?))) else {
                break;
            };
            chain.free(most);
        }
        self.bytes[class] += bytes;
        let mut last = None;
        while let Some(block) = chain.pop() {
            let number = Page::number(block);
            let place = match last {
                Some((of, place)) if of == number => place,
                _ => self.place(class, number),
            };
            last = Some((number, place));
            match place {
                // SAFETY: the block comes from the chain and is of this class, and the place is of
                // its page.
                Some(place) => unsafe { self.pages[place].push(block) },
                // SAFETY: the block comes from the chain and is of this class.
                None => unsafe { self.rest[class].push(block) },
            }
        }
    }

    /// Finds a place for the blocks of a class from the page of this number. Pages in a row get
    /// places in a row.
    ///
    /// The caller must push a block there next: while the place is empty, another class could get
    /// it too.
    fn place(&mut self, class: usize, number: usize) -> Option<usize> {
        // Knuth's multiplicative hash: a prime near 2^32 divided by the golden ratio.
        let hash = (number / 64 * CLASSES + class).wrapping_mul(2_654_435_761) >> 12;
        let mut places = (0..PROBES).map(|probe| ((hash + probe) * 64 + number % 64) % PLACES);
        let place = places.find(|&place| {
            let page = &self.pages[place];
            let is_the_same = |block| page.class == class && Page::number(block) == number;
            page.list.first.is_none_or(is_the_same)
        })?;
        self.pages[place].class = class;
        self.places[class][place / 64] |= 1 << (place % 64);
        Some(place)
    }
}

/// A thread's chains for one size.
struct Local {
    open: UnsafeCell<Chain>,
    spare: Cell<Chain>,
}

struct Cache([Local; CLASSES]);

thread_local! {
    static CACHE: Cache = const {
        Cache([const {
            Local { open: UnsafeCell::new(Chain::EMPTY), spare: Cell::new(Chain::EMPTY) }
        }; CLASSES])
    };
}

impl Local {
    /// Runs `f` on the open chain. `f` calls no other method of this type.
    #[inline]
    fn open<R>(&self, f: impl FnOnce(&mut Chain) -> R) -> R {
        // SAFETY: the chain is this thread's alone, and no call of `open` is within another.
        f(unsafe { &mut *self.open.get() })
    }

    #[inline]
    fn take(&self, class: usize) -> Option<NonNull<Free>> {
        self.open(Chain::pop).or_else(|| self.take_more(class))
    }

    #[cold]
    fn take_more(&self, class: usize) -> Option<NonNull<Free>> {
        let spare = self.spare.replace(Chain::EMPTY);
        let chain = if spare.first.is_some() {
            spare
        } else {
            Depot::with(|depot| depot.take(class))??
        };
        self.open(|open| {
            *open = chain;
            open.pop()
        })
    }

    /// # Safety
    /// As for [`Chain::push`].
    #[inline]
    unsafe fn put(&self, class: usize, block: NonNull<Free>) {
        let len = self.open(|open| {
            // SAFETY: the caller promises this.
            unsafe { open.push(block) };
            open.len
        });
        if len >= full(class) {
            self.put_away(class);
        }
    }

    /// Makes the full open chain the spare one, and moves the earlier spare chain to the depot. If
    /// another thread holds the depot's lock, the earlier spare chain becomes the open one again
    /// and grows, up to twice the usual length. Beyond that its blocks are freed.
    #[cold]
    fn put_away(&self, class: usize) {
        let open = self.open(|open| replace(open, Chain::EMPTY));
        let spare = self.spare.replace(open);
        if spare.first.is_none() || Depot::with(|depot| depot.put(class, spare)).is_some() {
            return;
        }
        let reopened = spare.len < 2 * full(class)
            && self.open(|open| {
                let is_empty = open.first.is_none();
                if is_empty {
                    *open = spare;
                }
                is_empty
            });
        if !reopened {
            spare.free(class);
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for (class, local) in self.0.iter().enumerate() {
            for chain in [
                local.open(|open| replace(open, Chain::EMPTY)),
                local.spare.replace(Chain::EMPTY),
            ] {
                Depot::keep(class, chain);
            }
        }
    }
}

/// Allocates as [`std::alloc::alloc`] does, from the kept blocks first.
///
/// # Safety
/// As for [`std::alloc::alloc`]: the layout's size is not zero.
#[inline]
pub(crate) unsafe fn alloc(layout: Layout) -> *mut u8 {
    if !is_kept(layout) {
        // SAFETY: the caller promises this.
        return unsafe { new_block(layout) };
    }
    let class = class(layout.size());
    let kept = CACHE.try_with(|cache| cache.0[class].take(class));
    match kept.ok().flatten() {
        Some(block) => block.as_ptr().cast(),
        // SAFETY: the size of a class's layout is not zero.
        None => unsafe { new_block(layout_of(class)) },
    }
}

/// Frees as [`std::alloc::dealloc`] does, or keeps the block.
///
/// # Safety
/// [`alloc`] returned the block for this layout, and the caller owns it and gives it up.
#[inline]
pub(crate) unsafe fn dealloc(block: *mut u8, layout: Layout) {
    if !is_kept(layout) {
        // SAFETY: the caller promises this.
        return unsafe { free_block(block, layout) };
    }
    let class = class(layout.size());
    // SAFETY: the address of a block is not null.
    let free = unsafe { NonNull::new_unchecked(block.cast::<Free>()) };
    // SAFETY: the block is the caller's, of this class.
    let put = CACHE.try_with(|cache| unsafe { cache.0[class].put(class, free) });
    if put.is_err() {
        // SAFETY: the block was allocated with the layout of its class (rule 1).
        unsafe { free_block(block, layout_of(class)) };
    }
}

#[cfg(test)]
mod tests;
