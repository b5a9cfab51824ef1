//! Tests of grants, refunds, scopes, hooks, time slices and nudges.
use crate::*;
use proptest::prelude::*;
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

#[test]
fn operations_outside_a_scope_proceed() {
    for _ in 0..1_000 {
        let Poll::Ready(progress) = poll_proceed(&mut cx()) else {
            panic!()
        };
        progress.made_progress();
    }
    assert_eq!(remaining(), None);
}

#[test]
fn exactly_the_budget_is_granted() {
    let granted = Scope::new(Budget::DEFAULT).run(|| {
        std::iter::from_fn(|| match pin!(consume()).poll(&mut cx()) {
            Poll::Ready(()) => Some(()),
            Poll::Pending => None,
        })
        .count()
    });
    assert_eq!(granted, 128);
    assert!(Scope::new(Budget::new(0)).run(|| poll_proceed(&mut cx()).is_pending()));
}

#[test]
fn operation_without_progress_is_free() {
    Scope::new(Budget::new(1)).run(|| {
        for _ in 0..3 {
            assert!(
                pin!(cooperative(std::future::pending::<()>()))
                    .poll(&mut cx())
                    .is_pending()
            );
            assert_eq!(remaining(), Some(1));
        }
        assert!(
            pin!(cooperative(std::future::ready(())))
                .poll(&mut cx())
                .is_ready()
        );
        assert!(!has_remaining());
        assert!(pin!(unconstrained(consume())).poll(&mut cx()).is_ready());
    });
}

#[test]
fn panic_ends_a_scope_and_late_refunds_are_ignored() {
    Scope::new(Budget::new(5)).run(|| {
        let old = Scope::own(Budget::new(5)).run(|| poll_proceed(&mut cx()));
        drop(old);
        assert_eq!(remaining(), Some(5));
        let old = Scope::new(Budget::new(5)).run(|| poll_proceed(&mut cx()));
        drop(old);
        assert_eq!(remaining(), Some(4));
        let new: fn(Budget) -> Scope<'static> = Scope::new;
        for scope in [new, Scope::own] {
            let poll = || scope(Budget::new(1)).run(|| panic!("in a poll"));
            let _: Result<(), _> = std::panic::catch_unwind(poll);
            assert_eq!(remaining(), Some(4));
        }
    });
    assert_eq!(remaining(), None);
}

#[test]
fn refund_in_a_nested_scope_goes_to_the_scope_that_granted() {
    Scope::new(Budget::new(3)).run(|| {
        let Poll::Ready(outer) = poll_proceed(&mut cx()) else {
            panic!()
        };
        Scope::new(Budget::new(7)).run(|| {
            drop(outer);
            assert_eq!(remaining(), Some(2));
        });
        assert_eq!(remaining(), Some(3));
        let Poll::Ready(outer) = poll_proceed(&mut cx()) else {
            panic!()
        };
        Scope::own(Budget::new(7)).run(|| {
            drop(outer);
            assert_eq!(remaining(), Some(7));
        });
        assert_eq!(remaining(), Some(3));
    });
}

/// A function that runs a closure in a scope of one kind, with the given budget.
type RunIn<'a> = &'a dyn Fn(Budget, &mut dyn FnMut());

/// A future whose poll calls a closure.
struct CallOnPoll<'a>(&'a mut dyn FnMut());

impl Future for CallOnPoll<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        (self.0)();
        Poll::Ready(())
    }
}

fn polled(future: impl Future) {
    assert!(pin!(future).poll(&mut cx()).is_ready());
}

/// Asks for that number of operations, and returns how many were granted.
fn spend(operations: u32) -> u32 {
    (0..operations)
        .filter(|_| match poll_proceed(&mut cx()) {
            Poll::Ready(progress) => {
                progress.made_progress();
                true
            }
            Poll::Pending => false,
        })
        .count() as u32
}

