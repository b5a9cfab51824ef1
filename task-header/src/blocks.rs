//! Where cells come from: the allocator, by way of blocks that earlier cells have left.
//!
//! Taking a block from the allocator and giving it back costs as much as everything else in a short task's life together, and many
//! times that when ten thousand are taken before the first is given back, or when another thread gives them back.
//! Tasks come and go in a few sizes, so freed cells of up to [`LARGEST`] bytes are kept, by size, for the next ones.
//!
//! | where | how many | who |
//! |---|---|---|
//! | a thread's open chain | up to [`full`] blocks of a size, while the depot can take the next | the thread |
//! | a thread's spare chain | none, or [`full`] | the thread |
//! | the depot | up to [`DEPOT`] bytes of all sizes, in chains; beyond that the size of which there is most makes room | any thread, under its lock |
//!
//! 1. A block is in one place at a time, and whoever takes it out has it alone. It was allocated with its class's layout, and is
//!    freed with that.
//! 2. Nobody waits for the depot's lock: who does not get it at once does without, by way of the allocator.
//! 3. A thread that ends leaves its chains to the depot, or to the allocator. A cell that is freed later than that goes to the allocator.
//!
//! It has atomics of nobody's but std's, in a lock, and is switched off where the model, or a sanitizer, is to see each block come
//! and go: `--cfg selvedge_plain_alloc`, or without the feature `recycle`.
use std::{
    alloc::{Layout, alloc as new_block, dealloc as free_block},
    cell::{Cell, UnsafeCell},
    mem::replace,
    ptr::NonNull,
    sync::{Mutex, TryLockError},
};

/// Of cells whose blocks are kept.
const LARGEST: usize = 520;
/// What the depot keeps.
const DEPOT: usize = 4 << 20;
/// Classes differ by this. The allocators of the C library add 8 bytes to a block and round up to 16.
const STEP: usize = 16;
const SMALLEST: usize = 40;
const CLASSES: usize = (LARGEST - SMALLEST) / STEP + 1;

/// A free block.
struct Free {
    next: Option<NonNull<Free>>,
    /// In the first block of a chain in the depot: the first of the next chain, and how many are in this.
    next_chain: Option<NonNull<Free>>,
    len: usize,
}

const _: () = assert!(size_of::<Free>() <= SMALLEST && align_of::<Free>() <= align_of::<usize>());

#[inline(always)]
const fn is_kept(layout: Layout) -> bool {
    layout.size() <= LARGEST && layout.align() <= align_of::<usize>()
}

#[inline(always)]
const fn class(size: usize) -> usize {
    size.saturating_sub(SMALLEST).div_ceil(STEP)
}

#[inline(always)]
const fn layout_of(class: usize) -> Layout {
    match Layout::from_size_align(SMALLEST + class * STEP, align_of::<usize>()) {
        Ok(layout) => layout,
        Err(_) => panic!("a small size and a power of two"),
    }
}

/// Blocks in a full chain: what fits into 6 KiB.
#[inline(always)]
const fn full(class: usize) -> usize {
    6_144 / layout_of(class).size()
}

/// Blocks of a size.
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
        // SAFETY: in a chain, so free and written by `push`.
        self.first = unsafe { block.read() }.next;
        self.len -= 1;
        Some(block)
    }

    /// # Safety
    /// The block is the caller's, who gives it up, and of this chain's class.
    #[inline]
    unsafe fn push(&mut self, block: NonNull<Free>) {
        let free = Free {
            next: self.first,
            next_chain: None,
            len: 0,
        };
        // SAFETY: the caller's, and large and aligned enough.
        unsafe { block.write(free) };
        self.first = Some(block);
        self.len += 1;
    }

    /// To the allocator.
    #[cold]
    fn free(mut self, class: usize) {
        while let Some(block) = self.pop() {
            // SAFETY: rule 1.
            unsafe { free_block(block.as_ptr().cast(), layout_of(class)) };
        }
    }
}

/// Chains of all threads.
struct Depot {
    chains: [Option<NonNull<Free>>; CLASSES],
    bytes: [usize; CLASSES],
}

// SAFETY: it has its blocks alone (rule 1).
unsafe impl Send for Depot {}

static DEPOT_OF_ALL: Mutex<Depot> = Mutex::new(Depot {
    chains: [None; CLASSES],
    bytes: [0; CLASSES],
});

