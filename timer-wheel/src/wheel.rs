//! A hierarchical timer wheel: entries in levels of 64 slots, by deadline.
//!
//! # Terms
//!
//! | term | meaning |
//! |---|---|
//! | *tick* | a moment: a number of eleven digits of six bits |
//! | *level* | a digit's place in a tick; level 0 is the lowest digit |
//! | *slot* | a digit's value at a level, with the ring (circular list) of its entries |
//! | `now` | the last tick to which the wheel has advanced |
//! | `when` | the tick at which an entry expires |
//! | *file* | to put an entry into its slot |
//! | *cascade* | to move the entries of one slot to lower levels |
//!
//! # Rules
//!
//! 1. No entry expires before `now`: each `when` is at least `now`.
//! 2. An entry's level is the highest digit in which its `when` differs from `now`. Its slot is the
//!    value of that digit of `when`. An entry whose `when` equals `now` is at level 0.
//! 3. So entries of a level expire before those of higher levels. Within a level, entries of a slot
//!    expire before those of higher slots. All entries of a slot at level 0 expire at the same
//!    tick. The first entry to expire is in the lowest slot of the lowest level that is not empty.
//! 4. `now` never advances past the start of the first slot with entries. No entry expires before
//!    that start. The advance does not change the highest digit in which the entries of all other
//!    slots differ from `now`, so rule 2 still holds for them. When `now` reaches the start of a
//!    slot above level 0, the entries of that slot no longer differ from `now` in the slot's digit.
//!    They become the *moving* entries, in a ring of their own, and a cascade files them again,
//!    some at a time.
//! 5. While `moving` is not 0, each entry that rule 2 files below the level `moving` is in the
//!    moving ring, or was filed from it. A new entry with such a `when` goes to the end of the
//!    moving ring. No entry expires, and `now` does not change, until the ring is empty.
//! 6. Entries enter a ring at its end, leave it from anywhere, and move from its front. So entries
//!    with the same `when` are in one ring, in the order in which they were inserted. While entries
//!    move, entries with the same `when` may be in two rings (rule 5). The entries that are filed
//!    already are the older ones.
//!
//! Each cascade files an entry at a lower level. After the first cascade, `when` and `now` differ
//! only in the digits below the slot's level. So an entry moves at most once for each of these
//! digits.
use crate::{
    Entry,
    list::{self, Head},
};
use core::{fmt, marker::PhantomData, ptr::NonNull};

/// The number of bits of a digit.
const DIGIT: u32 = 6;
/// The number of slots of a level.
const SLOTS: usize = 1 << DIGIT;
/// The number of digits of a tick.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// The number of slots of all levels. The highest digit has only `u64::BITS % DIGIT` bits.
const ALL: usize = (LEVELS - 1) * SLOTS + (1 << (u64::BITS % DIGIT));
/// The index of the moving ring's head.
const MOVING: usize = ALL;
/// The largest number of entries that a step moves.
const MOVES: usize = 32;

/// The state of a level's slots.
#[derive(Clone, Copy)]
struct Level {
    /// A bit for each slot with entries.
    occupied: u64,
    /// A bit for each slot whose ring is in the order of expiry. The bit of an empty slot has no
    /// meaning.
    sorted: u64,
    /// The first tick at which an entry of the level expires, or 0 if that tick is unknown. Not
    /// used at level 0.
    earliest: u64,
}

