//! Tests of the wheel: the order of expiry, entries with several kinds of owners, panics and drops.
mod common;

use common::Numbered;
use std::{
    cell::{Cell, RefCell},
    marker::PhantomPinned,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    ptr::NonNull,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Poll, Waker},
    thread,
};
use timer_wheel::{Entry, Node, Step, Wheel};

fn expired(wheel: &mut Wheel<Numbered>, now: u64) -> Vec<u32> {
    let mut ids = Vec::new();
    wheel.advance(now, |_, entry| ids.push(entry.id));
    ids
}

#[test]
fn entries_expire_at_their_tick_in_order_of_insertion() {
    let mut wheel = Wheel::<Numbered>::new();
    for (id, deadline) in [(0, 7), (1, 5000), (2, 7), (3, 0), (4, 5000), (5, 6)] {
        wheel.insert(Numbered::new(id), deadline);
    }
    assert_eq!(expired(&mut wheel, 0), [3]);
    assert_eq!(expired(&mut wheel, 5), []);
    assert_eq!(expired(&mut wheel, 7), [5, 0, 2]);
    // This advance moves the two entries of tick 5000 to a lower level.
    assert_eq!(expired(&mut wheel, 4990), []);
    wheel.insert(Numbered::new(6), 5000);
    wheel.insert(Numbered::new(7), 4999);
    assert_eq!(expired(&mut wheel, 4999), [7]);
    assert_eq!(expired(&mut wheel, 6000), [1, 4, 6]);
    assert_eq!(wheel.now(), 6000);
}

#[test]
fn deadline_in_the_past_counts_as_now() {
    let mut wheel = Wheel::at(100);
    for (id, deadline) in [(0, 100), (1, 3), (2, 101), (3, 100), (4, 0)] {
        wheel.insert(Numbered::new(id), deadline);
    }
    assert_eq!(wheel.next_expiration(), Some(100));
    // An earlier tick counts as the wheel's own.
    assert_eq!(expired(&mut wheel, 0), [0, 1, 3, 4]);
    assert_eq!(wheel.now(), 100);
    assert_eq!(expired(&mut wheel, 101), [2]);
}

#[test]
fn last_tick_expires_at_the_last_tick_alone() {
    let mut wheel = Wheel::<Numbered>::new();
    wheel.insert(Numbered::new(0), u64::MAX);
    wheel.insert(Numbered::new(1), u64::MAX - 1);
    wheel.insert(Numbered::new(2), 1 << 63);
    wheel.insert(Numbered::new(3), u64::MAX);
    assert_eq!(wheel.next_expiration(), Some(1 << 63));
    assert_eq!(expired(&mut wheel, u64::MAX - 1), [2, 1]);
    assert_eq!(wheel.next_expiration(), Some(u64::MAX));
    assert_eq!(expired(&mut wheel, u64::MAX), [0, 3]);
    // At the last tick the wheel still works.
    wheel.insert(Numbered::new(4), 5);
    assert_eq!(expired(&mut wheel, 0), [4]);
    assert_eq!(wheel.next_expiration(), None);
}

#[test]
fn entry_is_moved_once_a_level_at_most() {
    let mut wheel = Wheel::<Numbered>::new();
    // The deadline differs from 0 in each digit, and from each slot's start in each lower digit.
    wheel.insert(Numbered::new(0), u64::MAX);
    let mut moves = 0;
    loop {
        match wheel.step(u64::MAX) {
            Step::Moved => moves += 1,
            Step::Expired(entry) => break assert_eq!(entry.id, 0),
            Step::Done => panic!("the entry is due"),
        }
    }
    assert_eq!(moves, 10);
}

#[test]
fn near_entry_beyond_every_boundary_is_moved_once() {
    // The next tick but one differs from this one in every digit.
    let mut wheel = Wheel::<Numbered>::at((1 << 60) - 1);
    wheel.insert(Numbered::new(0), (1 << 60) + 1);
    assert!(matches!(wheel.step(1 << 60), Step::Moved));
    assert!(matches!(wheel.step(1 << 60), Step::Done));
    assert!(matches!(wheel.step((1 << 60) + 1), Step::Expired(_)));
}