#[test]
fn nested_scope_is_limited_by_and_charges_the_outer_one() {
    let (slice, hook) = (Preempt::new(), CountingHook::default());
    let scopes: [RunIn<'_>; 8] = [
        &|budget, f| Scope::new(budget).run(f),
        &|budget, f| Scope::new(budget).hook(&hook).run(f),
        &|budget, f| Scope::new(budget).slice(&slice).hook(&hook).run(f),
        &|budget, f| {
            Scope::new(Budget::UNLIMITED)
                .hook(&hook)
                .turns(|turns| turns.run(budget, f))
        },
        &|budget, f| {
            Scope::new(Budget::UNLIMITED).hook(&hook).turns(|turns| {
                turns.run(Budget::UNLIMITED, || turns.run(budget, f));
            });
        },
        &|budget, f| Scope::new(Budget::UNLIMITED).run(|| Scope::new(budget).run(f)),
        &|budget, f| polled(scope(budget, CallOnPoll(f))),
        &|budget, f| polled(sub_budget(budget, CallOnPoll(f))),
    ];
    for scope in scopes {
        Scope::new(Budget::new(20)).run(|| {
            scope(Budget::new(4), &mut || assert_eq!(spend(3), 3));
            assert_eq!(remaining(), Some(17), "one was left");
            scope(Budget::new(4), &mut || assert_eq!(spend(9), 4));
            assert_eq!(remaining(), Some(13));
            scope(Budget::new(4), &mut || {
                drop(poll_proceed_n(&mut cx(), 4));
                assert_eq!(remaining(), Some(4));
            });
            assert_eq!(remaining(), Some(13), "nothing was done");
            let panics = || {
                scope(Budget::new(4), &mut || {
                    spend(3);
                    panic!("in a scope");
                })
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).unwrap_err();
            assert_eq!(remaining(), Some(10));
            scope(Budget::UNLIMITED, &mut || {
                assert_eq!((remaining(), spend(1)), (Some(10), 1));
            });
            scope(Budget::new(200), &mut || assert_eq!(spend(200), 9));
            assert_eq!((remaining(), spend(1)), (Some(0), 0));
        });
        // Outside of a scope the budget is the only limit.
        scope(Budget::new(200), &mut || assert_eq!(spend(300), 200));
        scope(Budget::UNLIMITED, &mut || assert_eq!(remaining(), None));
    }
}

#[test]
fn own_scope_has_its_whole_budget_and_charges_no_other() {
    let (slice, hook) = (Preempt::new(), CountingHook::default());
    let scopes: [RunIn<'_>; 5] = [
        &|budget, f| Scope::own(budget).run(f),
        &|budget, f| {
            Scope::own(Budget::UNLIMITED)
                .slice(&slice)
                .hook(&hook)
                .turns(|turns| turns.run(budget, f))
        },
        &|budget, f| Scope::unlimited().run(|| Scope::new(budget).hook(&hook).run(f)),
        &|budget, f| {
            Scope::unlimited().run(|| {
                Scope::new(Budget::UNLIMITED)
                    .hook(&hook)
                    .turns(|turns| turns.run(budget, f))
            })
        },
        &|budget, f| {
            Scope::new(Budget::new(2)).run(|| Scope::own(budget).run(f));
        },
    ];
    for scope in scopes {
        Scope::new(Budget::new(10)).run(|| {
            scope(Budget::new(200), &mut || assert_eq!(spend(300), 200));
            let panics = || {
                scope(Budget::new(4), &mut || {
                    spend(3);
                    panic!("in a scope");
                })
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).unwrap_err();
            scope(Budget::new(0), &mut || assert_eq!(spend(1), 0));
            assert_eq!(remaining(), Some(10));
            Scope::new(Budget::new(0)).run(|| {
                scope(Budget::new(7), &mut || assert_eq!(spend(8), 7));
            });
            assert_eq!(remaining(), Some(10));
        });
    }
}