/// A hierarchical timer wheel of intrusive entries, in the order of their deadlines.
///
/// A wheel has no clock: the user says which tick is the present one, and how long a tick is.
///
/// Entries are linked in place, and nothing is allocated. Most operations are O(1). But
/// [`advance`](Self::advance), [`pop_expired`](Self::pop_expired) and a drop take time for each
/// entry that they move or return, and [`next_expiration`](Self::next_expiration) documents its own
/// cost. A wheel is 5.5 kB on a 64-bit target.
///
/// Entries expire in the order of their deadlines. Those of one tick expire in the order in which
/// they were inserted, however often they were moved. If a deadline has passed when its entry is
/// inserted, the entry expires at the [wheel's tick](Self::now), after the entries that were
/// inserted for that tick.
///
/// A wheel has no lock. If other threads fire its timers, share a `Mutex<Wheel<T>>`. Take the
/// handles out under the lock, and use them after you release it. [`step`](Self::step) bounds the
/// work under the lock.
///
/// [`Timers`](crate::Timers) needs no `unsafe`.
///
/// This example shows the sleeps of a driver. The wheel and a task share each sleep, and a reset to
/// a later tick takes no lock:
///
/// ```
/// mod sleep {
///     use core::ptr::NonNull;
///     use std::sync::{
///         Arc,
///         atomic::{AtomicU64, Ordering::*},
///     };
///     use timer_wheel::{Entry, Node};
///
///     /// No deadline: the sleep has fired.
///     const FIRED: u64 = u64::MAX;
///
///     pub struct Sleep {
///         node: Node<Sleep>,
///         /// The deadline, which may be later than the wheel's, or `FIRED`: one word, so that
///         /// either the reset or the firing comes first.
///         state: AtomicU64,
///     }
///
///     /// The right to insert a sleep. Each sleep has one at a time: the type is not `Clone`, and
///     /// only this module makes it.
///     pub struct Armed(Arc<Sleep>);
///
///     impl Sleep {
///         pub fn new(deadline: u64) -> (Arc<Sleep>, Armed) {
///             assert_ne!(deadline, FIRED);
///             let state = AtomicU64::new(deadline);
///             let sleep = Arc::new(Sleep { node: Node::new(), state });
///             (sleep.clone(), Armed(sleep))
///         }
///
///         /// Sets a deadline that is not before the last one. If the sleep has fired already,
///         /// returns the right to insert the sleep again, and the caller must insert it.
///         #[must_use = "a sleep that has fired must be inserted again"]
///         pub fn reset(self: &Arc<Self>, deadline: u64) -> Option<Armed> {
///             assert_ne!(deadline, FIRED);
///             // Ordering: Acquire pairs with `fire`. So the wheel's last use of the node comes
///             // before the next use, even if a different lock protects the next use.
///             let fired = self.state.swap(deadline, Acquire) == FIRED;
///             fired.then(|| Armed(self.clone()))
///         }
///     }
///
///     impl Armed {
///         /// Fires the sleep, unless it was reset to a deadline after `now`. In that case the
///         /// caller inserts it again, before releasing the lock under which the entry expired.
///         pub fn fire(self, now: u64) -> Result<Arc<Sleep>, (Armed, u64)> {
///             let Armed(sleep) = self;
///             // Ordering: Release pairs with `reset`. A failure only reads a number: Relaxed.
///             let fired = sleep.state.fetch_update(Release, Relaxed, |deadline| {
///                 (deadline <= now).then_some(FIRED)
///             });
///             match fired {
///                 Ok(_) => Ok(sleep),
///                 Err(later) => Err((Armed(sleep), later)),
///             }
///         }
///     }
///
///     // SAFETY: an `Arc` keeps its content in place, and no code makes a `&mut Sleep`. An `Armed`
///     // is unique: `new` makes a sleep with one. A reset makes another only if it replaces
///     // `FIRED`, which `fire` stores when it consumes the last one.
///     unsafe impl Entry for Sleep {
///         type Handle = Armed;
///
///         fn into_ptr(armed: Armed) -> NonNull<Sleep> {
///             unsafe { NonNull::new_unchecked(Arc::into_raw(armed.0).cast_mut()) }
///         }
///         unsafe fn from_ptr(sleep: NonNull<Sleep>) -> Armed {
///             Armed(unsafe { Arc::from_raw(sleep.as_ptr()) })
///         }
///         unsafe fn node(sleep: NonNull<Sleep>) -> NonNull<Node<Sleep>> {
///             unsafe { NonNull::new_unchecked(&raw mut (*sleep.as_ptr()).node) }
///         }
///     }
/// }
///
/// use core::ptr::NonNull;
/// use sleep::Sleep;
/// use std::sync::Mutex;
/// use timer_wheel::{Step, Wheel};
///
/// /// Fires the sleeps that are due, and returns their number. Any thread may call it.
/// fn fire(wheel: &Mutex<Wheel<Sleep>>, now: u64) -> u32 {
///     let mut fired = 0;
///     loop {
///         let mut locked = wheel.lock().unwrap();
///         match locked.step(now) {
///             Step::Done => return fired,
///             Step::Moved => {}
///             // Not the argument `now`: another thread may have advanced the wheel further.
///             Step::Expired(armed) => match armed.fire(locked.now()) {
///                 Err((armed, later)) => locked.insert(armed, later),
///                 Ok(_sleep) => {
///                     drop(locked);
///                     fired += 1; // Wake its task.
///                 }
///             },
///         }
///     }
/// }
///
/// let wheel = Mutex::new(Wheel::new());
/// let ((one, armed_one), (other, armed_other)) = (Sleep::new(30), Sleep::new(10));
/// wheel.lock().unwrap().insert(armed_one, 30);
/// wheel.lock().unwrap().insert(armed_other, 10);
///
/// // A reset in time: the wheel finds the new deadline when the entry expires.
/// assert!(other.reset(50).is_none());
/// assert_eq!(fire(&wheel, 10), 0);
/// assert_eq!(wheel.lock().unwrap().next_expiration(), Some(30));
/// assert_eq!(fire(&wheel, 50), 2);
///
/// // Too late for a reset: `one` has fired, so it is in no wheel.
/// let armed = one.reset(70).unwrap();
/// wheel.lock().unwrap().insert(armed, 70);
/// // SAFETY: the entry is in this wheel.
/// let armed = unsafe { wheel.lock().unwrap().remove(NonNull::from(&*one)) };
/// assert!(armed.is_some());
/// ```
pub struct Wheel<T: Entry> {
    now: u64,
    len: usize,
    /// A bit for each level with entries.
    occupied: u16,
    /// The level that the moving entries come from, or 0 if there are none.
    moving: u8,
    levels: [Level; LEVELS],
    heads: [Head<T>; ALL + 1],
    owns: PhantomData<T::Handle>,
}