#[test]
fn step_moves_32_entries_and_any_may_be_removed_between() {
    let mut wheel = Wheel::<Numbered>::new();
    let entries: Vec<_> = (0..100)
        .map(|id| Numbered::into_ptr(Numbered::new(id)))
        .collect();
    for &entry in &entries {
        // SAFETY: the pointer came from `into_ptr`.
        wheel.insert(unsafe { Numbered::from_ptr(entry) }, 70);
    }
    assert!(matches!(wheel.step(64), Step::Moved));
    assert_eq!(wheel.next_expiration(), Some(64));
    wheel.insert(Numbered::new(100), 70);
    wheel.insert(Numbered::new(101), 3);
    // One that is filed already, the first to move, one in the middle, and the last.
    for n in [5, 32, 60, 99] {
        // SAFETY: the entry is in the wheel.
        let removed = unsafe { wheel.remove(entries[n]) };
        assert_eq!(removed.map(|entry| entry.id), u32::try_from(n).ok());
    }
    let mut steps = 1;
    while let Step::Moved = wheel.step(64) {
        steps += 1;
        if steps > 10 {
            panic!("the steps never end");
        }
    }
    // The last step returned 101, which expired at 64. The three steps before it moved the 67
    // entries that had been left, 101 among them.
    assert_eq!(steps, 4);
    assert_eq!(wheel.next_expiration(), Some(70));
    let rest: Vec<u32> = (0..101)
        .filter(|id| ![5, 32, 60, 99].contains(id))
        .collect();
    assert_eq!(expired(&mut wheel, 70), rest);
}

#[test]
fn next_expiration_is_exact_however_far() {
    let mut wheel = Wheel::<Numbered>::new();
    let far = Numbered::into_ptr(Numbered::new(0));
    // SAFETY: the pointer came from `into_ptr`.
    wheel.insert(unsafe { Numbered::from_ptr(far) }, 1_000_100);
    wheel.insert(Numbered::new(1), 1_000_300);
    wheel.insert(Numbered::new(2), 1_000_200);
    // The expiration is known from the first insertion on, whatever the order of the others.
    assert_eq!(wheel.next_bound(), Some(1_000_100));
    assert_eq!(wheel.next_expiration(), Some(1_000_100));
    // SAFETY: the entry is in the wheel.
    drop(unsafe { wheel.remove(far) });
    // Without a search only the start of the slot is known: 3 * 64^3.
    assert_eq!(wheel.next_bound(), Some(786_432));
    assert_eq!(wheel.next_expiration(), Some(1_000_200));
    assert_eq!(wheel.next_bound(), Some(1_000_200));
    assert_eq!(expired(&mut wheel, 1_000_199), []);
    assert_eq!(expired(&mut wheel, 1_000_200), [2]);
}

#[test]
fn callback_inserts_removes_and_advances() {
    let mut wheel = Wheel::<Numbered>::new();
    let victim = Numbered::into_ptr(Numbered::new(9));
    // SAFETY: the pointer came from `into_ptr`.
    wheel.insert(unsafe { Numbered::from_ptr(victim) }, 12);
    for id in 0..3 {
        wheel.insert(Numbered::new(id), 10);
    }
    let mut ids = Vec::new();
    wheel.advance(20, |wheel, entry| {
        ids.push((wheel.now(), entry.id));
        match entry.id {
            0 => {
                // SAFETY: the entry is in the wheel.
                let removed = unsafe { wheel.remove(victim) };
                assert_eq!(removed.map(|entry| entry.id), Some(9));
                wheel.insert(Numbered::new(3), 0);
                wheel.insert(Numbered::new(4), 15);
                wheel.insert(Numbered::new(5), 21);
            }
            1 => wheel.advance(10, |_, entry| ids.push((10, entry.id))),
            _ => {}
        }
    });
    assert_eq!(ids, [(10, 0), (10, 1), (10, 2), (10, 3), (15, 4)]);
    assert_eq!((wheel.len(), wheel.now()), (1, 20));
}

