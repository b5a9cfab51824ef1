use crate::{Boxed, Injector, Linked, List, Lock};
use alloc::{boxed::Box, vec::Vec};
use core::{
    cell::Cell,
    ptr::{NonNull, null_mut},
};

/// A queue with a lock that is not std's, as in a program without `std`.
type Queue<T> = Injector<T, spin::Mutex<()>>;

// SAFETY: spin's mutex returns one guard at a time, and orders each guard before the next.
unsafe impl Lock for spin::Mutex<()> {
    type Guard<'a> = spin::MutexGuard<'a, ()>;

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }
}

/// A node of which the tests can make several handles. The contract of `Linked` forbids that.
struct Node(Cell<*mut Node>);

struct Handle(NonNull<Node>);

// SAFETY: unless a test misuses the node, it has only one handle. The node is on the test's stack.
unsafe impl Linked for Node {
    type Handle = Handle;

    fn into_ptr(handle: Handle) -> NonNull<Node> {
        handle.0
    }
    unsafe fn from_ptr(node: NonNull<Node>) -> Handle {
        Handle(node)
    }
    unsafe fn next(node: NonNull<Node>) -> Option<NonNull<Node>> {
        // SAFETY: the node is live.
        NonNull::new(unsafe { node.as_ref() }.0.get())
    }
    unsafe fn set_next(node: NonNull<Node>, next: Option<NonNull<Node>>) {
        // SAFETY: the node is live.
        unsafe { node.as_ref() }
            .0
            .set(next.map_or(null_mut(), NonNull::as_ptr));
    }
}

fn nodes<const N: usize>() -> [Node; N] {
    [(); N].map(|()| Node(Cell::new(null_mut())))
}

fn handle(node: &Node) -> Handle {
    Handle(node.into())
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "in a list already"))]
fn second_push_of_a_lists_last_node_panics_in_debug() {
    let [a] = nodes();
    let mut list = List::<Node>::new();
    list.push_back(handle(&a));
    if cfg!(debug_assertions) {
        list.push_back(handle(&a));
    }
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "in a list already"))]
fn second_push_of_a_queues_newest_node_panics_in_debug() {
    let [a] = nodes();
    let queue = Queue::<Node>::default();
    assert!(queue.push(handle(&a)).is_ok());
    if cfg!(debug_assertions) {
        queue.requeue(handle(&a));
    }
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "in a list already"))]
fn second_push_of_a_queues_oldest_node_panics_in_debug() {
    let [a, b] = nodes();
    let queue = Queue::<Node>::default();
    assert!(queue.push(handle(&a)).is_ok());
    assert!(queue.push(handle(&b)).is_ok());
    if cfg!(debug_assertions) {
        let _ = queue.push(handle(&a));
    }
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "in a list already"))]
fn second_push_of_a_batchs_last_node_panics_in_debug() {
    let [a, b] = nodes();
    let queue = Queue::<Node>::default();
    queue.requeue_batch([&a, &b].map(handle).into_iter().collect());
    if cfg!(debug_assertions) {
        let _ = queue.push(handle(&b));
    }
}

#[test]
fn popped_or_refused_node_can_be_pushed_again() {
    let all = nodes::<4>();
    let queue = Queue::<Node>::default();
    for n in 0..=4 {
        for alone in 0..=n {
            let (pushed, batch) = all[..n].split_at(alone);
            pushed.iter().for_each(|node| queue.requeue(handle(node)));
            queue.requeue_batch(batch.iter().map(handle).collect());
            let first: Vec<_> = queue.pop().into_iter().chain(queue.pop_n(2)).collect();
            let got = first.into_iter().chain(queue.pop_n(9));
            let got: Vec<_> = got.map(|handle| handle.0).collect();
            let expected: Vec<_> = all[..n].iter().map(NonNull::from).collect();
            assert_eq!(got, expected);
            assert!(all.iter().all(|node| node.0.get().is_null()));
        }
    }
    queue.close();
    let refused = queue.push(handle(&all[0])).unwrap_err();
    assert!(all[0].0.get().is_null());
    let batch: List<Node> = core::iter::once(refused.0).collect();
    let mut refused = queue.push_batch(batch).unwrap_err().0;
    refused.push_back(handle(&all[1]));
    assert_eq!(refused.len(), 2);
    assert!(queue.push_batch(List::new()).is_err());
    assert!(queue.is_empty());
}

