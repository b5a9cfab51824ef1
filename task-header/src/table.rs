//! The table in which an owner keeps its tasks: one place per task, in chunks of places.
//!
//! | a place is | its word holds |
//! |---|---|
//! | *taken* | the address of a task |
//! | *free* | the address of the next free place, with the lowest bit set |
//! | *unbegun* | nothing: the word is not written yet. Only the newest chunk has such places |
//!
//! 1. A taken place names a task, and the task names its place. The address of a place gives its
//!    chunk, and the chunk names the owner's stack. So a list takes two words per task, one in the
//!    table and one in the cell. When the owner adds or removes a task, it touches no other task.
//!    It writes one place. A new task gets the place that was freed last, if any place is free.
//!    Places share cache lines.
//! 2. Only the owner touches the places. It writes a chunk's pointer to the stack before it gives
//!    out any place of the chunk, and never changes the pointer. The thread that completes a task
//!    may read the pointer until the task is on that stack.
//! 3. A chunk stays while any place of the table is taken. A thread that completes a task and is
//!    not the owner reads the chunk before it pushes the task. So when the last task has left the
//!    table, no thread reads a chunk any more, and the owner frees all chunks but one. A table that
//!    is dropped with tasks in it leaks its chunks.
//! 4. The owner gives out the places of the newest chunk in order, and does not write a place
//!    before it gives that place out. A small list costs one block of memory.
//! 5. The list is borrowed while it calls the allocator, so the allocator must not use that list.
//!    If the allocator added a chunk to the list, that chunk would later count as full.
use crate::{
    cell::{Header, Place, TaskPtr},
    releases::Releases,
};
use core::{ptr, ptr::NonNull};
use sync_shim::{
    alloc::{Layout, alloc, dealloc},
    atomic::Retire,
    cell::UnsafeCell,
};

const MODELLED: bool = cfg!(any(selvedge_loom, selvedge_shuttle));
/// The alignment of a chunk.
const ALIGN: usize = if MODELLED { 256 } else { 1_024 };
/// The bytes that the C libraries' allocators add to a block. Together with these bytes, a chunk is
/// as large as its alignment, so the next chunk may follow without a gap.
const SPARE: usize = 2 * size_of::<usize>();
/// The number of places in a chunk.
const PLACES: usize = if MODELLED {
    2 // So few that a model with three tasks has two chunks.
} else {
    (ALIGN - SPARE - size_of::<Chunk>()) / size_of::<Place>()
};
const SIZE: usize = size_of::<Chunk>() + PLACES * size_of::<Place>();
const LAYOUT: Layout = match Layout::from_size_align(SIZE, ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};
const _: () = assert!(SIZE <= ALIGN && align_of::<Chunk>() == align_of::<Place>());
#[cfg(target_pointer_width = "64")]
const _: () = assert!(MODELLED || PLACES == 124 && SIZE == 1_008);

/// The tag in the lowest bit of a free place.
const FREE: usize = 1;
const _: () = assert!(align_of::<Place>() > FREE && align_of::<Header>() > FREE);

/// The head of a chunk; its places follow.
struct Chunk {
    /// Written once. The `UnsafeCell` is only for the models: they check that a thread that
    /// completes a task reads this field before the chunk is freed.
    releases: UnsafeCell<NonNull<Releases>>,
    older: Option<ChunkPtr>,
}

type ChunkPtr = NonNull<Chunk>;

/// All places of one owner.
pub(crate) struct Table {
    newest: Option<ChunkPtr>,
    /// The number of places of `newest` that were given out since the table last freed chunks,
    /// including those that are free again. The other places of `newest` are never read.
    begun: usize,
    free: Option<NonNull<Place>>,
    len: usize,
    /// For the models, which check that only the owner touches the places.
    owner: UnsafeCell<()>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            newest: None,
            begun: 0,
            free: None,
            len: 0,
            owner: UnsafeCell::new(()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a task. Allocates if no place is free.
    ///
    /// # Safety
    /// `releases` points to the owner's stack. Each call passes the same pointer, and the stack is
    /// live while a task is in the table.
    #[inline]
    pub(crate) unsafe fn insert(
        &mut self,
        task: TaskPtr,
        releases: NonNull<Releases>,
    ) -> NonNull<Place> {
        let noted = Place(task.as_ptr().cast());
        let place = match self.free {
            Some(place) => {
                self.owner.with_mut(|_| ());
                // SAFETY: this is a free place of this table, and it names the next free one.
                let Place(next) = unsafe { place.replace(noted) };
                self.free = NonNull::new(next.map_addr(|a| a & !FREE).cast());
                place
            }
            None => self.begin(noted, releases),
        };
        self.len += 1;
        place
    }

    /// Takes the next unbegun place.
    #[inline(never)]
    fn begin(&mut self, noted: Place, releases: NonNull<Releases>) -> NonNull<Place> {
        let chunk = match self.newest {
            Some(newest) if self.begun < PLACES => newest,
            _ => self.grow(releases),
        };
        self.owner.with_mut(|_| ());
        // SAFETY: the chunk is the table's, and `begun` is below `PLACES`.
        let place = unsafe { place(chunk, self.begun) };
        // SAFETY: the place is in the chunk, and no task has the place.
        unsafe { place.write(noted) };
        self.begun += 1;
        place
    }

    #[cold]
    fn grow(&mut self, releases: NonNull<Releases>) -> ChunkPtr {
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc(LAYOUT) }.cast();
        let Some(chunk) = ChunkPtr::new(block) else {
            ::alloc::alloc::handle_alloc_error(LAYOUT)
        };
        let head = Chunk {
            releases: UnsafeCell::new(releases),
            older: self.newest.replace(chunk),
        };
        self.begun = 0;
        // SAFETY: the block is fresh and has this layout, so it is large and aligned enough.
        unsafe { chunk.write(head) };
        chunk
    }