#[test]
fn callback_that_panics_loses_only_what_it_was_given() {
    let mut wheel = Wheel::<Numbered>::new();
    for id in 0..5 {
        wheel.insert(Numbered::new(id), 100 + u64::from(id) / 2);
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        wheel.advance(200, |_, entry| assert_ne!(entry.id, 2));
    }));
    assert!(panicked.is_err());
    assert_eq!((wheel.len(), wheel.now()), (2, 101));
    assert_eq!(expired(&mut wheel, 200), [3, 4]);
}

#[test]
fn wheel_may_be_moved_and_replaced_while_it_is_full() {
    let mut wheel = Wheel::<Numbered>::new();
    wheel.insert(Numbered::new(0), 10);
    wheel.insert(Numbered::new(1), 11);
    let mut boxed = Box::new(wheel);
    let mut other = None;
    boxed.advance(20, |wheel, entry| {
        assert_eq!(entry.id, 0);
        other = Some(std::mem::take(wheel));
    });
    assert!(boxed.is_empty());
    assert_eq!(expired(&mut other.unwrap(), 11), [1]);
}

/// An entry that counts its drops, and may panic in one.
struct DropCounter {
    node: Node<DropCounter>,
    drops: Rc<Cell<u32>>,
    panics: bool,
}

// SAFETY: a box owns its content, which stays in place.
unsafe impl Entry for DropCounter {
    type Handle = Box<DropCounter>;

    fn into_ptr(handle: Box<DropCounter>) -> NonNull<DropCounter> {
        // SAFETY: a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(handle)) }
    }
    unsafe fn from_ptr(entry: NonNull<DropCounter>) -> Box<DropCounter> {
        // SAFETY: the pointer came from `into_raw`.
        unsafe { Box::from_raw(entry.as_ptr()) }
    }
    unsafe fn node(entry: NonNull<DropCounter>) -> NonNull<Node<DropCounter>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics, "a drop that panics");
    }
}

#[test]
fn wheel_that_is_dropped_drops_all_even_if_one_panics() {
    let drops = Rc::new(Cell::new(0));
    let counter = |panics| {
        let (node, drops) = (Node::new(), drops.clone());
        Box::new(DropCounter {
            node,
            drops,
            panics,
        })
    };
    let mut wheel = Wheel::<DropCounter>::new();
    for n in 0..200u32 {
        wheel.insert(counter(n == 0), 1000 + u64::from(n) * u64::from(n) * 1000);
    }
    // All entries are dropped also if some of them are moving.
    for _ in 0..100 {
        wheel.insert(counter(false), 64);
    }
    assert!(matches!(wheel.step(64), Step::Moved));
    wheel.insert(counter(false), 65);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(wheel)));
    assert!(dropped.is_err());
    assert_eq!(drops.get(), 301);
}

/// An entry in a stack frame of its owner, who removes it before the frame ends.
struct Pinned<'a> {
    node: Node<Pinned<'a>>,
    log: &'a RefCell<Vec<u32>>,
    id: u32,
    _pinned: PhantomPinned,
}

struct Token<'a>(NonNull<Pinned<'a>>);

// SAFETY: a token is made of a pinned entry, which the tests below do not use while it is linked.
unsafe impl<'a> Entry for Pinned<'a> {
    type Handle = Token<'a>;

    fn into_ptr(handle: Token<'a>) -> NonNull<Self> {
        handle.0
    }
    unsafe fn from_ptr(entry: NonNull<Self>) -> Token<'a> {
        Token(entry)
    }
    unsafe fn node(entry: NonNull<Self>) -> NonNull<Node<Self>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

impl<'a> Pinned<'a> {
    fn new(id: u32, log: &'a RefCell<Vec<u32>>) -> Self {
        Self {
            node: Node::new(),
            log,
            id,
            _pinned: PhantomPinned,
        }
    }