#[test]
fn own_scope_refuses_when_the_outer_slice_is_over() {
    let slice = Preempt::new();
    Scope::new(Budget::new(1))
        .slice(&slice)
        .hook(&CountingHook::default())
        .run(|| {
            Scope::own(Budget::new(9)).run(|| {
                assert_eq!(spend(1), 1);
                slice.request();
                assert_eq!(spend(1), 0);
                Scope::unlimited().run(|| assert_eq!(spend(1), 1));
            });
        });
}

#[test]
fn operations_between_nested_turns_charge_the_outer_scope() {
    Scope::new(Budget::new(10)).run(|| {
        Scope::new(Budget::UNLIMITED)
            .hook(&CountingHook::default())
            .turns(|turns| {
                assert_eq!((remaining(), spend(2)), (Some(10), 2));
                turns.run(Budget::new(5), || assert_eq!(spend(6), 5));
                turns.run(Budget::new(5), || assert_eq!(spend(6), 3));
                assert!(!has_remaining());
            });
        assert_eq!(remaining(), Some(0));
    });
}

#[test]
fn several_polls_may_share_one_budget() {
    Scope::new(Budget::new(2)).run(|| {
        assert!(pin!(consume()).poll(&mut cx()).is_ready());
        assert!(has_remaining());
        assert!(pin!(consume()).poll(&mut cx()).is_ready());
        assert!(!has_remaining());
        assert!(pin!(consume()).poll(&mut cx()).is_pending());
    });
}

#[test]
fn batch_is_granted_the_rest_and_refunds_what_is_not_done() {
    Scope::new(Budget::new(10)).run(|| {
        let batch = |wanted| match poll_proceed_n(&mut cx(), wanted) {
            Poll::Ready(progress) => Some(progress),
            Poll::Pending => None,
        };
        batch(4).unwrap().made_progress_n(1);
        assert_eq!(remaining(), Some(9));
        let progress = batch(100).unwrap();
        assert_eq!((progress.granted(), remaining()), (9, Some(0)));
        assert!(batch(1).is_none());
        assert_eq!(batch(0).unwrap().granted(), 0);
        progress.made_progress_n(100);
        assert_eq!(remaining(), Some(0));
    });
}

#[test]
fn default_budget_is_128_operations() {
    assert_eq!(Budget::default(), Budget::new(128));
}

#[test]
fn largest_and_unlimited_budgets_do_not_overflow() {
    let mut largest = Budget::new(u32::MAX);
    largest.refund();
    assert_eq!(largest.remaining(), Some(u32::MAX));
    let mut unlimited = Budget::UNLIMITED;
    assert_eq!(unlimited.charge_n(u32::MAX), u32::MAX);
    assert!(unlimited.charge() && unlimited == Budget::UNLIMITED);
    unlimited.refund_n(u32::MAX);
    unlimited.refund_n(u32::MAX);
    assert_eq!(unlimited.remaining(), None);
    assert_eq!(
        format!("{unlimited:?} {largest:?}"),
        "Budget(unlimited) Budget(4294967295)"
    );
}

#[test]
fn scope_without_a_limit_grants_every_operation() {
    Scope::new(Budget::UNLIMITED).run(|| {
        for _ in 0..1_000 {
            assert!(pin!(consume()).poll(&mut cx()).is_ready());
        }
        assert!(has_remaining() && remaining().is_none());
    });
}

/// Counts the calls of a hook, and the wakes of a waker.
#[derive(Default)]
struct CountingHook {
    deferred: AtomicUsize,
    yields: AtomicUsize,
    wakes: AtomicUsize,
}

impl OnExhausted for CountingHook {
    fn defer(&self, _: &Waker) {
        self.deferred.fetch_add(1, Relaxed);
    }
    fn forced_yield(&self, _: Exhausted) {
        self.yields.fetch_add(1, Relaxed);
    }
}

impl Wake for CountingHook {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Relaxed);
    }
}

impl CountingHook {
    /// Returns the deferred wakes, forced yields and wakes since the last call.
    fn take(&self) -> [usize; 3] {
        [&self.deferred, &self.yields, &self.wakes].map(|count| count.swap(0, Relaxed))
    }
}

