//! Any sequence of operations has the same effect on a queue as on a plain slot, a place for the
//! requeued item and a `VecDeque`, with the same notifications.
use super::{Item, Log};
use crate::{RunQueue, WorkerQueue};
use proptest::prelude::*;
use queue_global::{Boxed, Injector};
use std::collections::VecDeque;

const CAPACITY: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    PushNext,
    PushBetween(u8),
    PushBack,
    Requeue,
    Next,
    TakeSlot,
    PutSlotBehind,
    OpenSlot,
    Leave,
    Inject(u8),
    TakeShare(u8),
    TakeOne,
    Steal,
    Rob,
    TakeAny,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::PushNext),
        3 => (1..4u8).prop_map(Op::PushBetween),
        4 => Just(Op::PushBack),
        4 => Just(Op::Requeue),
        6 => Just(Op::Next),
        1 => Just(Op::TakeSlot),
        1 => Just(Op::PutSlotBehind),
        1 => Just(Op::OpenSlot),
        2 => Just(Op::Leave),
        2 => (0..6u8).prop_map(Op::Inject),
        2 => (0..4u8).prop_map(Op::TakeShare),
        2 => Just(Op::TakeOne),
        2 => Just(Op::Steal),
        1 => Just(Op::Rob),
        1 => Just(Op::TakeAny),
    ]
}

#[derive(Default)]
struct Model {
    slot: Option<u32>,
    requeued: Option<u32>,
    ring: VecDeque<u32>,
    overflowed: Vec<u32>,
    filled: usize,
    /// The least number of notifications that the queue makes.
    notified: usize,
    /// Whether a thief has stolen since the worker last took from the ring. The worker may then
    /// believe that an empty ring has items, and notify once too often.
    stolen: bool,
    /// The most notifications that may come beyond `notified`.
    perhaps: usize,
}

impl Model {
    /// Returns whether the ring overflowed.
    fn push(&mut self, n: u32) -> bool {
        let full = self.ring.len() == CAPACITY;
        if full {
            self.overflowed.extend(self.ring.drain(..CAPACITY / 2));
            self.overflowed.push(n);
            self.notified += 1;
        } else {
            self.ring.push_back(n);
        }
        full
    }

    fn push_back(&mut self, n: u32) {
        if !self.push(n) {
            self.notified += 1;
        }
    }

    /// `to_ring` says that the queue pushed this item alone. After a steal the queue may do so,
    /// although the ring is empty.
    fn requeue(&mut self, n: u32, to_ring: bool) {
        if self.slot.is_some() {
            self.push_back(n);
        } else if !self.ring.is_empty() || self.stolen && to_ring {
            self.push(n);
        } else if let Some(before) = self.requeued.replace(n) {
            self.push(before);
            self.publish_and_notify();
        }
    }

    /// `kept` says that the queue kept this item aside. After a steal the queue may push it,
    /// although the ring is empty.
    fn push_between(&mut self, n: u32, kept: bool) {
        let alone = self.slot.is_none() && self.requeued.is_none() && self.ring.is_empty();
        if alone && (kept || !self.stolen) {
            self.requeued = Some(n);
        } else {
            self.publish_requeued();
            self.push_back(n);
        }
    }

    fn notify_if(&mut self, filled: bool) {
        if filled {
            self.notified += 1;
        } else if self.stolen {
            self.perhaps += 1;
        }
    }

    fn publish_requeued(&mut self) {
        if let Some(n) = self.requeued.take() {
            self.push(n);
        }
    }

    fn publish_and_notify(&mut self) {
        self.publish_requeued();
        self.notify_if(!self.ring.is_empty());
    }

    fn pop(&mut self) -> Option<u32> {
        let popped = self.ring.pop_front();
        self.stolen &= popped.is_none();
        popped
    }
}