    fn token(self: Pin<&mut Self>) -> Token<'a> {
        // SAFETY: the value is not moved.
        Token(NonNull::from(unsafe { self.get_unchecked_mut() }))
    }
}

#[test]
fn entries_in_frames_expire_and_leave() {
    let log = RefCell::new(Vec::new());
    let mut wheel: Wheel<Pinned<'_>> = Wheel::new();
    let mut one = pin!(Pinned::new(1, &log));
    let mut two = pin!(Pinned::new(2, &log));
    let mut three = pin!(Pinned::new(3, &log));
    let left = two.as_mut().token().0;
    wheel.insert(one.as_mut().token(), 5);
    wheel.insert(Token(left), 5);
    wheel.insert(three.as_mut().token(), 500);
    // SAFETY: the entry is in the wheel.
    assert_eq!(unsafe { wheel.deadline(left) }, Some(5));
    // SAFETY: as above.
    assert!(unsafe { wheel.remove(left) }.is_some());
    // SAFETY: the entry is in no wheel.
    assert!(unsafe { wheel.remove(left) }.is_none());
    // SAFETY: as above.
    assert_eq!(unsafe { wheel.deadline(left) }, None);
    wheel.advance(5, |_, token| {
        // SAFETY: the entry is live.
        let entry = unsafe { token.0.as_ref() };
        entry.log.borrow_mut().push(entry.id);
    });
    assert_eq!(*log.borrow(), [1]);
    // The drop of the wheel unlinks the remaining entries.
    drop(wheel);
    let mut next: Wheel<Pinned<'_>> = Wheel::new();
    next.insert(three.as_mut().token(), 0);
    assert!(next.pop_any().is_some());
}

/// Inserts two handles of one entry, which `Entry` forbids, in one thread. Each case ends before it
/// uses freed memory.
#[test]
fn insert_of_linked_entry_panics_and_changes_nothing() {
    let log = RefCell::new(Vec::new());
    let mut one = pin!(Pinned::new(1, &log));
    let mut two = pin!(Pinned::new(2, &log));
    // Both wheels are dropped before the entries, which are declared first.
    let mut other: Wheel<Pinned<'_>> = Wheel::new();
    let mut wheel: Wheel<Pinned<'_>> = Wheel::new();
    let token = one.as_mut().token();
    wheel.insert(Token(token.0), 5);
    wheel.insert(two.as_mut().token(), 5);
    for deadline in [5, 6, 5000] {
        let again = Token(token.0);
        let twice = catch_unwind(AssertUnwindSafe(|| wheel.insert(again, deadline)));
        assert_eq!(message(twice), "the entry is in a wheel already");
    }
    let elsewhere = catch_unwind(AssertUnwindSafe(|| other.insert(Token(token.0), 6)));
    assert_eq!(message(elsewhere), "the entry is in a wheel already");
    assert_eq!((wheel.len(), other.len()), (2, 0));
    assert_eq!(wheel.pop_expired(5).map(|first| first.0), Some(token.0));
    assert!(wheel.pop_expired(5).is_some() && wheel.pop_expired(5).is_none());
}

#[test]
#[cfg(debug_assertions)]
fn remove_from_another_wheel_panics_in_debug() {
    let log = RefCell::new(Vec::new());
    let mut one = pin!(Pinned::new(1, &log));
    let mut two = pin!(Pinned::new(2, &log));
    let mut wheel: Wheel<Pinned<'_>> = Wheel::new();
    let mut late: Wheel<Pinned<'_>> = Wheel::at(6);
    let mut other: Wheel<Pinned<'_>> = Wheel::new();
    let entry = one.as_mut().token().0;
    wheel.insert(Token(entry), 5);
    other.insert(two.as_mut().token(), 500);
    for wrong in [&mut late, &mut other] {
        // SAFETY: the call breaks the contract, and panics before the entry is changed.
        let removed = catch_unwind(AssertUnwindSafe(|| unsafe { wrong.remove(entry) }));
        assert_eq!(message(removed), "the entry is in another wheel");
        // SAFETY: as above.
        let asked = catch_unwind(AssertUnwindSafe(|| unsafe { wrong.deadline(entry) }));
        assert_eq!(message(asked), "the entry is in another wheel");
    }
    assert_eq!((late.len(), other.len()), (0, 1));
    // SAFETY: the entry is in this wheel.
    assert!(unsafe { wheel.remove(entry) }.is_some());
    // SAFETY: the entry is in no wheel.
    assert!(unsafe { late.remove(entry) }.is_none());
}