#[test]
fn exhausted_budget_wakes_or_calls_the_hook_of_its_scope() {
    let hook = Arc::new(CountingHook::default());
    let waker = Waker::from(hook.clone());
    let ask = || assert!(poll_proceed(&mut Context::from_waker(&waker)).is_pending());
    Scope::new(Budget::new(0)).run(ask);
    assert_eq!(hook.take(), [0, 0, 1]);
    Scope::new(Budget::new(0)).hook(&*hook).run(|| {
        ask();
        ask();
        assert_eq!(hook.take(), [2, 1, 0]);
        // This scope stands for another runtime inside the outer one. The outer runtime's hook must
        // not get the inner scope's refusals.
        Scope::new(Budget::new(0)).run(ask);
        assert_eq!(hook.take(), [0, 0, 1]);
        ask();
    });
    assert_eq!(hook.take(), [1, 0, 0]);
}

#[test]
fn panicking_hook_leaves_both_scopes_intact() {
    struct Bad;
    impl OnExhausted for Bad {
        fn defer(&self, _: &Waker) {
            panic!("in a hook");
        }
    }
    Scope::new(Budget::new(5)).run(|| {
        let bad = || {
            Scope::new(Budget::new(0))
                .hook(&Bad)
                .run(|| poll_proceed(&mut cx()).is_ready())
        };
        std::panic::catch_unwind(bad).unwrap_err();
        assert_eq!(remaining(), Some(5));
    });
}

#[test]
fn each_turn_has_a_budget_and_code_between_turns_has_none() {
    let hook = CountingHook::default();
    Scope::new(Budget::UNLIMITED).hook(&hook).turns(|turns| {
        for budget in [3, 0, 5] {
            turns.run(Budget::new(budget), || {
                while let Poll::Ready(progress) = poll_proceed(&mut cx()) {
                    progress.made_progress();
                }
                assert!(poll_proceed(&mut cx()).is_pending());
            });
            assert_eq!(remaining(), None);
            assert!(poll_proceed(&mut cx()).is_ready());
        }
    });
    // `forced_yield` is called once in a turn, however often the turn refused an operation.
    assert_eq!(hook.yields.load(Relaxed), 3);
}

#[test]
fn refund_of_an_earlier_turn_is_ignored() {
    Scope::new(Budget::UNLIMITED)
        .hook(&CountingHook::default())
        .turns(|turns| {
            let kept = turns.run(Budget::new(2), || poll_proceed(&mut cx()));
            turns.run(Budget::new(2), || {
                assert!(poll_proceed(&mut cx()).is_ready());
                drop(kept);
                assert_eq!(remaining(), Some(2));
                let Poll::Ready(progress) = poll_proceed(&mut cx()) else {
                    panic!()
                };
                // The refund comes from a nested scope, and goes to the turn around it.
                Scope::new(Budget::new(9)).run(|| drop(progress));
                assert_eq!(remaining(), Some(2));
            });
        });
}

#[test]
fn nested_turn_leaves_the_outer_turn_unchanged() {
    Scope::new(Budget::UNLIMITED)
        .hook(&CountingHook::default())
        .turns(|turns| {
            turns.run(Budget::new(7), || {
                turns.run(Budget::new(1), || assert_eq!(remaining(), Some(1)));
                assert_eq!(remaining(), Some(7));
                Scope::new(Budget::UNLIMITED)
                    .hook(&CountingHook::default())
                    .turns(|inner| {
                        inner.run(Budget::new(2), || assert_eq!(remaining(), Some(2)));
                        turns.run(Budget::new(3), || assert_eq!(remaining(), Some(3)));
                        assert_eq!(remaining(), Some(7));
                        turns.run(Budget::new(30), || assert_eq!(remaining(), Some(7)));
                    });
                assert_eq!(remaining(), Some(7));
            });
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                turns.run(Budget::new(0), || panic!("in a turn"));
            }));
            assert!(panicked.is_err());
            assert_eq!(remaining(), None);
            assert!(poll_proceed(&mut cx()).is_ready());
        });
}

