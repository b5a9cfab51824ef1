//! Where an owner notes its tasks: a place for each, in chunks of places.
//!
//! 1. A place is a word, which names a task, or the next free place. The task in turn knows its place; and the chunk around a place, which its address
//!    tells, names the owner's stack. So a list takes two words of a task, one here and one in its cell, and a task comes and goes without a touch
//!    of another: its place is on a line with those of its neighbours here, and most often the last that was given up.
//! 2. Places are the owner's alone. The name of the stack is written before any place of the chunk is given out, and not changed: whoever completes a task
//!    may read it until the task is on that stack.
//! 3. A chunk stays while any place of the table is taken. When the last task goes nobody reads any more, since who completes a task elsewhere has read before the push: all chunks
//!    but one go, too. A table that is dropped with tasks in it leaks its chunks.
//! 4. The places of the newest chunk are given out in turn, and none is written before that. So a small list costs a block of memory, and no more.
//! 5. An allocator must not come back to the list that calls it, which is borrowed meanwhile: a chunk that was added in between would count as full.
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
/// What a chunk is aligned to.
const ALIGN: usize = if MODELLED { 256 } else { 1_024 };
/// What the C libraries' allocators add to a block: with it a chunk is as large as its alignment, and the next one follows upon it.
const SPARE: usize = 2 * size_of::<usize>();
/// In a chunk.
const PLACES: usize = if MODELLED {
    2 // So few that there is more than one chunk.
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

/// In the lowest bit of a free place.
const FREE: usize = 1;
const _: () = assert!(align_of::<Place>() > FREE && align_of::<Header>() > FREE);

/// What a chunk begins with; its places follow.
struct Chunk {
    /// Written once. In a cell for the model alone, which sees by it that whoever completes a task has looked before the chunk is freed.
    releases: UnsafeCell<NonNull<Releases>>,
    older: Option<ChunkPtr>,
}

type ChunkPtr = NonNull<Chunk>;

/// The places of one owner.
pub(crate) struct Table {
    newest: Option<ChunkPtr>,
    /// Places of `newest` that were given out since the table last let go of chunks, be they free by now. The others are not read.
    begun: usize,
    free: Option<NonNull<Place>>,
    len: usize,
    /// For the model, which sees by it that the places are touched by the owner alone.
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

    /// Notes a task. Allocates when no place is free.
    ///
    /// # Safety
    /// `releases` is the owner's stack: the same each time, and live as long as a task is in the table.
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
                // SAFETY: a free place of this table's, which names the next.
                let Place(next) = unsafe { place.replace(noted) };
                self.free = NonNull::new(next.map_addr(|a| a & !FREE).cast());
                place
            }
            None => self.begin(noted, releases),
        };
        self.len += 1;
        place
    }

    /// Takes a place that was never given out.
    #[inline(never)]
    fn begin(&mut self, noted: Place, releases: NonNull<Releases>) -> NonNull<Place> {
        let chunk = match self.newest {
            Some(newest) if self.begun < PLACES => newest,
            _ => self.grow(releases),
        };
        self.owner.with_mut(|_| ());
        // SAFETY: a chunk of this table's, and there is one more place in it.
        let place = unsafe { place(chunk, self.begun) };
        // SAFETY: in the chunk, and no task's.
        unsafe { place.write(noted) };
        self.begun += 1;
        place
    }

    #[cold]
    fn grow(&mut self, releases: NonNull<Releases>) -> ChunkPtr {
        // SAFETY: the layout has a size.
        let block = unsafe { alloc(LAYOUT) }.cast();
        let Some(chunk) = ChunkPtr::new(block) else {
            ::alloc::alloc::handle_alloc_error(LAYOUT)
        };
        let head = Chunk {
            releases: UnsafeCell::new(releases),
            older: self.newest.replace(chunk),
        };
        self.begun = 0;
        // SAFETY: fresh, of this layout, and so large and aligned enough.
        unsafe { chunk.write(head) };
        chunk
    }

    /// Gives a place up.
    ///
    /// # Safety
    /// `insert` of this table gave it, and it was not removed since.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, place: NonNull<Place>) {
        self.owner.with_mut(|_| ());
        let next = self
            .free
            .replace(place)
            .map_or(ptr::null_mut(), NonNull::as_ptr);
        let free = Place(next.map_addr(|a| a | FREE).cast());
        // SAFETY: a task's until now, and so in a chunk of this table (rule 3).
        unsafe { place.write(free) };
        self.len -= 1;
        if self.len == 0 {
            self.shrink();
        }
    }

    /// The last task has gone.
    #[inline]
    fn shrink(&mut self) {
        let Some(newest) = self.newest else { return };
        // SAFETY: a chunk of this table, and no task is left whose completion would look at it.
        let head = unsafe { &mut *newest.as_ptr() };
        if let Some(older) = head.older.take() {
            (self.free, self.begun) = (None, 0); // First (rule 5).
            // SAFETY: as above, and the table has let go of them.
            unsafe { free_chunks(Some(older)) };
        }
    }

    /// A task, if there is one: from it [`after`](Self::after) leads to all the others.
    pub(crate) fn first(&self) -> Option<TaskPtr> {
        self.first_of(self.newest?, 0)
    }

    /// The task that comes after the one of this place. A look at each place between them.
    ///
    /// # Safety
    /// The place is a task's, of this table.
    pub(crate) unsafe fn after(&self, taken: NonNull<Place>) -> Option<TaskPtr> {
        // SAFETY: of this table.
        let chunk = unsafe { chunk_of(taken) };
        // SAFETY: a chunk has a first place.
        let first = unsafe { place(chunk, 0) };
        // SAFETY: both are of one chunk.
        let index = unsafe { taken.offset_from(first) };
        self.first_of(chunk, index.unsigned_abs() + 1)
    }

    /// The first task from a place on, in this chunk of the table and the older ones.
    fn first_of(&self, mut chunk: ChunkPtr, mut index: usize) -> Option<TaskPtr> {
        self.owner.with(|_| ());
        loop {
            let begun = if Some(chunk) == self.newest {
                self.begun
            } else {
                PLACES
            };
            while index < begun {
                // SAFETY: one of its places.
                let place = unsafe { place(chunk, index) };
                // SAFETY: begun, and so written.
                let Place(task) = unsafe { place.read() };
                if task.addr() & FREE == 0 {
                    return NonNull::new(task.cast());
                }
                index += 1;
            }
            // SAFETY: a chunk of this table, whose `older` is the owner's.
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
        } // Else rule 3.
    }
}