/// Returns the message of a panic.
fn message<R>(result: thread::Result<R>) -> &'static str {
    match result {
        Ok(_) => "no panic",
        Err(payload) => payload.downcast_ref::<&str>().unwrap(),
    }
}

/// A future that holds its node. Its first poll makes a handle and inserts it, and its drop removes
/// the entry.
struct Nap {
    node: Node<Nap>,
    wheel: Rc<RefCell<Wheel<Nap>>>,
    deadline: u64,
    polls: u32,
    fired: Cell<bool>,
}

/// The wheel's pointer to a nap.
struct NapToken(NonNull<Nap>);

// SAFETY: a token is made of a pinned nap, in its first poll. The nap's drop removes the nap. All
// `&mut` to a nap are to a pinned one, and do not use the node.
unsafe impl Entry for Nap {
    type Handle = NapToken;

    fn into_ptr(handle: NapToken) -> NonNull<Self> {
        handle.0
    }
    unsafe fn from_ptr(entry: NonNull<Self>) -> NapToken {
        NapToken(entry)
    }
    unsafe fn node(entry: NonNull<Self>) -> NonNull<Node<Self>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

impl Nap {
    fn new(wheel: &Rc<RefCell<Wheel<Nap>>>, deadline: u64) -> Self {
        Self {
            node: Node::new(),
            wheel: wheel.clone(),
            deadline,
            polls: 0,
            fired: Cell::new(false),
        }
    }
}

impl Future for Nap {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        // SAFETY: the value is not moved.
        let nap = unsafe { self.get_unchecked_mut() };
        nap.polls += 1;
        if nap.polls == 1 {
            let (wheel, deadline) = (nap.wheel.clone(), nap.deadline);
            wheel
                .borrow_mut()
                .insert(NapToken(NonNull::from(nap)), deadline);
            return Poll::Pending;
        }
        match nap.fired.get() {
            true => Poll::Ready(nap.polls),
            false => Poll::Pending,
        }
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        let wheel = self.wheel.clone();
        // SAFETY: the entry is in this wheel or in none.
        let _token = unsafe { wheel.borrow_mut().remove(NonNull::from(self)) };
    }
}

#[test]
fn future_with_linked_node_is_polled_and_dropped() {
    let wheel = Rc::new(RefCell::new(Wheel::new()));
    let fire = |now| {
        wheel.borrow_mut().advance(now, |_, nap: NapToken| {
            // SAFETY: a nap in the wheel is live.
            let nap = unsafe { nap.0.as_ref() };
            nap.fired.set(true);
        });
    };
    let mut cx = Context::from_waker(Waker::noop());
    let mut short = Box::pin(Nap::new(&wheel, 10));
    let mut long = Box::pin(Nap::new(&wheel, 10));
    let mut longest = Box::pin(Nap::new(&wheel, 100));
    for _ in 0..3 {
        for nap in [&mut short, &mut long, &mut longest] {
            assert!(nap.as_mut().poll(&mut cx).is_pending());
        }
        fire(9);
    }
    // `long` is dropped between two polls of `short`, its neighbour in the slot's ring.
    drop(long);
    assert_eq!(wheel.borrow().len(), 2);
    assert!(longest.as_mut().poll(&mut cx).is_pending());
    fire(10);
    assert_eq!(short.as_mut().poll(&mut cx), Poll::Ready(4));
    assert!(longest.as_mut().poll(&mut cx).is_pending());
    drop((short, longest));
    assert!(wheel.borrow().is_empty());
}

