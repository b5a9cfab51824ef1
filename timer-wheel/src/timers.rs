//! A timer wheel of values, without `unsafe` for its user.
//!
//! | state of a timer | value | where it is |
//! |---|---|---|
//! | *armed* | yes | in the wheel |
//! | *free* | no | in the list that starts at `free` |
//! | *retired* | no | in no list: its generations are used up |
//!
//! 1. Timers live in blocks, which do not move, and are freed only with the `Timers`. A block is
//!    accessed through its pointer, never through a `Box`, which would claim unique access.
//! 2. A timer is in one of the states above, so it is in this wheel or in none.
//! 3. A key is a timer's index and generation. The generation changes when the timer is freed. A
//!    timer that has used all generations is retired with the last one. So a key with the timer's
//!    present generation was made when the timer was armed last, or the timer is retired. No key
//!    names a timer that was armed again after the key was made.
use crate::{Entry, Node, Step, Wheel};
use alloc::{boxed::Box, vec::Vec};
use core::{
    fmt,
    mem::{self, ManuallyDrop},
    num::NonZeroU32,
    ptr::NonNull,
};

/// The number of timers in a block.
const BLOCK: usize = 64;
/// The index that names no timer.
const NIL: u32 = u32::MAX;

/// A timer wheel of values, named by keys: a [`Wheel`] that owns its entries.
///
/// Timers live in blocks of 64, which are reused, and freed with the `Timers`. So an insert
/// allocates only if there are more timers at a time than ever before. A timer with a value of 8
/// bytes takes 48 bytes on a 64-bit target.
///
/// The order, the cost and the meaning of ticks are those of [`Wheel`].
///
/// ```
/// use timer_wheel::Timers;
///
/// let mut timers = Timers::new();
/// let tea = timers.insert(180_000, "tea");
/// timers.insert(240_000, "egg");
/// assert_eq!(timers.next_expiration(), Some(180_000));
///
/// assert_eq!(timers.remove(tea), Some("tea"));
/// assert_eq!(timers.remove(tea), None);
/// assert!(timers.pop_expired(239_999).is_none());
/// assert_eq!(timers.pop_expired(240_007).unwrap().value, "egg");
/// ```
pub struct Timers<V> {
    /// The wheel is never dropped: its drop would unlink each timer in vain, as the timers are
    /// freed with their blocks.
    wheel: ManuallyDrop<Wheel<Timer<V>>>,
    blocks: Vec<Block<V>>,
    /// The first free timer, or `NIL`.
    free: u32,
}

// SAFETY: `Timers` owns the nodes and values that it points to.
unsafe impl<V: Send> Send for Timers<V> {}

// SAFETY: shared access returns only shared references to values, and numbers.
unsafe impl<V: Sync> Sync for Timers<V> {}

/// Names a timer of a [`Timers`] until the timer expires or is removed. After that it names none.
///
/// Do not use a key with another `Timers`, where it may name another timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    index: u32,
    generation: NonZeroU32,
}

/// A timer that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<V> {
    /// The key that named the timer. It names no timer now.
    pub key: Key,
    /// The timer's deadline, or the [`now`](Timers::now) at which it was inserted, if that tick was
    /// later.
    pub deadline: u64,
    /// The timer's value.
    pub value: V,
}

/// The first of `BLOCK` timers.
struct Block<V>(NonNull<Timer<V>>);

struct Timer<V> {
    node: Node<Self>,
    index: u32,
    generation: NonZeroU32,
    content: Content<V>,
}

enum Content<V> {
    Armed(V),
    /// The next free timer, or `NIL`.
    Free(u32),
}

/// The wheel's handle of a timer: the timer is armed.
struct Armed<V>(NonNull<Timer<V>>);

// SAFETY: `Timers` makes one handle of a timer that it arms, and takes the handle back before it
// frees the timer. A block does not move, and no reference is made to a timer's node.
unsafe impl<V> Entry for Timer<V> {
    type Handle = Armed<V>;