#[test]
fn turns_refuse_from_a_slices_end_until_the_next_slice() {
    let (slice, hook) = (Preempt::new(), CountingHook::default());
    let proceeds = || poll_proceed(&mut cx()).is_ready();
    Scope::own(Budget::UNLIMITED)
        .slice(&slice)
        .hook(&hook)
        .turns(|turns| {
            turns.run(Budget::new(5), || {
                assert!(proceeds());
                slice.request();
                assert!(!proceeds());
                Scope::unlimited().run(|| assert!(proceeds()));
            });
            turns.run(Budget::new(5), || {
                assert!(!proceeds(), "no slice was opened since")
            });
            slice.open_slice();
            turns.run(Budget::new(5), || assert!(proceeds()));
        });
    slice.request();
    assert!(proceeds(), "outside of all scopes no slice refuses");
    assert_eq!(hook.yields.load(Relaxed), 2);
}

/// A poll may go on after refusals, such as one that calls a `block_on`. Of the operations that a
/// scope would refuse, it grants the 16,384th, and then each 64th. Fails if a scope never grants an
/// operation again, grants it too early, or refunds it.
#[test]
fn poll_that_goes_on_after_refusals_is_granted_operations() {
    const FIRST_GRANTED: u32 = 16_384;
    const GRANTED_EACH: u32 = 64;
    let slice = Preempt::new();
    for operations in [0, 10] {
        if operations > 0 {
            slice.request();
        }
        Scope::own(Budget::new(operations)).slice(&slice).run(|| {
            for expected in [FIRST_GRANTED, GRANTED_EACH, GRANTED_EACH] {
                let granted = (1..).find(|_| poll_proceed(&mut cx()).is_ready());
                assert_eq!(granted, Some(expected));
                assert_eq!(remaining(), Some(operations));
            }
            let granted = (1..).find(|_| scope::poll_has_remaining(&mut cx()).is_ready());
            assert_eq!(granted, Some(GRANTED_EACH));
        });
        let again = Scope::new(Budget::new(0));
        again.run(|| assert!((1..GRANTED_EACH).all(|_| poll_proceed(&mut cx()).is_pending())));
    }
}

/// Fails if a nudge stays after a refusal, if an operation in a nested scope ignores the nudge, or
/// if the hook is not called.
#[test]
fn nudge_refuses_one_operation_in_any_scope_and_calls_hook() {
    let proceeds = || poll_proceed(&mut cx()).is_ready();
    let twice = || {
        assert!(!proceeds());
        assert!(proceeds());
    };
    let scopes: [&dyn Fn(); 5] = [
        &twice,
        &|| Scope::new(Budget::new(5)).run(twice),
        &|| Scope::new(Budget::new(2)).run(twice),
        &|| Scope::new(Budget::new(2)).run(|| Scope::new(Budget::UNLIMITED).run(twice)),
        &|| {
            assert!(poll_proceed_n(&mut cx(), 9).is_pending());
            assert!(poll_proceed_n(&mut cx(), 9).is_ready());
        },
    ];
    for within in scopes {
        let (slice, hook) = (Preempt::new(), CountingHook::default());
        Scope::own(Budget::UNLIMITED)
            .slice(&slice)
            .hook(&hook)
            .turns(|turns| {
                turns.run(Budget::new(10), || {
                    assert!(slice.nudge() && !slice.nudge());
                    assert!(
                        has_remaining() && !need_preempt(),
                        "a nudge ends neither budget nor slice"
                    );
                    within();
                });
            });
        assert_eq!(hook.yields.load(Relaxed), 1);
    }
}

