//! Where an owner notes its tasks: a place for each, in chunks of places.
//!
//! 1. A place is a word, which names a task, or the next free place. The task in turn knows its place; and the chunk around a place, which its address
//!    tells, names the owner's stack. So a list takes two words of a task, one here and one in its cell, and a task comes and goes without a touch
//!    of another: its place is on a line with those of its neighbours here, and most often the last that was given up.
//! 2. Places are the owner's alone. The name of the stack is written before any place of the chunk is given out, and not changed: whoever completes a task
//!    may read it until the task is on that stack.
//! 3. A chunk stays while any place of the table is taken. When the last task goes, all chunks but one do. A table that is dropped with tasks in it leaks its chunks.
use crate::{cell::TaskPtr, list::Releases};
use core::{ptr, ptr::NonNull};
use sync_shim::{
    alloc::{Layout, alloc, dealloc},
    atomic::Retire,
    cell::UnsafeCell,
};

const MODELLED: bool = cfg!(any(selvedge_loom, selvedge_shuttle));
/// What a chunk is aligned to.
const ALIGN: usize = if MODELLED { 256 } else { 1_024 };
/// What an allocator of the C library adds to a block, so that chunks follow upon each other.
const SPARE: usize = 2 * size_of::<usize>();
/// In a chunk. So few that a model has more than one.
const PLACES: usize = if MODELLED {
    2
} else {
    (ALIGN - SPARE - size_of::<Chunk>()) / size_of::<Place>()
};
const SIZE: usize = size_of::<Chunk>() + PLACES * size_of::<Place>();
const LAYOUT: Layout = match Layout::from_size_align(SIZE, ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};
const _: () = assert!(SIZE <= ALIGN && align_of::<Chunk>() == align_of::<Place>());

/// The place of one task.
pub(crate) struct Place(*mut ());

/// In the lowest bit of a free place.
const FREE: usize = 1;
const _: () = assert!(align_of::<Place>() > FREE && align_of::<crate::Header>() > FREE);

/// What its places follow upon.
struct Chunk {
    /// In a cell for the model alone, which sees by it that nobody looks once it is freed.
    releases: UnsafeCell<NonNull<Releases>>,
    older: Option<ChunkPtr>,
}

type ChunkPtr = NonNull<Chunk>;

/// The places of one owner.
pub(crate) struct Table {
    newest: Option<ChunkPtr>,
    free: Option<NonNull<Place>>,
    len: usize,
}

impl Table {
    pub(crate) const EMPTY: Self = Self {
        newest: None,
        free: None,
        len: 0,
    };

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Notes a task. Allocates when no place is free.
    #[inline]
    pub(crate) fn insert(&mut self, task: TaskPtr, releases: NonNull<Releases>) -> NonNull<Place> {
        let place = match self.free {
            Some(place) => place,
            None => self.grow(releases),
        };
        // SAFETY: a free place of this table's, which is exclusive (rule 2).
        let Place(next) = unsafe { place.replace(Place(task.as_ptr().cast())) };
        self.free = NonNull::new(next.map_addr(|a| a & !FREE).cast());
        self.len += 1;
        place
    }