    fn into_ptr(handle: Armed<V>) -> NonNull<Self> {
        handle.0
    }

    unsafe fn from_ptr(entry: NonNull<Self>) -> Armed<V> {
        Armed(entry)
    }

    unsafe fn node(entry: NonNull<Self>) -> NonNull<Node<Self>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field of a non-null pointee is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

impl<V> Timers<V> {
    /// Creates an empty set of timers at tick 0. Allocates nothing.
    pub const fn new() -> Self {
        Self::at(0)
    }

    /// Creates an empty set of timers at a tick. Allocates nothing.
    pub const fn at(now: u64) -> Self {
        Self {
            wheel: ManuallyDrop::new(Wheel::at(now)),
            blocks: Vec::new(),
            free: NIL,
        }
    }

    /// Counts the timers. O(1).
    pub fn len(&self) -> usize {
        self.wheel.len()
    }

    /// Returns whether there are no timers.
    pub fn is_empty(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Returns the tick to which the timers have advanced: [`Wheel::now`].
    pub fn now(&self) -> u64 {
        self.wheel.now()
    }

    /// Inserts a value, which expires when the timers advance to `deadline` or beyond. O(1).
    ///
    /// If the deadline has passed, the value expires when the timers next advance.
    ///
    /// # Panics
    /// If there are 2³² − 64 timers already.
    pub fn insert(&mut self, deadline: u64, value: V) -> Key {
        if self.free == NIL {
            self.grow();
        }
        let timer = self.timer(self.free);
        // SAFETY: the timer is live (rule 1).
        let content = unsafe { &mut (*timer.as_ptr()).content };
        if let Content::Free(next) = mem::replace(content, Content::Armed(value)) {
            self.free = next;
        }
        self.wheel.insert(Armed(timer), deadline);
        key(timer)
    }

    /// Removes a timer and returns its value. Returns `None` if the timer has expired or was
    /// removed. O(1).
    pub fn remove(&mut self, key: Key) -> Option<V> {
        let timer = self.find(key)?;
        // SAFETY: rule 2: the timer is in this wheel or in none.
        let armed = unsafe { self.wheel.remove(timer) }?;
        Some(self.release(armed))
    }

    /// Gives a timer another deadline, as if it were inserted now: it expires after the other
    /// timers of that tick. Returns false if the timer has expired or was removed. O(1).
    pub fn reset(&mut self, key: Key, deadline: u64) -> bool {
        let Some(timer) = self.find(key) else {
            return false;
        };
        // SAFETY: rule 2: the timer is in this wheel or in none.
        let Some(armed) = (unsafe { self.wheel.remove(timer) }) else {
            return false;
        };
        self.wheel.insert(armed, deadline);
        true
    }

    /// Borrows the value of a timer. Returns `None` if the timer has expired or was removed.
    pub fn get(&self, key: Key) -> Option<&V> {
        let timer = self.find(key)?;
        // SAFETY: the timer is live (rule 1), and `self` borrows all timers.
        match unsafe { &(*timer.as_ptr()).content } {
            Content::Armed(value) => Some(value),
            Content::Free(_) => None,
        }
    }

    /// Borrows the value of a timer mutably. Returns `None` if the timer has expired or was
    /// removed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut V> {
        let timer = self.find(key)?;
        // SAFETY: the timer is live (rule 1), and `self` borrows all timers mutably.
        match unsafe { &mut (*timer.as_ptr()).content } {
            Content::Armed(value) => Some(value),
            Content::Free(_) => None,
        }
    }

    /// Returns the deadline of a timer, or the [`now`](Self::now) at which it was inserted, if that
    /// tick was later. Returns `None` if the timer has expired or was removed.
    pub fn deadline(&self, key: Key) -> Option<u64> {
        let timer = self.find(key)?;
        // SAFETY: rule 2: the timer is in this wheel or in none.
        unsafe { self.wheel.deadline(timer) }
    }