#[test]
fn refused_operation_is_free_and_its_retry_charges_once() {
    let (slice, hook) = (Preempt::new(), CountingHook::default());
    for budget in [
        Budget::new(0),
        Budget::new(1),
        Budget::new(u32::MAX),
        Budget::UNLIMITED,
    ] {
        Scope::new(budget).slice(&slice).hook(&hook).run(|| {
            let left = || remaining().map(u64::from);
            let all = left();
            assert!(slice.nudge());
            let refused = poll_proceed(&mut cx());
            assert!(refused.is_pending());
            assert_eq!(left(), all, "a nudge");
            slice.request();
            assert!(poll_proceed(&mut cx()).is_pending());
            assert_eq!(left(), all, "a request");
            slice.open_slice();
            let proceeds = poll_proceed(&mut cx());
            assert_eq!(proceeds.is_ready(), all != Some(0));
            assert_eq!(left(), all.map(|all| all.saturating_sub(1)));
            drop(proceeds);
            assert_eq!(left(), all);
            slice.open_slice();
        });
    }
    // The inner scope has a share of the outer budget, and uses this share up.
    Scope::new(Budget::new(2)).run(|| {
        Scope::new(Budget::new(1)).run(|| {
            assert!(
                poll_proceed(&mut cx())
                    .map(Progress::made_progress)
                    .is_ready()
            );
            assert!(poll_proceed(&mut cx()).is_pending());
            assert_eq!(remaining(), Some(0));
        });
        assert_eq!(remaining(), Some(1));
    });
}

#[test]
fn nudge_is_ignored_until_a_look_finds_nothing_or_budget_ends() {
    let slice = Preempt::new();
    let proceeds = || {
        poll_proceed(&mut cx())
            .map(Progress::made_progress)
            .is_ready()
    };
    let polled = |operations: u32| {
        Scope::new(Budget::new(operations))
            .slice(&slice)
            .hook(&CountingHook::default())
            .run(|| (0..=operations).map(|_| proceeds()).collect::<Vec<_>>())
    };
    assert!(slice.nudge());
    assert_eq!(polled(2), [false, true, true]);
    assert!(!slice.nudge());
    assert_eq!(slice.look(|| Some(1)), Some(1));
    assert!(
        !slice.nudge(),
        "after a look that found work the slice ignores nudges"
    );
    assert_eq!(slice.look(|| None::<()>), None);
    assert!(slice.nudge());
    assert_eq!(polled(2), [false, true, true]);
    assert_eq!(polled(2), [true, true, false]);
    assert!(slice.nudge());
    // A request takes effect in any state, and no nudge ends it.
    assert_eq!(polled(1), [false, true]);
    slice.request();
    assert!(!slice.nudge() && slice.need_preempt());
    assert!(slice.look(|| None::<()>).is_none() && slice.need_preempt());
}

#[test]
fn nudge_one_visits_the_workers_in_turn() {
    let slices = Slices::new(3);
    // Nudges each slice, and counts those that refuse: they have a nudge already.
    let nudged = || (0..3).filter(|&worker| !slices.of(worker).nudge()).count();
    let worker = slices.nudge_one().unwrap();
    assert!(slices.of(worker).is_set());
    assert_eq!(nudged(), 1);
    (0..3).for_each(|worker| slices.of(worker).open_slice());
    (0..3).for_each(|_| assert!(slices.nudge_one().is_some()));
    assert_eq!(slices.nudge_one(), None);
    assert_eq!(nudged(), 3);
    // One of two slices is nudged already.
    for ignoring in [0, 1] {
        let two = Slices::new(2);
        two.of(ignoring).nudge();
        assert_eq!(two.nudge_one(), Some(1 - ignoring));
        assert!(!two.of(1 - ignoring).nudge());
    }
    std::panic::catch_unwind(|| Slices::new(0)).unwrap_err();
}

#[test]
fn pinned_future_can_be_wrapped() {
    let mut polled = pin!(cooperative(unconstrained(async {
        let held = [1, 2, 3];
        let first = &held[0];
        consume().await;
        *first
    })));
    Scope::new(Budget::new(1)).run(|| {
        assert_eq!(polled.as_mut().poll(&mut cx()), Poll::Ready(1));
        assert_eq!(remaining(), Some(0));
    });
}

