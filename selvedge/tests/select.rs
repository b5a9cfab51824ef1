//! Tests of `select!`, as a program uses it.
#![cfg(feature = "macros")]

use futures::FutureExt;
use selvedge::{Budget, Builder, select, task};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    future::{Future, IntoFuture, Ready, pending, poll_fn, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};
use tokio::sync::{mpsc, oneshot};

/// Runs a future that must not wait.
fn now<F: Future>(future: F) -> F::Output {
    future.now_or_never().expect("it does not wait")
}

#[test]
fn ready_branch_wins_over_pending_ones() {
    let won = now(async {
        select! {
            () = pending() => "pending",
            n = ready(7) => if n == 7 { "ready" } else { "other" },
            () = pending() => { "pending" }
        }
    });
    assert_eq!(won, "ready");
}

#[test]
fn select_waits_until_a_branch_is_ready() {
    let (sender, receiver) = oneshot::channel();
    let mut selects = pin!(async {
        select! {
            got = receiver => got.unwrap(),
            () = pending() => unreachable!(),
        }
    });
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(selects.as_mut().poll(cx).is_pending());
    sender.send(7).unwrap();
    assert_eq!(selects.as_mut().poll(cx), Poll::Ready(7));
}

#[test]
fn first_branch_is_random_unless_biased() {
    let mut won = BTreeSet::new();
    for _ in 0..1000 {
        won.insert(now(async {
            select! { n = ready(0) => n, n = ready(1) => n, n = ready(2) => n }
        }));
        let first = now(async {
            select! { biased; n = ready(0) => n, n = ready(1) => n }
        });
        assert_eq!(first, 0);
    }
    assert_eq!(won, BTreeSet::from([0, 1, 2]));
}

#[test]
fn biased_polls_in_the_order_of_the_branches() {
    let log = RefCell::new(Vec::new());
    let logged = |n| {
        let log = &log;
        poll_fn(move |_| {
            log.borrow_mut().push(n);
            Poll::<()>::Pending
        })
    };
    let never = async {
        select! {
            biased;
            () = logged(1) => {}
            () = logged(2) => {}
            () = logged(3) => {}
        }
    };
    assert!(never.now_or_never().is_none());
    assert_eq!(*log.borrow(), [1, 2, 3]);
}

#[test]
fn false_precondition_disables_its_branch() {
    let polled = Cell::new(false);
    for (a, b, winner) in [(true, false, 'a'), (false, true, 'b'), (false, false, '-')] {
        let won = now(async {
            select! {
                () = async { polled.set(true) }, if a && !b => 'a',
                () = ready(()), if b || a => 'b',
                else => '-',
            }
        });
        assert!(won == winner || a, "{won}");
        assert_eq!(polled.take(), won == 'a');
    }
}

#[test]
fn preconditions_come_before_all_futures() {
    let log = RefCell::new(String::new());
    let logged = |word: &str| log.borrow_mut().push_str(word);
    let condition = |word, value: bool| {
        logged(word);
        value
    };
    let future = |word| {
        logged(word);
        ready(())
    };
    now(async {
        select! {
            biased;
            () = future("f1 "), if condition("c1 ", false) => unreachable!(),
            () = future("f2 "), if condition("c2 ", true) => logged("h2"),
        }
    });
    assert_eq!(*log.borrow(), "c1 c2 f1 f2 h2");
}

#[test]
fn unmatched_output_disables_its_branch() {
    let polls = Cell::new(0);
    let counted = poll_fn(|_| {
        polls.set(polls.get() + 1);
        Poll::Ready(None::<u32>)
    });
    let (sender, receiver) = oneshot::channel();
    let mut selects = pin!(async {
        select! {
            Some(_) = counted => unreachable!(),
            Ok(got) = receiver => got,
        }
    });
    let cx = &mut Context::from_waker(Waker::noop());
    for _ in 0..3 {
        assert!(selects.as_mut().poll(cx).is_pending());
    }
    sender.send("after").unwrap();
    assert_eq!(selects.as_mut().poll(cx), Poll::Ready("after"));
    assert_eq!(polls.get(), 1, "it is not polled after its output");
}

#[test]
fn unmatched_outputs_lead_to_else() {
    let won = now(async {
        select! {
            Ok::<u32, ()>(_) = ready(Err(())) => "value",
            Some(3..) = ready(Some(2)) => "large",
            else => "else",
        }
    });
    assert_eq!(won, "else");
    assert_eq!(
        now(async {
            select! { else => 7 }
        }),
        7
    );
}

#[test]
#[should_panic(expected = "all branches of a select! are disabled")]
fn disabled_branches_without_else_panic() {
    now(async {
        select! { Some(()) = ready(None) => {} }
    });
}