proptest! {
    #[test]
    fn queue_behaves_as_slot_requeued_item_and_vec_deque(
        has_slot in any::<bool>(),
        ops in prop::collection::vec(op(), 0..80),
    ) {
        let queue = WorkerQueue::<Item>::new(CAPACITY).with_slot(has_slot);
        let (stealer, thief) = (queue.stealer(), WorkerQueue::<Item>::new(CAPACITY));
        let (injector, log) = (Injector::<Item>::new(), Log::default());
        let (mut model, mut injected, mut count) = (Model::default(), VecDeque::new(), 0);
        let mut item = || { count += 1; Box::new(Boxed::new(count)) };
        for op in ops {
            match op {
                Op::PushNext => {
                    let item = item();
                    let n = item.value;
                    queue.push_next(item, &log);
                    match if has_slot { model.slot.replace(n) } else { Some(n) } {
                        Some(displaced) => model.push_back(displaced),
                        None => model.filled += 1,
                    }
                }
                Op::PushBetween(n) => queue.between_items(|| {
                    for _ in 0..n {
                        let item = item();
                        let (n, before) = (item.value, stealer.len());
                        queue.push_next(item, &log);
                        model.push_between(n, stealer.len() == before);
                    }
                }),
                Op::PushBack => {
                    let item = item();
                    model.push_back(item.value);
                    queue.push_back(item, &log);
                }
                Op::Requeue => {
                    let item = item();
                    let (n, before) = (item.value, stealer.len());
                    queue.requeue(item, &log);
                    model.requeue(n, stealer.len() == before + 1);
                }
                Op::Next => {
                    let next = queue.next(&log).map(|next| (next.item.value, next.from_slot));
                    let expected = match model.slot.take() {
                        Some(n) => { model.publish_and_notify(); Some((n, true)) }
                        None => model.requeued.take().or_else(|| model.pop()).map(|n| (n, false)),
                    };
                    prop_assert_eq!(next, expected);
                }
                Op::TakeSlot => {
                    prop_assert_eq!(queue.take_slot().map(|item| item.value), model.slot.take());
                }
                Op::PutSlotBehind => {
                    let before = stealer.len();
                    queue.requeue_slot(&log);
                    if let Some(n) = model.slot.take() {
                        model.requeue(n, stealer.len() == before + 1);
                    }
                }
                Op::OpenSlot => {
                    queue.open_slot(&log);
                    let opened = [model.requeued.take(), model.slot.take()];
                    opened.into_iter().flatten().for_each(|n| model.push_back(n));
                }
                Op::Leave => {
                    queue.leave(&log);
                    let others = !model.ring.is_empty();
                    model.publish_requeued();
                    model.notify_if(others);
                }
                Op::Inject(n) => {
                    let items: Vec<_> = (0..n).map(|_| item()).collect();
                    injected.extend(items.iter().map(|item| item.value));
                    injector.requeue_batch(items.into_iter().collect());
                }
                Op::TakeShare(workers) => {
                    let (waiting, room) = (injector.len(), CAPACITY - model.ring.len());
                    let share = queue.take_share(&injector, workers.into(), &log);
                    let n = waiting / usize::from(workers).max(1) + 1;
                    let mut expected = injected.drain(..n.min(room / 2 + 1).min(injected.len()));
                    prop_assert_eq!(share.as_ref().map(|share| share.first.value), expected.next());
                    let moved: Vec<_> = expected.collect();
                    if let Some(share) = share {
                        prop_assert_eq!(share.moved, moved.len());
                        moved.into_iter().for_each(|n| { model.push(n); });
                        model.publish_and_notify();
                    }
                }
                Op::TakeOne => {
                    let one = queue.take_one(&injector, &log).map(|item| item.value);
                    prop_assert_eq!(one, injected.pop_front());
                    if one.is_some() {
                        model.publish_and_notify();
                    }
                }
                Op::Steal => {
                    let batch = thief.steal_from(&stealer);
                    let half = model.ring.len().div_ceil(2);
                    let mut stolen = model.ring.drain(..half);
                    prop_assert_eq!(batch.map(|batch| batch.first.value), stolen.next());
                    for n in stolen {
                        prop_assert_eq!(thief.take_any().map(|item| item.value), Some(n));
                    }
                    model.stolen |= half > 0;
                }
                Op::Rob => {
                    let stolen = stealer.look().and_then(|seen| stealer.steal_slot(seen));
                    prop_assert_eq!(stolen.map(|item| item.value), model.slot.take());
                }
                Op::TakeAny => {
                    let own = model.requeued.take().or_else(|| model.slot.take());
                    let expected = own.or_else(|| model.pop());
                    prop_assert_eq!(queue.take_any().map(|item| item.value), expected);
                }
            }
            prop_assert_eq!(queue.slot_is_empty(), model.slot.is_none());
            prop_assert_eq!(stealer.slot_is_empty(), model.slot.is_none());
            prop_assert_eq!(stealer.len(), model.ring.len());
            prop_assert_eq!(stealer.is_empty(), model.ring.is_empty());
            let is_empty =
                model.slot.is_none() && model.requeued.is_none() && model.ring.is_empty();
            prop_assert_eq!(queue.is_empty(), is_empty);
            prop_assert_eq!(log.filled.get(), model.filled);
            prop_assert_eq!(&*log.overflowed.borrow(), &model.overflowed);
            let notified = model.notified..=model.notified + model.perhaps;
            let n = log.notified.get();
            prop_assert!(notified.contains(&n), "{} of {:?}", n, notified);
        }
    }
}