/// No deadline: the sleep has fired.
const FIRED: u64 = u64::MAX;

/// A sleep of a driver, as in the example of `Wheel`.
struct Sleep {
    node: Node<Sleep>,
    /// The deadline, which may be later than the wheel's, or `FIRED`.
    state: AtomicU64,
    /// The ticks at which the sleep fired.
    fires: Mutex<Vec<u64>>,
}

/// The right to insert a sleep. Each sleep has at most one at a time.
struct Armed(Arc<Sleep>);

// SAFETY: an `Arc` keeps its content in place, and no code makes a `&mut Sleep`. An `Armed` is
// unique: a sleep is made with one. A reset makes another only if it replaces `FIRED`, which is
// stored only when the last `Armed` is consumed.
unsafe impl Entry for Sleep {
    type Handle = Armed;

    fn into_ptr(handle: Armed) -> NonNull<Sleep> {
        // SAFETY: an `Arc` is not null.
        unsafe { NonNull::new_unchecked(Arc::into_raw(handle.0).cast_mut()) }
    }
    unsafe fn from_ptr(entry: NonNull<Sleep>) -> Armed {
        // SAFETY: the pointer came from `into_raw`, or was made from another clone of the same
        // `Arc`.
        Armed(unsafe { Arc::from_raw(entry.as_ptr()) })
    }
    unsafe fn node(entry: NonNull<Sleep>) -> NonNull<Node<Sleep>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

impl Sleep {
    fn new(deadline: u64) -> (Arc<Sleep>, Armed) {
        let sleep = Arc::new(Sleep {
            node: Node::new(),
            state: AtomicU64::new(deadline),
            fires: Mutex::new(Vec::new()),
        });
        (sleep.clone(), Armed(sleep))
    }

    /// Sets a later deadline. If the sleep has already fired, the caller must insert it again.
    fn reset(self: &Arc<Self>, deadline: u64) -> Option<Armed> {
        // Ordering: Acquire pairs with `fire`, so that one wheel's use of the node comes before the
        // next wheel's.
        let fired = self.state.swap(deadline, Acquire) == FIRED;
        fired.then(|| Armed(self.clone()))
    }
}

impl Armed {
    /// Fires the sleep, or returns its later deadline.
    fn fire(self, now: u64) -> Result<(), (Armed, u64)> {
        let Armed(sleep) = self;
        // The lock is held from before the exchange, so fires are logged in their order.
        let mut fires = sleep.fires.lock().unwrap();
        // Ordering: Release pairs with `reset`. A failure only reads a number: Relaxed.
        let fired = sleep.state.fetch_update(Release, Relaxed, |deadline| {
            (deadline <= now).then_some(FIRED)
        });
        match fired {
            Ok(_) => fires.push(now),
            Err(later) => {
                drop(fires);
                return Err((Armed(sleep), later));
            }
        }
        Ok(())
    }
}

/// Tries both orders of a reset and of the firing of an entry that has expired.
#[test]
fn reset_of_expired_sleep_postpones_or_arms_it() {
    for reset_first in [true, false] {
        let mut wheel = Wheel::<Sleep>::new();
        let (sleep, armed) = Sleep::new(10);
        wheel.insert(armed, 10);
        let armed = wheel.pop_expired(10).unwrap();
        if reset_first {
            assert!(sleep.reset(50).is_none(), "it is not in a wheel");
            let Err((armed, later)) = armed.fire(10) else {
                panic!("the sleep fires at 10");
            };
            wheel.insert(armed, later);
        } else {
            assert!(armed.fire(10).is_ok());
            let armed = sleep.reset(50).expect("the sleep is in no wheel");
            wheel.insert(armed, 50);
        }
        assert_eq!(wheel.next_expiration(), Some(50));
        assert!(wheel.pop_expired(50).unwrap().fire(50).is_ok());
        let expected: &[u64] = if reset_first { &[50] } else { &[10, 50] };
        assert_eq!(*sleep.fires.lock().unwrap(), expected);
    }
}

/// Each thread arms, resets and cancels its own sleeps, in one of two wheels, and fires all sleeps.
/// A late reset arms the sleep again, so no reset is lost. A reset in time moves the deadline, so
/// the sleep does not fire earlier.
#[test]
fn sleeps_of_threads_fire_once_at_their_last_deadline() {
    const EACH: u64 = 500;
    const LAST: u64 = 20_000;

    /// A sleep, its wheel, and the sleep's deadline each time that it was armed.
    struct Owned<'a> {
        sleep: Arc<Sleep>,
        wheel: &'a Mutex<Wheel<Sleep>>,
        armed: Vec<u64>,
    }