/// The stack of the owner.
///
/// # Safety
/// The place is a task's. LISTED keeps it so while this looks.
pub(crate) unsafe fn releases(taken: NonNull<Place>) -> NonNull<Releases> {
    // SAFETY: passed on.
    let chunk = unsafe { chunk_of(taken) };
    // SAFETY: it is there (rule 3).
    let releases = unsafe { &(*chunk.as_ptr()).releases };
    // SAFETY: it doesn't change (rule 2).
    releases.with(|releases| unsafe { *releases })
}

/// # Safety
/// The place is one of a live chunk.
unsafe fn chunk_of(place: NonNull<Place>) -> ChunkPtr {
    let chunk = place.as_ptr().map_addr(|a| a & !(ALIGN - 1)).cast();
    // SAFETY: a chunk is aligned to ALIGN and no larger, so this is where the block begins.
    unsafe { NonNull::new_unchecked(chunk) }
}

/// # Safety
/// The chunk is live, and the index below [`PLACES`].
unsafe fn place(chunk: ChunkPtr, index: usize) -> NonNull<Place> {
    debug_assert!(index < PLACES);
    // SAFETY: places follow upon what a chunk begins with.
    let first = unsafe { chunk.add(1) }.cast::<Place>();
    // SAFETY: in the block.
    unsafe { first.add(index) }
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