    /// Calls `expired` with each timer that expires at `now` or earlier, in order. `now` is the
    /// present tick. If it is before the [tick of the timers](Self::now), they use their own tick
    /// instead.
    ///
    /// The callback also gets these `Timers`, and may do anything with them. A timer that it
    /// inserts with a deadline of at most `now` expires in the same call: see [`Wheel::advance`].
    ///
    /// ```
    /// use timer_wheel::Timers;
    ///
    /// let mut timers = Timers::new();
    /// timers.insert(5, "every five ticks");
    /// let mut ticks = Vec::new();
    /// timers.advance(12, |timers, expired| {
    ///     ticks.push(expired.deadline);
    ///     timers.insert(expired.deadline + 5, expired.value);
    /// });
    /// assert_eq!(ticks, [5, 10]);
    /// assert_eq!(timers.next_expiration(), Some(15));
    /// ```
    pub fn advance(&mut self, now: u64, mut expired: impl FnMut(&mut Self, Expired<V>)) {
        while let Some(timer) = self.pop_expired(now) {
            expired(self, timer);
        }
    }

    /// Takes the next timer that expires at `now` or before: one iteration of
    /// [`advance`](Self::advance). One call may move many timers, as [`Wheel::pop_expired`] does.
    pub fn pop_expired(&mut self, now: u64) -> Option<Expired<V>> {
        let armed = self.wheel.pop_expired(now)?;
        Some(self.expired(armed))
    }

    /// Takes the next timer that expires at `now` or before, or moves up to 32 timers. O(1).
    ///
    /// Timers may have to move before one expires: see [`Wheel::step`].
    /// [`pop_expired`](Self::pop_expired) is a loop of steps that ends with a timer or with
    /// [`Step::Done`]. A lock may be released after any step.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use timer_wheel::{Step, Timers};
    ///
    /// /// Holds the lock for a bounded time, however many timers there are.
    /// fn fire<V>(timers: &Mutex<Timers<V>>, now: u64, mut fire: impl FnMut(V)) {
    ///     loop {
    ///         let step = timers.lock().unwrap().step(now);
    ///         match step {
    ///             Step::Expired(expired) => fire(expired.value),
    ///             Step::Moved => {}
    ///             Step::Done => return,
    ///         }
    ///     }
    /// }
    ///
    /// let timers = Mutex::new(Timers::new());
    /// timers.lock().unwrap().insert(100, "soon");
    /// let mut fired = Vec::new();
    /// fire(&timers, 100, |value| fired.push(value));
    /// assert_eq!(fired, ["soon"]);
    /// ```
    pub fn step(&mut self, now: u64) -> Step<Expired<V>> {
        match self.wheel.step(now) {
            Step::Expired(armed) => Step::Expired(self.expired(armed)),
            Step::Moved => Step::Moved,
            Step::Done => Step::Done,
        }
    }

    /// Returns the exact tick at which the first timer expires, or [`now`](Self::now) if a timer is
    /// due. Returns `None` if there are no timers. For the cost see [`Wheel::next_expiration`].
    pub fn next_expiration(&mut self) -> Option<u64> {
        self.wheel.next_expiration()
    }

    /// Returns a tick before which no timer expires: see [`Wheel::next_bound`]. O(1).
    pub fn next_bound(&self) -> Option<u64> {
        self.wheel.next_bound()
    }

    /// Removes and drops all timers. Keeps their memory.
    ///
    /// If the drop of a value panics, the remaining timers stay armed.
    pub fn clear(&mut self) {
        while let Some(armed) = self.wheel.pop_any() {
            drop(self.release(armed));
        }
    }

    /// Returns the timer of a key, which is armed or retired (rule 3).
    #[inline]
    fn find(&self, key: Key) -> Option<NonNull<Timer<V>>> {
        if key.index as usize >= self.blocks.len() * BLOCK {
            return None;
        }
        let timer = self.timer(key.index);
        // SAFETY: rule 1.
        let generation = unsafe { (*timer.as_ptr()).generation };
        (generation == key.generation).then_some(timer)
    }

