use super::*;
use crate::{
    Budget, Preempt, Progress, Scope, consume, cooperative, poll_proceed, poll_proceed_n,
    remaining,
    scope::{has_remaining, need_preempt},
    unconstrained,
};
use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Poll, Waker},
};

fn charge() -> Poll<Progress> {
    poll_proceed(&mut Context::from_waker(Waker::noop()))
}

/// An operation that waits.
fn wait() -> Poll<()> {
    charge().map(drop)
}

fn wait_once() {
    assert!(wait().is_ready(), "refused");
}

fn work() {
    let Poll::Ready(progress) = charge() else {
        panic!("refused");
    };
    progress.made_progress();
}

/// Runs a poll under a watch. Returns what the waits say, and the outcome.
fn watched(poll: impl FnOnce()) -> (Vec<Option<WaitsOn>>, Watched) {
    let waits = RefCell::new(Vec::new());
    let on_wait = |what| waits.borrow_mut().push(what);
    let outcome = watch(&on_wait, |watching| {
        poll();
        watching.so_far()
    });
    (waits.into_inner(), outcome)
}

const WAITS: Watched = Watched {
    has_progressed: false,
    is_whole: true,
};
const WORKS: Watched = Watched {
    has_progressed: true,
    is_whole: true,
};

#[test]
fn watch_sees_waits_and_progress_in_any_scope() {
    let slice = Preempt::new();
    let scopes = [
        Scope::own(Budget::DEFAULT).slice(&slice),
        Scope::own(Budget::DEFAULT),
        Scope::new(Budget::UNLIMITED),
        Scope::unlimited(),
    ];
    for scope in scopes {
        scope.run(|| {
            let left = remaining();
            assert_eq!(watched(wait_once), (vec![None], WAITS));
            assert_eq!(remaining(), left, "the charge is refunded");
            assert_eq!(watched(work), (vec![], WORKS));
            assert_eq!(watched(|| {}), (vec![], WAITS));
            let mut both = vec![None, None];
            assert_eq!(
                watched(|| (wait(), wait(), work()).2),
                (both.clone(), WORKS)
            );
            // The watch sees scopes inside of it, too.
            let inner = || {
                Scope::new(Budget::new(3)).run(wait_once);
                Scope::own(Budget::new(3)).run(wait_once);
                Scope::unlimited().run(wait_once);
                let mut cx = Context::from_waker(Waker::noop());
                assert!(
                    pin!(unconstrained(poll_fn(|_| wait())))
                        .poll(&mut cx)
                        .is_ready()
                );
            };
            both.resize(4, None);
            assert_eq!(watched(inner), (both, WAITS));
        });
    }
    assert_eq!(watched(wait_once), (vec![None], WAITS));
}

/// Fails if a watch takes a charge from the budget, or shows another one.
#[test]
fn watch_changes_no_budget() {
    for limit in 0..4 {
        let count = || {
            let mut granted = 0;
            while let Poll::Ready(progress) = charge() {
                progress.made_progress();
                granted += 1;
                assert_eq!(remaining(), Some(limit - granted));
                assert_eq!(has_remaining(), granted < limit);
            }
            granted
        };
        let run = |f: &dyn Fn() -> u32| Scope::own(Budget::new(limit)).run(f);
        assert_eq!(run(&count), limit);
        assert_eq!(run(&|| watch(&|_| {}, |_| count())), limit);
    }
}

#[test]
fn refund_finds_the_scope_of_its_charge() {
    Scope::own(Budget::new(9)).run(|| {
        watch(&|_| {}, |_| {
            let outer = charge();
            Scope::new(Budget::new(5)).run(|| {
                assert_eq!(remaining(), Some(5));
                drop(outer);
                assert_eq!(remaining(), Some(5));
            });
            assert_eq!(remaining(), Some(9));
        });
    });
}

/// A charge that outlives its watch is refunded to no scope, and is no wait of a later watch.
#[test]
fn charge_after_its_watch_is_not_refunded() {
    Scope::own(Budget::new(9)).run(|| {
        let kept = watch(&|_| {}, |_| charge());
        assert_eq!(watched(|| drop(kept)), (vec![], WAITS));
        assert_eq!(remaining(), Some(8));
    });
}

#[test]
fn charge_of_an_outer_watch_is_its_wait() {
    let (outer, _) = watched(|| {
        let kept = charge();
        assert_eq!(watched(|| drop(kept)), (vec![], WAITS));
        assert_eq!(watched(wait_once).0.len(), 1);
    });
    assert_eq!(outer, [None]);
}