#[test]
fn slice_end_refuses_operations_and_keeps_the_budget() {
    #[derive(Default)]
    struct Why(std::cell::RefCell<Vec<Exhausted>>);
    impl OnExhausted for Why {
        fn defer(&self, _: &Waker) {}
        fn forced_yield(&self, why: Exhausted) {
            self.0.borrow_mut().push(why);
        }
    }
    let (slice, why) = (Preempt::new(), Why::default());
    let proceeds = || poll_proceed(&mut cx()).is_ready();
    Scope::new(Budget::UNLIMITED)
        .slice(&slice)
        .hook(&why)
        .run(|| {
            assert!(proceeds() && !need_preempt());
            slice.request();
            assert!(!proceeds() && !proceeds() && need_preempt() && !has_remaining());
            assert!(
                Scope::new(Budget::new(9)).run(|| !proceeds()),
                "a nested scope refuses too when the slice is over"
            );
            assert!(pin!(unconstrained(consume())).poll(&mut cx()).is_ready());
            let batch = poll_proceed_n(&mut cx(), 3);
            assert!(batch.is_pending());
        });
    assert!(!need_preempt());
    slice.open_slice();
    Scope::new(Budget::new(1)).slice(&slice).hook(&why).run(|| {
        assert!(pin!(consume()).poll(&mut cx()).is_ready());
        assert!(!proceeds());
    });
    assert_eq!(*why.0.borrow(), [Exhausted::Slice, Exhausted::Operations]);
}

#[test]
fn share_is_taken_from_the_budget_and_its_rest_returns() {
    Scope::new(Budget::new(10)).run(|| {
        let outer = poll_proceed(&mut cx());
        Scope::new(Budget::new(4)).run(|| {
            assert!(pin!(consume()).poll(&mut cx()).is_ready());
            drop(outer);
            assert_eq!(remaining(), Some(3));
        });
        assert_eq!(remaining(), Some(9));
        let _ = std::panic::catch_unwind(|| {
            Scope::new(Budget::new(4)).run(|| panic!("in a poll"));
        });
        assert_eq!(remaining(), Some(9));
        Scope::new(Budget::UNLIMITED).run(|| assert_eq!(remaining(), Some(9)));
        let mut polled = 0;
        let mut future = pin!(sub_budget(
            Budget::new(2),
            std::future::poll_fn(|cx| {
                polled += 1;
                while let Poll::Ready(progress) = poll_proceed(cx) {
                    progress.made_progress();
                }
                Poll::<()>::Pending
            })
        ));
        for _ in 0..7 {
            assert!(future.as_mut().poll(&mut cx()).is_pending());
        }
        assert_eq!(
            (remaining(), polled),
            (Some(0), 5),
            "it was polled without budget"
        );
    });
}

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
#[test]
fn ticker_ends_slices_periodically_until_dropped() {
    let slice = Arc::new(Preempt::new());
    let ticker = Ticker::new(std::time::Duration::from_millis(1), [slice.clone()]).unwrap();
    for _ in 0..3 {
        slice.open_slice();
        while !slice.need_preempt() {
            std::thread::yield_now();
        }
    }
    drop(ticker);
    assert_eq!(Arc::strong_count(&slice), 1);
}

#[derive(Clone, Debug)]
enum Op {
    Proceed(u32),
    /// Keeps that number of operations of the charge at this index, and refunds the rest.
    Keep(prop::sample::Index, u32),
    /// Refunds the charge at this index.
    Refund(prop::sample::Index),
    /// Runs the operations in an own scope if the flag is true, and in a nested scope otherwise.
    Nest(bool, Option<u32>, Vec<Op>),
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    let leaf = prop_oneof![
        3 => (0..5u32).prop_map(Op::Proceed),
        2 => (index(), 0..5u32).prop_map(|(index, n)| Op::Keep(index, n)),
        2 => index().prop_map(Op::Refund),
    ];
    leaf.prop_recursive(3, 60, 12, |inner| {
        (
            prop::bool::weighted(0.3),
            prop::option::weighted(0.8, 0..12u32),
            prop::collection::vec(inner, 0..12),
        )
            .prop_map(|(is_own, n, ops)| Op::Nest(is_own, n, ops))
    })
}