    /// Returns the timer at an index, which must be in a block.
    #[inline]
    fn timer(&self, index: u32) -> NonNull<Timer<V>> {
        let index = index as usize;
        let first = self.blocks[index / BLOCK].0;
        // SAFETY: a block has `BLOCK` timers.
        unsafe { first.add(index % BLOCK) }
    }

    /// Adds a block of free timers.
    #[cold]
    fn grow(&mut self) {
        let first = self.blocks.len() * BLOCK;
        // The limit keeps `NIL` from being an index.
        assert!(
            first + BLOCK <= NIL as usize,
            "there are 2^32 - 64 timers already"
        );
        // The place in `blocks` is reserved first, so that a failed allocation loses no block.
        self.blocks.reserve(1);
        let last = first + BLOCK - 1;
        let timers = (first..=last).map(|index| Timer {
            node: Node::new(),
            index: index as u32,
            generation: NonZeroU32::MIN,
            content: Content::Free(match index == last {
                true => self.free,
                false => index as u32 + 1,
            }),
        });
        self.blocks.push(Block::new(timers.collect()));
        self.free = first as u32;
    }

    /// Frees a timer that has just expired.
    #[inline]
    fn expired(&mut self, armed: Armed<V>) -> Expired<V> {
        Expired {
            key: key(armed.0),
            // An entry expires at its own tick, to which the wheel has just advanced.
            deadline: self.wheel.now(),
            value: self.release(armed),
        }
    }

    /// Frees a timer and returns its value.
    #[inline]
    fn release(&mut self, armed: Armed<V>) -> V {
        let timer = armed.0.as_ptr();
        // SAFETY: rule 1.
        let index = unsafe { (*timer).index };
        // SAFETY: rule 1.
        let generation = unsafe { &mut (*timer).generation };
        let next = match generation.checked_add(1) {
            Some(next) => {
                *generation = next;
                mem::replace(&mut self.free, index)
            }
            // The timer is retired (rule 3).
            None => NIL,
        };
        // SAFETY: rule 1.
        let content = unsafe { &mut (*timer).content };
        match mem::replace(content, Content::Free(next)) {
            Content::Armed(value) => value,
            Content::Free(_) => unreachable!("a free timer was in the wheel"),
        }
    }
}

/// Returns the key of an armed timer.
#[inline]
fn key<V>(timer: NonNull<Timer<V>>) -> Key {
    let timer = timer.as_ptr();
    Key {
        // SAFETY: the timer is armed, so it is live.
        index: unsafe { (*timer).index },
        // SAFETY: as above.
        generation: unsafe { (*timer).generation },
    }
}

impl<V> Block<V> {
    /// # Panics
    /// If there are not `BLOCK` timers.
    fn new(timers: Box<[Timer<V>]>) -> Self {
        assert_eq!(timers.len(), BLOCK);
        let first = Box::into_raw(timers).cast::<Timer<V>>();
        // SAFETY: a box is not null.
        Self(unsafe { NonNull::new_unchecked(first) })
    }
}

impl<V> Drop for Block<V> {
    fn drop(&mut self) {
        let timers = core::ptr::slice_from_raw_parts_mut(self.0.as_ptr(), BLOCK);
        // SAFETY: the pointer came from `into_raw`, with that length.
        drop(unsafe { Box::from_raw(timers) });
    }
}

impl<V> Default for Timers<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> fmt::Debug for Timers<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("now", &self.now())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl<V> Timers<V> {
    /// Sets the generation of a timer to the last one.
    pub(crate) fn age(&mut self, key: Key) -> Key {
        let timer = self.timer(key.index).as_ptr();
        // SAFETY: rule 1.
        unsafe { (*timer).generation = NonZeroU32::MAX };
        Key {
            generation: NonZeroU32::MAX,
            ..key
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
pub(crate) const fn bytes_each<V>() -> usize {
    size_of::<Timer<V>>()
}