/// A node with the least alignment that a list accepts. In an array, the address of every other
/// node is an odd multiple of that alignment.
#[repr(C, packed(2))]
struct Packed(Option<NonNull<Packed>>, u16);

// SAFETY: a node is on the test's stack, and only its handle is used to reach it.
unsafe impl Linked for Packed {
    type Handle = NonNull<Packed>;

    fn into_ptr(handle: NonNull<Packed>) -> NonNull<Packed> {
        handle
    }
    unsafe fn from_ptr(node: NonNull<Packed>) -> NonNull<Packed> {
        node
    }
    unsafe fn next(node: NonNull<Packed>) -> Option<NonNull<Packed>> {
        // SAFETY: the node is live; a copy needs no alignment.
        unsafe { (*node.as_ptr()).0 }
    }
    unsafe fn set_next(node: NonNull<Packed>, next: Option<NonNull<Packed>>) {
        // SAFETY: as above.
        unsafe { (*node.as_ptr()).0 = next };
    }
}

#[test]
fn list_of_nodes_aligned_to_two_keeps_each() {
    let mut nodes = [0, 1, 2, 3].map(|number| Packed(None, number));
    let all = nodes.each_mut().map(NonNull::from);
    assert!(all.iter().any(|node| node.addr().get() % 4 == 2));
    let mut list: List<Packed> = all.into_iter().collect();
    let front = list.split_off_front(2);
    assert!(front.into_iter().chain(list).eq(all));
    assert!(nodes.iter().map(|node| node.1).eq(0..4));
}

#[test]
fn list_iter_visits_the_nodes_in_order() {
    let mut list: List<Boxed<u8>> = (0..4).map(|n| Box::new(Boxed::new(n))).collect();
    let values = |list: &List<Boxed<u8>>| list.iter().map(|node| node.value).collect::<Vec<_>>();
    assert_eq!(values(&list), [0, 1, 2, 3]);
    assert_eq!(list.iter().len(), 4);
    let front = list.split_off_front(3);
    assert_eq!(
        (values(&front), values(&list)),
        ([0, 1, 2].into(), [3].into())
    );
    let mut rest = list.iter();
    assert!(rest.next().is_some() && rest.next().is_none() && rest.next().is_none());
    assert_eq!((&front).into_iter().count(), 3);
    assert_eq!(values(&List::new()), []);
}

/// Counts its drops, and panics in its drop if the flag is set.
#[cfg(feature = "std")]
struct Fuse<'a>(&'a Cell<u32>, bool);

#[cfg(feature = "std")]
impl Drop for Fuse<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        assert!(!self.1, "this drop panics");
    }
}

#[cfg(feature = "std")]
#[test]
fn item_drop_that_panics_does_not_stop_the_other_drops() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    for bad in 0..3 {
        let dropped = Cell::new(0);
        let fuse = |n| Box::new(Boxed::new(Fuse(&dropped, n == bad)));
        let list: List<Boxed<Fuse>> = (0..3).map(fuse).collect();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(list))).is_err());
        assert_eq!(dropped.get(), 3);

        dropped.set(0);
        let queue = Queue::<Boxed<Fuse>>::default();
        queue.requeue_batch([3, 4].map(fuse).into_iter().collect());
        drop(queue.pop());
        (0..3).for_each(|n| queue.requeue(fuse(n)));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(queue))).is_err());
        assert_eq!(dropped.get(), 5);
    }
}

fn list(values: core::ops::Range<u32>) -> List<Boxed<u32>> {
    values.map(|n| Box::new(Boxed::new(n))).collect()
}