/// A scope in progress, as the reference model sees it.
struct OpenScope {
    number: usize,
    budget: Option<u32>,
    charged: u32,
    refunded: u32,
}

impl OpenScope {
    fn used(&self) -> u32 {
        self.charged - self.refunded
    }
}

/// The reference model of the budgets in the scopes.
#[derive(Default)]
struct Reference {
    /// The scopes in progress, innermost last.
    scopes: Vec<OpenScope>,
    entered: usize,
    /// Charges that are neither kept nor refunded yet, each with its scope's number.
    charges: Vec<(Progress, usize)>,
}

impl Reference {
    /// Returns what is left in the innermost scope.
    fn left(&self) -> Option<u32> {
        let scope = self.scopes.last()?;
        scope.budget.map(|budget| budget - scope.used())
    }

    fn check(&self) {
        for scope in &self.scopes {
            assert!(
                scope.refunded <= scope.charged,
                "more refunded than charged"
            );
            assert!(scope.budget.is_none_or(|budget| scope.used() <= budget));
        }
        assert_eq!(remaining(), self.left());
    }

    fn refund(&mut self, number: usize, operations: u32) {
        let mut scopes = self.scopes.iter_mut();
        if let Some(scope) = scopes.find(|scope| scope.number == number) {
            scope.refunded += operations;
        }
    }

    fn take_charge(&mut self, index: &prop::sample::Index) -> Option<(Progress, usize)> {
        let charges = &mut self.charges;
        (!charges.is_empty()).then(|| charges.swap_remove(index.index(charges.len())))
    }

    fn run(&mut self, is_own: bool, budget: Option<u32>, ops: &[Op]) {
        self.entered += 1;
        let number = self.entered;
        let real_budget = budget.map_or(Budget::UNLIMITED, Budget::new);
        let left = self.left().filter(|_| !is_own);
        self.scopes.push(OpenScope {
            number,
            budget: budget.into_iter().chain(left).min(),
            charged: 0,
            refunded: 0,
        });
        let body = || {
            self.check();
            for op in ops {
                self.step(number, op);
                self.check();
            }
        };
        if is_own {
            Scope::own(real_budget).run(body);
        } else {
            Scope::new(real_budget).run(body);
        }
        let ended = self.scopes.pop().unwrap();
        if let Some(outer) = self.scopes.last_mut().filter(|_| !is_own) {
            outer.charged += ended.used();
        }
        self.check();
    }

    fn step(&mut self, number: usize, op: &Op) {
        match op {
            Op::Proceed(wanted) => {
                let left = remaining();
                match poll_proceed_n(&mut cx(), *wanted) {
                    Poll::Ready(progress) => {
                        let granted = progress.granted();
                        assert_eq!(granted, left.map_or(*wanted, |n| n.min(*wanted)));
                        self.scopes.last_mut().unwrap().charged += granted;
                        self.charges.push((progress, number));
                    }
                    Poll::Pending => assert_eq!((left, *wanted != 0), (Some(0), true)),
                }
            }
            Op::Keep(index, done) => {
                if let Some((progress, scope)) = self.take_charge(index) {
                    let rest = progress.granted().saturating_sub(*done);
                    progress.made_progress_n(*done);
                    self.refund(scope, rest);
                }
            }
            Op::Refund(index) => {
                if let Some((progress, scope)) = self.take_charge(index) {
                    let all = progress.granted();
                    drop(progress);
                    self.refund(scope, all);
                }
            }
            Op::Nest(is_own, budget, ops) => self.run(*is_own, *budget, ops),
        }
    }
}

proptest! {
    #[test]
    fn random_operations_stay_within_the_budget(
        ops in prop::collection::vec(op(), 0..30),
        n in prop::option::weighted(0.9, 0..20u32),
    ) {
        Reference::default().run(false, n, &ops);
        assert_eq!(remaining(), None);
    }
}