    /// Frees a place.
    ///
    /// # Safety
    /// `insert` of this table returned the place, which has not been removed since.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, place: NonNull<Place>) {
        self.owner.with_mut(|_| ());
        let next = self
            .free
            .replace(place)
            .map_or(ptr::null_mut(), NonNull::as_ptr);
        let free = Place(next.map_addr(|a| a | FREE).cast());
        // SAFETY: the place was a task's until now, so it is in a chunk of this table (rule 3).
        unsafe { place.write(free) };
        self.len -= 1;
        if self.len == 0 {
            self.shrink();
        }
    }

    /// Frees all chunks but one, when the last task has gone.
    #[inline]
    fn shrink(&mut self) {
        let Some(newest) = self.newest else { return };
        // SAFETY: the chunk is the table's. No task is left, so no completion reads the chunk.
        let head = unsafe { &mut *newest.as_ptr() };
        if let Some(older) = head.older.take() {
            (self.free, self.begun) = (None, 0); // Before the allocator is called (rule 5).
            // SAFETY: as above, and the table no longer names these chunks.
            unsafe { free_chunks(Some(older)) };
        }
    }

    /// Returns the first task, if there is one. [`after`](Self::after) returns each further task.
    pub(crate) fn first(&self) -> Option<TaskPtr> {
        self.first_of(self.newest?, 0)
    }

    /// Returns the task that follows the task at this place. Reads each place between the two.
    ///
    /// # Safety
    /// The place is in this table, and is taken.
    pub(crate) unsafe fn after(&self, taken: NonNull<Place>) -> Option<TaskPtr> {
        // SAFETY: the place is in this table.
        let chunk = unsafe { chunk_of(taken) };
        // SAFETY: a chunk has a first place.
        let first = unsafe { place(chunk, 0) };
        // SAFETY: both places are in one chunk.
        let index = unsafe { taken.offset_from(first) };
        self.first_of(chunk, index.unsigned_abs() + 1)
    }

    /// Returns the first task at or after a place, in this chunk and the older ones.
    fn first_of(&self, mut chunk: ChunkPtr, mut index: usize) -> Option<TaskPtr> {
        self.owner.with(|_| ());
        loop {
            let begun = if Some(chunk) == self.newest {
                self.begun
            } else {
                PLACES
            };
            while index < begun {
                // SAFETY: the chunk is the table's, and `index` is below `PLACES`.
                let place = unsafe { place(chunk, index) };
                // SAFETY: the place has been begun, so it is written.
                let Place(task) = unsafe { place.read() };
                if task.addr() & FREE == 0 {
                    return NonNull::new(task.cast());
                }
                index += 1;
            }
            // SAFETY: the chunk is the table's, and only the owner touches `older`.
            chunk = unsafe { (*chunk.as_ptr()).older }?;
            index = 0;
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.owner.with_mut(|_| ());
        if self.len == 0 {
            // SAFETY: as in `shrink`.
            unsafe { free_chunks(self.newest.take()) };
        } // Otherwise the chunks leak (rule 3).
    }
}

/// Returns the stack of the owner whose table has this place.
///
/// # Safety
/// The place is taken, and its task's LISTED bit keeps it taken during the call.
pub(crate) unsafe fn releases(taken: NonNull<Place>) -> NonNull<Releases> {
    // SAFETY: the caller promises that the place is taken, so its chunk is live (rule 3).
    let chunk = unsafe { chunk_of(taken) };
    // SAFETY: the chunk is live (rule 3).
    let releases = unsafe { &(*chunk.as_ptr()).releases };
    // SAFETY: the pointer to the stack never changes (rule 2).
    releases.with(|releases| unsafe { *releases })
}

/// # Safety
/// The place is in a live chunk.
unsafe fn chunk_of(place: NonNull<Place>) -> ChunkPtr {
    let chunk = place.as_ptr().map_addr(|a| a & !(ALIGN - 1)).cast();
    // SAFETY: a chunk is aligned to `ALIGN` and is no larger, so its block begins at this address.
    unsafe { NonNull::new_unchecked(chunk) }
}

/// # Safety
/// The chunk is live, and the index is below [`PLACES`].
unsafe fn place(chunk: ChunkPtr, index: usize) -> NonNull<Place> {
    debug_assert!(index < PLACES);
    // SAFETY: the places follow the chunk's head.
    let first = unsafe { chunk.add(1) }.cast::<Place>();
    // SAFETY: the index is below `PLACES`, so the place is in the block.
    unsafe { first.add(index) }
}

/// # Safety
/// No other thread reads these chunks any more, and nothing else frees them.
unsafe fn free_chunks(mut chunk: Option<ChunkPtr>) {
    while let Some(at) = chunk {
        // SAFETY: the chunk was not freed yet, and no other thread uses it.
        let head = unsafe { &mut *at.as_ptr() };
        head.releases.retire();
        chunk = head.older;
        // SAFETY: `grow` allocated the block with this layout.
        unsafe { dealloc(at.as_ptr().cast(), LAYOUT) };
    }
}

#[cfg(all(
    test,
    feature = "std",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
mod tests;