    let wheels = [Mutex::new(Wheel::new()), Mutex::new(Wheel::new())];
    let reset = |owned: &mut Owned<'_>, later| match owned.sleep.reset(later) {
        None => *owned.armed.last_mut().unwrap() = later,
        Some(armed) => {
            owned.wheel.lock().unwrap().insert(armed, later);
            owned.armed.push(later);
        }
    };
    let run = |seed: u64| {
        let mut sleeps: Vec<Owned<'_>> = Vec::new();
        for n in 0..EACH {
            let now = n * 10;
            let deadline = now + (n + seed) * 37 % 100;
            let (sleep, armed) = Sleep::new(deadline);
            let wheel = &wheels[n as usize % 2];
            wheel.lock().unwrap().insert(armed, deadline);
            let armed = vec![deadline];
            sleeps.push(Owned {
                sleep,
                wheel,
                armed,
            });
            // About half of the last sleeps have fired, in this thread or in the other one.
            for back in 0..n.min(12) {
                let owned = &mut sleeps[(n - back) as usize];
                match (n + back) % 8 {
                    0..4 => reset(owned, now + 120 + back),
                    7 => {
                        let entry = NonNull::from(&*owned.sleep);
                        // SAFETY: the entry is in this wheel or in none.
                        let gone = unsafe { owned.wheel.lock().unwrap().remove(entry) };
                        if let Some(armed) = gone {
                            // Arm it again, in the other wheel.
                            owned.wheel = &wheels[(n as usize + 1) % 2];
                            let last = *owned.armed.last().unwrap();
                            owned.wheel.lock().unwrap().insert(armed, last);
                        }
                    }
                    _ => {}
                }
            }
            wheels.iter().for_each(|wheel| fire(wheel, now));
        }
        sleeps
    };
    let sleeps: Vec<_> = thread::scope(|scope| {
        let threads = [0, 5].map(|seed| scope.spawn(move || run(seed)));
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    wheels.iter().for_each(|wheel| fire(wheel, LAST));
    assert!(wheels.iter().all(|wheel| wheel.lock().unwrap().is_empty()));
    for owned in &sleeps {
        let fires = owned.sleep.fires.lock().unwrap();
        assert_eq!(
            fires.len(),
            owned.armed.len(),
            "a sleep is lost, or fires twice"
        );
        let early = fires
            .iter()
            .zip(&owned.armed)
            .any(|(at, deadline)| at < deadline);
        assert!(!early, "{fires:?} is before {:?}", owned.armed);
        assert_eq!(Arc::strong_count(&owned.sleep), 1);
    }
    let late = sleeps.iter().any(|owned| owned.armed.len() > 1);
    assert!(late, "each reset came in time");
}

fn fire(wheel: &Mutex<Wheel<Sleep>>, now: u64) {
    loop {
        let mut locked = wheel.lock().unwrap();
        match locked.step(now) {
            Step::Done => return,
            Step::Moved => {}
            // Not `now`: the other thread may have advanced the wheel further.
            Step::Expired(armed) => {
                if let Err((armed, later)) = armed.fire(locked.now()) {
                    locked.insert(armed, later);
                }
            }
        }
    }
}