#[test]
fn batch_of_nothing_is_neither_progress_nor_a_wait() {
    let batch = |done: u32| {
        move || {
            let mut cx = Context::from_waker(Waker::noop());
            let Poll::Ready(progress) = poll_proceed_n(&mut cx, 5) else {
                panic!("refused")
            };
            progress.made_progress_n(done);
        }
    };
    Scope::own(Budget::new(9)).run(|| {
        assert_eq!(watched(batch(0)), (vec![], WAITS));
        assert_eq!(remaining(), Some(9));
        assert_eq!(watched(batch(2)), (vec![], WORKS));
        assert_eq!(remaining(), Some(7));
        assert_eq!(watched(batch(7)), (vec![], WORKS));
        assert_eq!(remaining(), Some(2));
    });
}

#[test]
fn wrapper_and_its_operation_are_one_wait() {
    let mut cx = Context::from_waker(Waker::noop());
    let inner = || {
        poll_fn(|_| {
            wait_once();
            Poll::<()>::Pending
        })
    };
    let mut poll = || assert!(pin!(cooperative(inner())).poll(&mut cx).is_pending());
    assert_eq!(watched(&mut poll), (vec![None], WAITS));
    let noted = || {
        let outer = charge();
        note_wait(|| "inner".into());
        drop(outer);
    };
    assert_eq!(watched(noted), (vec![Some("inner".into())], WAITS));
}

#[test]
fn refusal_is_a_wait() {
    let slice = Preempt::new();
    Scope::own(Budget::new(1)).slice(&slice).run(|| {
        let (waits, outcome) = watched(|| {
            work();
            assert!(wait().is_pending());
        });
        assert!(waits[0].as_ref().unwrap().to_string().contains("budget"));
        assert_eq!(outcome, WORKS);
    });
}

/// Fails if a watch hides a request that comes in the poll, or one that was there before.
#[test]
fn request_ends_the_watch() {
    let slice = Preempt::new();
    Scope::own(Budget::DEFAULT).slice(&slice).run(|| {
        for is_before in [false, true] {
            slice.open_slice();
            if is_before {
                slice.request();
            }
            let (waits, outcome) = watched(|| {
                slice.request();
                assert!(need_preempt() && wait().is_pending());
            });
            assert!(waits[0].as_ref().unwrap().to_string().contains("slice"));
            assert!(!outcome.is_whole);
            assert!(need_preempt(), "the request stays");
        }
    });
}

#[test]
fn nudge_before_a_watch_is_there_afterwards() {
    let slice = Preempt::new();
    Scope::own(Budget::DEFAULT).slice(&slice).run(|| {
        assert!(slice.nudge());
        assert_eq!(watched(wait_once), (vec![None], WAITS));
        assert!(slice.is_set() && wait().is_pending());
        assert_eq!(watched(|| assert!(!slice.nudge())), (vec![], WAITS));
        assert!(wait().is_ready());
        slice.open_slice();
    });
}

#[test]
fn panic_ends_the_watch_and_is_no_wait() {
    let slice = Preempt::new();
    let waits = Cell::new(0);
    Scope::own(Budget::DEFAULT).slice(&slice).run(|| {
        let on_wait = |_| waits.set(waits.get() + 1);
        let panics = AssertUnwindSafe(|| {
            watch(&on_wait, |_| {
                let _kept = charge();
                panic!("in a poll");
            })
        });
        assert!(catch_unwind(panics).is_err());
        // A look follows a watch.
        assert!(slice.look(|| None::<()>).is_none());
        wait_once();
        note_wait(|| unreachable!());
        assert!(!slice.is_set() && remaining() == Budget::DEFAULT.remaining());
    });
    assert_eq!(waits.get(), 0);
}

/// Fails if the hook runs while the watch's list of charges is in use.
#[test]
fn hook_may_do_operations() {
    let depth = Cell::new(0);
    let on_wait = |_| {
        depth.set(depth.get() + 1);
        if depth.get() < 3 {
            wait_once();
        }
        work();
    };
    let outcome = watch(&on_wait, |watching| {
        wait_once();
        watching.so_far()
    });
    assert_eq!((depth.get(), outcome), (3, WORKS));
}

#[test]
fn charges_beyond_the_places_are_still_refunded() {
    let grant_unlimited = || Scope::unlimited().run(charge);
    Scope::own(Budget::DEFAULT).run(|| {
        let (waits, outcome) = watched(|| (0..=PLACES).for_each(|_| wait_once()));
        // A place is free again after the refund.
        assert!(outcome.is_whole && waits.len() == PLACES + 1);
        let (_, outcome) = watched(|| {
            let kept: Vec<_> = (0..=PLACES).map(|_| grant_unlimited()).collect();
            drop(kept);
        });
        assert!(!outcome.is_whole);
        assert_eq!(remaining(), Budget::DEFAULT.remaining());
    });
}

#[test]
fn consume_is_progress() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut poll = || assert!(pin!(consume()).poll(&mut cx).is_ready());
    assert_eq!(watched(&mut poll), (vec![], WORKS));
}