#[test]
fn lengths_count_the_nodes_after_a_split_and_in_iterators() {
    let mut rest = list(0..7);
    let front = rest.split_off_front(3);
    assert_eq!((front.len(), rest.len()), (3, 4));
    assert!(rest.iter().map(|node| node.value).eq(3..7));
    let mut iter = front.iter();
    assert_eq!(iter.len(), 3);
    iter.next();
    assert_eq!(iter.len(), 2);
    let mut nodes = front.into_iter();
    assert_eq!((nodes.len(), nodes.size_hint()), (3, (3, Some(3))));
    nodes.next();
    assert_eq!(nodes.size_hint(), (2, Some(2)));
}

#[test]
fn debug_output_of_lists_and_errors_shows_their_content() {
    let nodes = list(0..3);
    assert_eq!(alloc::format!("{nodes:?}"), "List { len: 3, .. }");
    assert_eq!(alloc::format!("{:?}", nodes.iter()), "Iter { len: 3, .. }");
    assert_eq!(
        alloc::format!("{:?}", nodes.into_iter()),
        "IntoIter { len: 3, .. }"
    );
    let closed = crate::Closed(1);
    assert_eq!(
        alloc::format!("{closed} {closed:?}"),
        "the queue is closed Closed(..)"
    );
}

#[test]
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
fn debug_output_of_an_injector_shows_its_length() {
    let queue = Queue::<Boxed<u32>>::default();
    queue.requeue(Box::new(Boxed::new(0)));
    assert_eq!(alloc::format!("{queue:?}"), "Injector { len: 1, .. }");
}

/// Fails if a node's address may use the bit that marks the end of a list.
#[test]
fn alignment_of_nodes_leaves_the_lowest_bit_free() {
    assert!(crate::link::ALIGN.is_power_of_two() && crate::link::ALIGN > 1);
}

#[cfg(all(feature = "queue-spmc", not(any(selvedge_loom, selvedge_shuttle))))]
#[test]
fn overflow_of_a_ring_is_in_the_injector() {
    let queue = Queue::<Boxed<u32>>::default();
    queue_spmc::Overflow::push(&queue, Box::new(Boxed::new(0)));
    let batch: Vec<_> = list(1..3).into_iter().collect();
    queue_spmc::Overflow::push_batch(&queue, batch.into_iter());
    assert!(queue.pop_n(9).iter().map(|node| node.value).eq(0..3));
    let values = crate::ValueInjector::<u32, spin::Mutex<()>>::default();
    queue_spmc::Overflow::push(&values, 0);
    queue_spmc::Overflow::push_batch(&values, 1..3);
    assert!(core::iter::from_fn(|| values.pop()).eq(0..3));
}

#[cfg(all(
    feature = "lock_api",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
#[test]
fn injector_in_a_static_takes_a_lock_api_mutex() {
    static QUEUE: Injector<Boxed<u32>, parking_lot::Mutex<()>> =
        Injector::with_lock(parking_lot::const_mutex(()));

    for n in 0..3 {
        QUEUE.push(Box::new(Boxed::new(n))).unwrap();
    }
    let popped: Vec<_> = core::iter::from_fn(|| QUEUE.pop())
        .map(|b| b.value)
        .collect();
    assert_eq!(popped, [0, 1, 2]);
}

#[cfg(all(
    feature = "lock_api",
    feature = "std",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
#[test]
fn a_lock_is_taken_until_its_guard_is_dropped() {
    fn check(lock: impl Lock) {
        let guard = lock.try_lock();
        assert!(guard.is_some() && lock.try_lock().is_none());
        drop(guard);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
    check(std::sync::Mutex::new(()));
    check(parking_lot::const_mutex(()));
}

#[cfg(all(
    feature = "std",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
#[test]
fn poisoned_default_lock_is_taken() {
    let lock = std::sync::Mutex::new(());
    let poisoned = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        let _guard = lock.lock();
        panic!("poisons the lock");
    }));
    assert!(poisoned.is_err() && lock.is_poisoned());
    let queue = Injector::<Boxed<u32>>::with_lock(lock);
    for n in 0..3 {
        queue.push(Box::new(Boxed::new(n))).unwrap();
    }
    assert_eq!(queue.pop_n(3).len(), 3);
}