// SAFETY: the wheel owns handles, and the owner of a handle may use its entry's node.
unsafe impl<T: Entry> Send for Wheel<T> where T::Handle: Send {}

// SAFETY: a shared wheel returns only numbers.
unsafe impl<T: Entry + Sync> Sync for Wheel<T> {}

/// The result of one [step](Wheel::step), of a [`Wheel`] or of [`Timers`](crate::Timers).
#[derive(Debug)]
#[must_use = "it holds the entry that has expired"]
pub enum Step<H> {
    /// The next entry that has expired.
    Expired(H),
    /// The step moved some entries. There may be more to do.
    Moved,
    /// No entry is due.
    Done,
}

impl<T: Entry> Wheel<T> {
    /// Makes an empty wheel at tick 0.
    pub const fn new() -> Self {
        Self::at(0)
    }

    /// Makes an empty wheel at a tick.
    pub const fn at(now: u64) -> Self {
        let level = Level {
            occupied: 0,
            sorted: 0,
            earliest: 0,
        };
        Self {
            now,
            len: 0,
            occupied: 0,
            moving: 0,
            levels: [level; LEVELS],
            heads: [None; ALL + 1],
            owns: PhantomData,
        }
    }

    /// Counts the entries in the wheel. O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the wheel is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the tick to which the wheel has advanced.
    ///
    /// It is never after the latest tick that was passed to [`at`](Self::at),
    /// [`advance`](Self::advance), [`pop_expired`](Self::pop_expired) or [`step`](Self::step).
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Inserts an entry, which expires when the wheel advances to `deadline` or beyond. O(1).
    ///
    /// If the deadline has passed, the entry expires when the wheel next advances. `u64::MAX` is a
    /// deadline like any other: the entry expires at that tick.
    ///
    /// # Panics
    /// If the entry is in a wheel already, which the contract of [`Entry`] forbids. The entry
    /// stays there, and the second handle is leaked. This check does not replace the contract, as
    /// another thread may use the wheel that has the entry.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn insert(&mut self, handle: T::Handle, deadline: u64) {
        let entry = T::into_ptr(handle);
        // Release builds check this too, at little cost: the code below writes the links anyway.
        // SAFETY: the handle was the node's owner.
        if unsafe { list::next(entry) }.is_some() {
            inserted_twice();
        }
        // Rule 1.
        let when = deadline.max(self.now);
        // SAFETY: the handle was the node's owner.
        unsafe { list::set_when(entry, when) };
        self.len += 1;
        if self.level(when) < usize::from(self.moving) {
            // SAFETY: the entry came from `into_ptr`, and is in no ring.
            unsafe { list::push(&mut self.heads[MOVING], entry) };
        } else {
            // SAFETY: as above, with a `when` that is not before `now`.
            unsafe { self.file(entry, when) };
        }
    }

    /// Removes an entry, due or not. Returns `None` if the entry was removed or has expired. O(1).
    ///
    /// # Safety
    /// `entry` must point to a live entry, and be valid for access to its node: either `into_ptr`
    /// returned the pointer, or it was made from a reference to the entry. The entry must be in
    /// this wheel or in none, and no other thread may insert it meanwhile.
    ///
    /// # Panics
    /// In debug builds only, and only in some of the cases where the entry is in another wheel.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn remove(&mut self, entry: NonNull<T>) -> Option<T::Handle> {
        // SAFETY: guaranteed by the caller.
        let when = unsafe { list::when(entry) };
        // SAFETY: as above.
        unsafe { self.debug_check(entry) };
        // SAFETY: as above.
        let entry = unsafe { self.unlink(entry, when) }?;
        // SAFETY: the pointer came from the ring, which holds the pointers that `into_ptr`
        // returned.
        Some(unsafe { T::from_ptr(entry) })
    }

    /// Returns the tick at which an entry expires. Returns `None` if the entry is in no wheel.
    ///
    /// The tick is the entry's deadline, unless the deadline had passed when the entry was
    /// inserted. In that case it is the [tick](Self::now) that the wheel had at the insertion.
    ///
    /// # Safety
    /// As for [`remove`](Self::remove).
    ///
    /// # Panics
    /// As [`remove`](Self::remove) does.
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn deadline(&self, entry: NonNull<T>) -> Option<u64> {
        // SAFETY: guaranteed by the caller.
        unsafe { list::next(entry) }?;
        // SAFETY: as above.
        unsafe { self.debug_check(entry) };
        // SAFETY: as above.
        Some(unsafe { list::when(entry) })
    }

    /// Calls `expired` with each entry that expires at `now` or earlier, in order.
    ///
    /// `now` is the present tick. If it is before the [wheel's tick](Self::now), the wheel uses its
    /// own tick instead.
    ///
    /// The callback may insert, remove and advance. An entry that it inserts with a deadline of at
    /// most `now` expires in the same call. If the callback always inserts such an entry, the call
    /// never ends. To check a deadline in the callback, compare it with the wheel's
    /// [`now`](Self::now), the tick of the entry that has just expired. Do not compare it with the
    /// argument of this call: another thread may have advanced the wheel further. If the callback
    /// panics, the wheel stays consistent: the remaining entries expire at the next advance.
    ///
    /// The wheel skips ticks without entries, so a jump over many ticks costs as much as a short
    /// one. An entry moves at most 10 times in its life, and at most `n` times if fewer than 64ⁿ
    /// ticks are left to its deadline when it is inserted.
    pub fn advance(&mut self, now: u64, mut expired: impl FnMut(&mut Self, T::Handle)) {
        while let Some(handle) = self.pop_expired(now) {
            expired(self, handle);
        }
    }

    /// Takes the next entry that expires at `now` or before: one iteration of
    /// [`advance`](Self::advance).
    ///
    /// At the start of a slot above the lowest level the call moves all entries of that slot, so
    /// one call may move many entries.
    #[inline]
    pub fn pop_expired(&mut self, now: u64) -> Option<T::Handle> {
        loop {
            match self.step(now) {
                Step::Expired(handle) => return Some(handle),
                Step::Moved => {}
                Step::Done => return None,
            }
        }
    }

    /// Takes the next entry that expires at `now` or before, or moves up to 32 entries. O(1).
    ///
    /// Entries may have to move before one expires. [`pop_expired`](Self::pop_expired) is a loop of
    /// steps that ends with an entry or with [`Step::Done`]. A lock may be released between steps,
    /// and the wheel may be used meanwhile.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use timer_wheel::{Entry, Step, Wheel};
    ///
    /// /// The lock is held for a bounded time, however many timers there are.
    /// fn fire<T: Entry>(wheel: &Mutex<Wheel<T>>, now: u64, mut fire: impl FnMut(T::Handle)) {
    ///     loop {
    ///         let step = wheel.lock().unwrap().step(now);
    ///         match step {
    ///             Step::Expired(handle) => fire(handle),
    ///             Step::Moved => {}
    ///             Step::Done => return,
    ///         }
    ///     }
    /// }
    /// ```
    pub fn step(&mut self, now: u64) -> Step<T::Handle> {
        let now = now.max(self.now);
        if self.moving != 0 {
            self.move_some();
            return Step::Moved;
        }
        let Some((level, slot)) = self.first() else {
            self.now = now;
            return Step::Done;
        };
        let start = self.start(level, slot);
        if start > now {
            self.now = now;
            return Step::Done;
        }
        // Rule 4.
        self.now = start;
        let index = level * SLOTS + slot;
        let Some(head) = self.heads[index] else {
            unreachable!("an occupied slot is empty");
        };
        if level != 0 {
            self.heads[MOVING] = self.heads[index].take();
            self.moving = level as u8;
            self.vacate(level, slot);
            self.levels[level].earliest = 0;
            self.move_some();
            return Step::Moved;
        }
        // SAFETY: the head is in the wheel, and expires at `start` (rule 3).
        match unsafe { self.unlink(head, start) } {
            // SAFETY: the wheel owned the entry, by the pointer of `into_ptr`.
            Some(entry) => Step::Expired(unsafe { T::from_ptr(entry) }),
            None => unreachable!("the head of a slot is in no ring"),
        }
    }

    /// Returns the exact tick at which the first entry expires. Returns `None` if the wheel is
    /// empty.
    ///
    /// The result is [`now`](Self::now) if an entry is due. A sleep until this tick never ends too
    /// early.
    ///
    /// The call is O(1) if the first entry expires in the present block of 64 ticks. It is also
    /// O(1) if the entries of the first occupied slot were inserted in the order of their
    /// deadlines, as timeouts of one length are. In other cases it scans that slot once, and keeps
    /// the result until the first entry is removed or the wheel advances to that slot.
    /// [`next_bound`](Self::next_bound) reads one entry at most.
    ///
    /// After a [step](Self::step) that has left entries to move, the result is `now`.
    pub fn next_expiration(&mut self) -> Option<u64> {
        let (level, slot) = match self.known() {
            Next::Known(next) => return next,
            Next::Unknown { level, slot } => (level, slot),
        };
        let head = self.heads[level * SLOTS + slot]?;
        let (mut at, mut earliest) = (head, u64::MAX);
        loop {
            // SAFETY: the entry is in the slot's ring.
            earliest = earliest.min(unsafe { list::when(at) });
            // SAFETY: as above.
            match unsafe { list::next(at) } {
                Some(next) if next != head => at = next,
                _ => break,
            }
        }
        self.levels[level].earliest = earliest;
        Some(earliest)
    }

    /// Returns a tick before which no entry expires: the first expiration, or an earlier tick.
    /// O(1).
    ///
    /// The result is that of [`next_expiration`](Self::next_expiration) where that call is O(1),
    /// and otherwise the start of the first slot with entries. A sleep until this tick may end too
    /// early, at most once for each level: the wheel then advances, and moves that slot's entries
    /// to lower levels.
    pub fn next_bound(&self) -> Option<u64> {
        match self.known() {
            Next::Known(next) => next,
            Next::Unknown { level, slot } => Some(self.start(level, slot)),
        }
    }

    /// Removes any one entry, due or not. Returns `None` if the wheel is empty. O(1).
    pub fn pop_any(&mut self) -> Option<T::Handle> {
        let index = match self.moving {
            0 => {
                let (level, slot) = self.first()?;
                level * SLOTS + slot
            }
            _ => MOVING,
        };
        let head = self.heads[index]?;
        // SAFETY: the entry is in the wheel.
        unsafe { self.remove(head) }
    }

    /// Returns the level of an entry that expires at `when` (rule 2).
    #[inline(always)]
    fn level(&self, when: u64) -> usize {
        // The `| 1` makes the number positive, so that it has a highest set bit.
        let differs = (when ^ self.now) | 1;
        (differs.ilog2() / DIGIT) as usize
    }

    /// Returns the level and slot with the first entries. The caller checks that no entry is
    /// moving.
    #[inline(always)]
    fn first(&self) -> Option<(usize, usize)> {
        if self.occupied == 0 {
            return None;
        }
        let level = self.occupied.trailing_zeros() as usize;
        let slot = self.levels[level].occupied.trailing_zeros() as usize;
        Some((level, slot))
    }

    /// Returns the first tick of a slot with entries.
    #[inline(always)]
    fn start(&self, level: usize, slot: usize) -> u64 {
        let shift = level as u32 * DIGIT;
        let above = u64::MAX.checked_shl(shift + DIGIT).unwrap_or(0);
        (self.now & above) | ((slot as u64) << shift)
    }

    /// Returns the first tick at which an entry expires, or the slot to search for it.
    #[inline]
    fn known(&self) -> Next {
        if self.moving != 0 {
            return Next::Known(Some(self.now));
        }
        let Some((level, slot)) = self.first() else {
            return Next::Known(None);
        };
        if level == 0 {
            return Next::Known(Some(self.start(level, slot)));
        }
        let Level {
            sorted, earliest, ..
        } = self.levels[level];
        if earliest != 0 {
            return Next::Known(Some(earliest));
        }
        match self.heads[level * SLOTS + slot] {
            Some(head) if sorted & (1 << slot) != 0 => {
                // SAFETY: the entry is in the wheel.
                Next::Known(Some(unsafe { list::when(head) }))
            }
            _ => Next::Unknown { level, slot },
        }
    }

    /// Panics in debug builds if the entry is in another wheel, as far as this wheel's state shows.
    ///
    /// # Safety
    /// As for [`remove`](Self::remove).
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    unsafe fn debug_check(&self, entry: NonNull<T>) {
        if cfg!(debug_assertions) {
            // SAFETY: guaranteed by the caller.
            let linked = unsafe { list::next(entry) }.is_some();
            // SAFETY: as above.
            let when = unsafe { list::when(entry) };
            let level = self.level(when);
            let slot = (when >> (level as u32 * DIGIT)) as usize % SLOTS;
            // Rules 1, 2 and 5.
            let here = when >= self.now
                && (self.moving != 0 || self.heads[level * SLOTS + slot].is_some());
            assert!(here || !linked, "the entry is in another wheel");
        }
    }

    /// Puts an entry into its slot.
    ///
    /// # Safety
    /// The entry must be owned by the wheel, come from `into_ptr`, be in no ring, and expire at
    /// `when`, which is not before `now`.
    #[inline(always)]
    unsafe fn file(&mut self, entry: NonNull<T>, when: u64) {
        let level = self.level(when);
        let slot = (when >> (level as u32 * DIGIT)) as usize % SLOTS;
        let (head, bit) = (&mut self.heads[level * SLOTS + slot], 1 << slot);
        let at = &mut self.levels[level];
        let last = match *head {
            Some(head) => {
                // SAFETY: the entry is a head of this wheel.
                let newest = unsafe { list::newest(head) };
                // SAFETY: the entry is in the ring.
                unsafe { list::when(newest) }
            }
            None => {
                at.sorted |= bit;
                0
            }
        };
        if when < last {
            at.sorted &= !bit;
        }
        // An unknown `earliest` is 0, and stays unknown.
        if at.occupied == 0 || when < at.earliest {
            at.earliest = when;
        }
        at.occupied |= bit;
        self.occupied |= 1 << level;
        // SAFETY: guaranteed by the caller.
        unsafe { list::push(head, entry) };
    }

    /// Takes an entry out of its ring. Returns `None` if the entry is in no ring.
    ///
    /// # Safety
    /// As for [`remove`](Self::remove). The entry must expire at `when`.
    #[inline(always)]
    unsafe fn unlink(&mut self, entry: NonNull<T>, when: u64) -> Option<NonNull<T>> {
        // SAFETY: guaranteed by the caller.
        let unlinked = unsafe { list::unlink(entry) }?;
        self.len -= 1;
        if self.heads[MOVING] == Some(entry) {
            self.set_moving(unlinked.next);
            return Some(unlinked.entry);
        }
        // An entry of the moving ring has no slot yet. The changes below do no harm: such an entry
        // is no slot's head, and an `earliest` that is reset to unknown is always correct.
        let level = self.level(when);
        let slot = (when >> (level as u32 * DIGIT)) as usize % SLOTS;
        let head = &mut self.heads[level * SLOTS + slot];
        if *head == Some(entry) {
            *head = unlinked.next;
            if unlinked.next.is_none() {
                self.vacate(level, slot);
            }
        }
        if self.levels[level].earliest == when {
            self.levels[level].earliest = 0;
        }
        Some(unlinked.entry)
    }

    /// Marks a slot as empty.
    #[inline(always)]
    fn vacate(&mut self, level: usize, slot: usize) {
        let at = &mut self.levels[level];
        at.occupied &= !(1 << slot);
        if at.occupied == 0 {
            self.occupied &= !(1 << level);
        }
    }

    /// Sets the head of the moving ring.
    #[inline(always)]
    fn set_moving(&mut self, head: Head<T>) {
        self.heads[MOVING] = head;
        if head.is_none() {
            self.moving = 0;
        }
    }

    /// Files some of the moving entries.
    fn move_some(&mut self) {
        for _ in 0..MOVES {
            let Some(entry) = self.heads[MOVING] else {
                return;
            };
            // SAFETY: the entry is in the wheel.
            let when = unsafe { list::when(entry) };
            // SAFETY: as above.
            let Some(unlinked) = (unsafe { list::unlink(entry) }) else {
                unreachable!("the head of the moving entries is in no ring");
            };
            self.set_moving(unlinked.next);
            // SAFETY: the entry is in no ring any more. `when` is not before `now` (rule 1).
            unsafe { self.file(unlinked.entry, when) };
        }
    }
}

/// Panics because the inserted entry is already in a wheel.
#[cold]
#[inline(never)]
#[cfg_attr(debug_assertions, track_caller)]
fn inserted_twice() -> ! {
    panic!("the entry is in a wheel already")
}

/// The next expiration, if it is known without a search.
enum Next {
    Known(Option<u64>),
    /// The first entry is in this slot.
    Unknown {
        level: usize,
        slot: usize,
    },
}

impl<T: Entry> Default for Wheel<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Entry> Drop for Wheel<T> {
    /// Drops the handles of all entries, in no order.
    fn drop(&mut self) {
        /// Drops the remaining handles if the drop of one panics.
        struct DropGuard<'a, T: Entry>(&'a mut Wheel<T>);
        impl<T: Entry> Drop for DropGuard<'_, T> {
            fn drop(&mut self) {
                while let Some(handle) = self.0.pop_any() {
                    drop(handle);
                }
            }
        }
        let rest = DropGuard(self);
        while let Some(handle) = rest.0.pop_any() {
            drop(handle);
        }
    }
}

impl<T: Entry> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("now", &self.now)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