    /// Gives a place up.
    ///
    /// # Safety
    /// `insert` of this table gave it, and it was not removed since.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, place: NonNull<Place>) {
        // SAFETY: the caller says that it is there.
        unsafe { self.put_free(place) };
        self.len -= 1;
        if self.len == 0 {
            self.shrink();
        }
    }

    /// # Safety
    /// In a chunk of this table, and no task's.
    unsafe fn put_free(&mut self, place: NonNull<Place>) {
        let next = self
            .free
            .replace(place)
            .map_or(ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: the caller says that it is there; rule 2.
        unsafe { place.write(Place(next.map_addr(|a| a | FREE).cast())) };
    }

    #[cold]
    fn grow(&mut self, releases: NonNull<Releases>) -> NonNull<Place> {
        // SAFETY: the layout has a size.
        let block = unsafe { alloc(LAYOUT) }.cast();
        let Some(chunk) = ChunkPtr::new(block) else {
            ::alloc::alloc::handle_alloc_error(LAYOUT)
        };
        let head = Chunk {
            releases: UnsafeCell::new(releases),
            older: self.newest.replace(chunk),
        };
        // SAFETY: fresh, and large enough.
        unsafe { chunk.write(head) };
        self.free_all_of(chunk);
        place(chunk, 0)
    }

    /// The first one of it is to be the next that is given out.
    fn free_all_of(&mut self, chunk: ChunkPtr) {
        for i in (0..PLACES).rev() {
            // SAFETY: in this table, and none of them is a task's.
            unsafe { self.put_free(place(chunk, i)) };
        }
    }

    /// The last task has gone.
    fn shrink(&mut self) {
        let Some(newest) = self.newest else { return };
        // SAFETY: a chunk of this table, which no task has a place in.
        let head = unsafe { &mut *newest.as_ptr() };
        let older = head.older.take();
        if older.is_some() {
            // SAFETY: as above, and the table has let go of them.
            unsafe { free_chunks(older) };
            self.free = None;
            self.free_all_of(newest);
        }
    }

    /// A task, if there is one: from it [`after`] leads to all the others.
    pub(crate) fn first(&self) -> Option<TaskPtr> {
        first_of(self.newest, 0)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.len == 0 {
            // SAFETY: as in `shrink`.
            unsafe { free_chunks(self.newest.take()) };
        } // Else rule 3.
    }
}

/// The task that comes after the one of this place.
///
/// # Safety
/// The place is a task's, of a table that is the caller's.
pub(crate) unsafe fn after(taken: NonNull<Place>) -> Option<TaskPtr> {
    let chunk = chunk_of(taken);
    // SAFETY: both are of one chunk.
    let index = unsafe { taken.offset_from(place(chunk, 0)) };
    first_of(Some(chunk), index.unsigned_abs() + 1)
}

/// The stack of the owner.
///
/// # Safety
/// The place is a task's. LISTED keeps it so while this looks.
pub(crate) unsafe fn releases(taken: NonNull<Place>) -> NonNull<Releases> {
    // SAFETY: its chunk is there (rule 3).
    let releases = unsafe { &(*chunk_of(taken).as_ptr()).releases };
    // SAFETY: it doesn't change (rule 2).
    releases.with(|releases| unsafe { *releases })
}

fn chunk_of(place: NonNull<Place>) -> ChunkPtr {
    let chunk = place.as_ptr().map_addr(|a| a & !(ALIGN - 1)).cast();
    // SAFETY: where the block begins.
    unsafe { NonNull::new_unchecked(chunk) }
}

fn place(chunk: ChunkPtr, index: usize) -> NonNull<Place> {
    debug_assert!(index <= PLACES);
    // SAFETY: places follow upon what a chunk begins with.
    let first = unsafe { chunk.add(1) }.cast::<Place>();
    // SAFETY: in the block, or at its end.
    unsafe { first.add(index) }
}

/// The first task from a place on, in this chunk and the older ones.
fn first_of(mut chunk: Option<ChunkPtr>, mut index: usize) -> Option<TaskPtr> {
    while let Some(at) = chunk {
        while index < PLACES {
            // SAFETY: in a live chunk, and written.
            let Place(task) = unsafe { place(at, index).read() };
            if task.addr() & FREE == 0 {
                return NonNull::new(task.cast());
            }
            index += 1;
        }
        // SAFETY: as above.
        chunk = unsafe { (*at.as_ptr()).older };
        index = 0;
    }
    None
}

/// # Safety
/// Nobody looks at them any more.
unsafe fn free_chunks(mut chunk: Option<ChunkPtr>) {
    while let Some(at) = chunk {
        // SAFETY: not freed yet, and nobody else's.
        let head = unsafe { &mut *at.as_ptr() };
        head.releases.retire();
        chunk = head.older;
        // SAFETY: `grow` got the block with this layout.
        unsafe { dealloc(at.as_ptr().cast(), LAYOUT) };
    }
}

#[cfg(all(
    test,
    feature = "std",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
mod tests;