impl Depot {
    /// Rule 2.
    fn with<R>(f: impl FnOnce(&mut Self) -> R) -> Option<R> {
        match DEPOT_OF_ALL.try_lock() {
            Ok(mut depot) => Some(f(&mut depot)),
            // Nothing in here panics halfway.
            Err(TryLockError::Poisoned(depot)) => Some(f(&mut depot.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn take(&mut self, class: usize) -> Option<Chain> {
        let first = self.chains[class]?;
        // SAFETY: the depot has it, written by `put`.
        let free = unsafe { first.read() };
        self.chains[class] = free.next_chain;
        self.bytes[class] -= free.len * layout_of(class).size();
        Some(Chain {
            first: Some(first),
            len: free.len,
        })
    }

    /// Keeps a chain, or frees it.
    fn keep(class: usize, chain: Chain) {
        if chain.first.is_some() && Self::with(|depot| depot.put(class, chain)).is_none() {
            chain.free(class);
        }
    }

    /// Makes room by freeing from the size of which there is most, so that none takes all the room for good.
    fn put(&mut self, class: usize, chain: Chain) {
        let Some(first) = chain.first else { return };
        let bytes = chain.len * layout_of(class).size();
        while self.bytes.iter().sum::<usize>() + bytes > DEPOT {
            let most = (0..CLASSES).max_by_key(|&class| self.bytes[class]);
            let Some((most, chain)) = most.and_then(|most| Some((most, self.take(most)?))) else {
                break;
            };
            chain.free(most);
        }
        self.bytes[class] += bytes;
        // SAFETY: the chain's, which the caller gives up; written by `push`.
        let free = unsafe { &mut *first.as_ptr() };
        free.next_chain = self.chains[class].replace(first);
        free.len = chain.len;
    }
}

/// A thread's chains of a size.
struct Local {
    open: UnsafeCell<Chain>,
    spare: Cell<Chain>,
}

struct Cache([Local; CLASSES]);

thread_local! {
    static CACHE: Cache = const {
        Cache([const { Local { open: UnsafeCell::new(Chain::EMPTY), spare: Cell::new(Chain::EMPTY) } }; CLASSES])
    };
}

impl Local {
    /// For a step in which nothing else is called.
    #[inline]
    fn open<R>(&self, f: impl FnOnce(&mut Chain) -> R) -> R {
        // SAFETY: this thread's alone, and no step is within another.
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
            // SAFETY: passed on.
            unsafe { open.push(block) };
            open.len
        });
        if len >= full(class) {
            self.put_away(class);
        }
    }

    /// The open chain is full.
    #[cold]
    fn put_away(&self, class: usize) {
        let open = self.open(|open| replace(open, Chain::EMPTY));
        let spare = self.spare.replace(open);
        if spare.first.is_none() {
            return;
        }
        Depot::keep(class, spare);
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

/// As [`std::alloc::alloc`].
///
/// # Safety
/// As for that: a layout of some size.
#[inline]
pub(crate) unsafe fn alloc(layout: Layout) -> *mut u8 {
    if !is_kept(layout) {
        // SAFETY: passed on.
        return unsafe { new_block(layout) };
    }
    let class = class(layout.size());
    let kept = CACHE.try_with(|cache| cache.0[class].take(class));
    match kept.ok().flatten() {
        Some(block) => block.as_ptr().cast(),
        // SAFETY: a class's layout has a size.
        None => unsafe { new_block(layout_of(class)) },
    }
}

/// As [`std::alloc::dealloc`].
///
/// # Safety
/// The block came from [`alloc`] with this layout, and is the caller's, who gives it up.
#[inline]
pub(crate) unsafe fn dealloc(block: *mut u8, layout: Layout) {
    if !is_kept(layout) {
        // SAFETY: passed on.
        return unsafe { free_block(block, layout) };
    }
    let class = class(layout.size());
    // SAFETY: a block is not at null.
    let free = unsafe { NonNull::new_unchecked(block.cast::<Free>()) };
    // SAFETY: the caller's, of this class.
    let put = CACHE.try_with(|cache| unsafe { cache.0[class].put(class, free) });
    if put.is_err() {
        // SAFETY: allocated with its class's layout (rule 1).
        unsafe { free_block(block, layout_of(class)) };
    }
}

#[cfg(test)]
mod tests;