/// A value that is not a future, but makes one by `IntoFuture`. The output is not `Copy`.
struct Later(&'static str);

impl IntoFuture for Later {
    type Output = String;
    type IntoFuture = Ready<String>;

    fn into_future(self) -> Ready<String> {
        ready(self.0.to_owned())
    }
}

struct Point {
    x: String,
    y: u32,
}

#[test]
#[allow(clippy::toplevel_ref_arg, reason = "as users write them")]
fn patterns_bind_as_in_a_match() {
    const SEVEN: u32 = 7;
    let text = now(async {
        select! {
            mut text = Later("a") => {
                text.push('b');
                text
            }
        }
    });
    assert_eq!(text, "ab");
    let point = || {
        ready(Point {
            x: "x".to_owned(),
            y: 7,
        })
    };
    assert_eq!(
        now(async {
            select! { Point { x, y: SEVEN } = point() => x, else => String::new() }
        }),
        "x"
    );
    assert_eq!(
        now(async {
            select! { Point { mut x, .. } = point() => { x.push('!'); x } }
        }),
        "x!"
    );
    assert_eq!(
        now(async {
            select! { ref whole = point() => whole.x.len() as u32 + whole.y }
        }),
        8
    );
    assert_eq!(
        now(async {
            select! { n @ 1..=9 = ready(3) => n, else => 0 }
        }),
        3
    );
    assert_eq!(
        now(async {
            select! { Ok(n) | Err(n) = ready(Err::<u32, u32>(4)) => n }
        }),
        4
    );
    assert_eq!(
        now(async {
            select! { Some(&n) = ready(Some(&5)) => n, else => 0 }
        }),
        5
    );
    assert_eq!(
        now(async {
            select! { None = ready(None::<String>) => 1, else => 0 }
        }),
        1
    );
}

/// Fails to compile if the value that is matched is not a mutable place.
#[test]
#[allow(clippy::toplevel_ref_arg, reason = "as users write them")]
fn pattern_with_ref_mut_changes_the_output_in_place() {
    let point = || {
        ready(Point {
            x: "x".to_owned(),
            y: 7,
        })
    };
    let inner = now(async {
        select! {
            Some(ref mut text) = ready(Some("a".to_owned())) => {
                text.push('b');
                text.clone()
            }
            else => String::new(),
        }
    });
    assert_eq!(inner, "ab");
    let whole = now(async {
        select! { ref mut n = ready(6) => { *n += 1; *n } }
    });
    assert_eq!(whole, 7);
    let field = now(async {
        select! { Point { ref mut x, ref y } = point() => { x.push('!'); (x.clone(), *y) } }
    });
    assert_eq!(field, ("x!".to_owned(), 7));
    let bound = now(async {
        select! {
            ref mut all @ [1, ..] | ref mut all @ [.., 1] = ready([3, 1]) => { all[0] = 2; *all }
            else => [0, 0],
        }
    });
    assert_eq!(bound, [2, 1]);
    let mut number = 3;
    now(async {
        select! { (&mut ref mut n, _) = ready((&mut number, ())) => *n += 1 }
    });
    assert_eq!(number, 4);
}

/// A large future with a large output.
async fn large(n: u8) -> [u8; 1000] {
    let output = [n; 1000];
    task::yield_now().await;
    std::hint::black_box(output)
}

/// Fails if the frame has room for a future before it is pinned, and again for the pinned one.
#[test]
fn select_has_room_for_each_future_once() {
    let selects = async {
        select! { a = large(0) => a[0], b = large(1) => b[0], c = large(2) => c[0] }
    };
    let (size, futures) = (size_of_val(&selects), 3 * size_of_val(&large(0)));
    assert!(size < futures + 1200, "{size}, of which {futures}");
    let selects = async {
        select! { () = task::consume_budget() => 0, n = ready([7_u64; 9]) => n[0] }
    };
    let futures = size_of_val(&task::consume_budget()) + size_of_val(&ready([7_u64; 9]));
    let size = size_of_val(&selects);
    assert!(size < futures + 130, "{size}, of which {futures}");
}

#[test]
fn handler_borrows_what_the_futures_borrowed() {
    async fn pop(from: &mut Vec<u32>) -> u32 {
        from.pop().unwrap()
    }
    let mut numbers = vec![1, 2];
    now(async {
        select! {
            n = pop(&mut numbers) => numbers.extend([n, n]),
            () = pending() => numbers.clear(),
        }
    });
    assert_eq!(numbers, [1, 2, 2]);
}

#[test]
fn losers_are_dropped_before_the_handler() {
    struct Drops<'a>(&'a Cell<bool>);
    impl Drop for Drops<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let dropped = Cell::new(false);
    let held = Drops(&dropped);
    let before = now(async {
        select! {
            () = async move { let _held = held; pending().await } => unreachable!(),
            () = ready(()) => dropped.get(),
        }
    });
    assert!(before);
}

#[test]
fn handlers_await_return_and_break() {
    async fn run(mut receiver: mpsc::Receiver<u32>) -> Result<u32, String> {
        let mut sum = 0;
        let last = 'outer: loop {
            select! {
                Some(n) = receiver.recv() => match n {
                    0 => break 'outer n,
                    1 => continue,
                    2 => return Err("two".to_owned()),
                    n => {
                        task::yield_now().await;
                        sum += n.checked_sub(3).ok_or("never")?;
                    }
                },
                else => break sum,
            }
        };
        Ok(last + sum)
    }
    let outputs = |numbers: &[u32]| {
        let (sender, receiver) = mpsc::channel(8);
        numbers.iter().for_each(|n| sender.try_send(*n).unwrap());
        drop(sender);
        futures::executor::block_on(run(receiver))
    };
    assert_eq!(outputs(&[4, 5, 0, 9]), Ok(3));
    assert_eq!(outputs(&[4, 1, 2, 9]), Err("two".to_owned()));
    assert_eq!(outputs(&[4, 5]), Ok(6));
}

#[test]
fn future_is_kept_for_the_next_round_by_reference() {
    let (sender, receiver) = oneshot::channel();
    let mut turns = 0;
    let got = now(async {
        selvedge::pin!(receiver);
        let mut sender = Some(sender);
        loop {
            select! {
                got = &mut receiver => break got,
                () = ready(()), if sender.is_some() => {
                    turns += 1;
                    if turns == 3 {
                        sender.take().unwrap().send('c').unwrap();
                    }
                }
            }
        }
    });
    assert_eq!((got, turns), (Ok('c'), 3));
}

#[test]
fn selects_nest() {
    let won = now(async {
        select! {
            a = async { select! { a = ready(1) => a, b = pending::<u32>() => b } } => {
                select! { b = ready(a + 1) => b + a, else => 0 }
            }
            () = pending() => 0,
        }
    });
    assert_eq!(won, 3);
}

#[test]
fn select_in_a_task_is_send() {
    let runtime = Builder::new().workers(2).build().unwrap();
    let (sender, mut receiver) = mpsc::channel(1);
    let task = runtime.spawn(async move {
        select! {
            got = receiver.recv() => got,
            () = pending() => None,
        }
    });
    runtime.block_on(sender.send(7)).unwrap();
    assert_eq!(runtime.block_on(task).unwrap(), Some(7));
}

#[test]
fn exhausted_budget_polls_no_branch() {
    let runtime = Builder::new_current_thread()
        .budget(Budget::new(3))
        .build()
        .unwrap();
    let (operations, uncharged) = (Cell::new(0), Cell::new(0));
    runtime.block_on(async {
        let mut loops = pin!(async {
            loop {
                select! {
                    biased;
                    () = poll_fn(|_| {
                        uncharged.set(uncharged.get() + 1);
                        Poll::<()>::Pending
                    }) => {}
                    () = task::consume_budget() => operations.set(operations.get() + 1),
                }
            }
        });
        poll_fn(|cx| Poll::Ready(loops.as_mut().poll(cx).is_pending())).await;
    });
    // The fourth round polls neither branch.
    assert_eq!((operations.get(), uncharged.get()), (3, 3));
}

macro_rules! all_64 {
    ($($n:literal)*) => {
        /// Only branch `n` is enabled.
        async fn nth_of_64(n: u32) -> u32 {
            select! { $(got = ready($n), if n == $n => got,)* }
        }
    };
}

all_64! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
}

#[test]
fn select_has_64_branches() {
    for n in 0..64 {
        assert_eq!(now(nth_of_64(n)), n);
    }
}

/// Fails if the check of `select!` for its turn counts as a wait.
#[test]
fn dump_of_a_select_has_a_wait_for_each_branch() {
    use selvedge::{DumpOutcome, TaskState, sync};

    let runtime = Builder::new().workers(1).list_tasks(true).build().unwrap();
    let (_first, first) = sync::oneshot::channel::<()>();
    let (_second, second) = sync::oneshot::channel::<()>();
    let _task = runtime.spawn(async {
        select! {
            _ = first => (),
            _ = second => (),
        }
    });
    while runtime.handle().tasks().unwrap()[0].state != TaskState::Waiting {
        std::thread::yield_now();
    }
    let dump = loop {
        let dump = runtime.block_on(runtime.handle().dump()).unwrap().remove(0);
        // A busy machine may leave the worker no time within the dump's limit.
        if dump.outcome == DumpOutcome::Waits {
            break dump;
        }
    };
    assert_eq!(dump.waits.len(), 2, "{dump}");
}
