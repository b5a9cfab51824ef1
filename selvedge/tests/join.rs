//! Tests of `pin!`, `join!` and `try_join!`, as a program uses them.
use selvedge::{LocalRuntime, join, pin, try_join, yield_now};
use std::{
    cell::{Cell, RefCell},
    future::{pending, ready},
};

fn block_on<F: Future>(future: F) -> F::Output {
    LocalRuntime::new().unwrap().block_on(future)
}

/// Logs `letter` in each of three polls.
async fn logs(log: &RefCell<String>, letter: char) {
    for turn in 0..3 {
        log.borrow_mut().push(letter);
        if turn < 2 {
            yield_now().await;
        }
    }
}

/// A large future with a large output.
async fn large(n: u8) -> Result<[u8; 1000], ()> {
    let output = [n; 1000];
    yield_now().await;
    Ok(std::hint::black_box(output))
}

/// Fails if the frame has room for an output beside that of its future.
#[test]
fn join_has_room_for_each_future_or_its_output() {
    let futures = 3 * size_of_val(&large(0));
    let joins = async { join!(large(0), large(1), large(2)) };
    let size = size_of_val(&joins);
    assert!(size < futures + 120, "{size}, of which {futures}");
    let [one, two, three] = block_on(joins).into();
    let firsts = [one, two, three].map(|output| output.unwrap()[0]);
    assert_eq!(firsts, [0, 1, 2]);
    let joins = async { try_join!(large(0), large(1), large(2)) };
    let size = size_of_val(&joins);
    assert!(size < futures + 120, "{size}, of which {futures}");
    let (one, two, three) = block_on(joins).unwrap();
    assert_eq!([one, two, three].map(|output| output[0]), [0, 1, 2]);
    let joins = async { join!(biased; ready([7_u64; 9]), ready(8)) };
    assert!(size_of_val(&joins) < 80 + 16 + 120);
}

#[test]
fn join_returns_the_outputs_in_the_order_of_its_arguments() {
    let late = async {
        yield_now().await;
        1
    };
    assert_eq!(
        block_on(async { join!(late, ready("two"), async { 3.0 },) }),
        (1, "two", 3.0)
    );
    assert_eq!(block_on(async { join!(ready(1)) }), (1,));
    assert_eq!(
        block_on(async { join!(biased; ready(1), ready(2)) }),
        (1, 2)
    );
    let () = join!();
}

#[test]
fn join_begins_each_poll_with_another_future() {
    let log = RefCell::default();
    block_on(async { join!(logs(&log, 'a'), logs(&log, 'b'), logs(&log, 'c')) });
    assert_eq!(log.take(), "abcbcacab");
}

#[test]
fn biased_join_keeps_the_order() {
    let log = RefCell::default();
    block_on(async { join!(biased; logs(&log, 'a'), logs(&log, 'b')) });
    assert_eq!(log.take(), "ababab");
}

#[test]
fn try_join_stops_at_the_first_error() {
    let polled = Cell::new(false);
    let last = async {
        polled.set(true);
        Ok::<u32, &str>(1)
    };
    let joined =
        async { try_join!(biased; ready(Ok::<u32, &str>(1)), ready(Err::<(), _>("no")), last) };
    assert_eq!(block_on(joined), Err("no"));
    assert!(!polled.get());
    let never = async { try_join!(pending::<Result<(), &str>>(), ready(Err::<(), _>("no"))) };
    assert_eq!(block_on(never), Err("no"));
}

#[test]
fn try_join_of_values_returns_them() {
    let joined = async { try_join!(ready(Ok::<_, ()>(1)), async { Ok("two") }) };
    assert_eq!(block_on(joined), Ok((1, "two")));
    let nothing: Result<(), ()> = try_join!();
    assert_eq!(nothing, Ok(()));
}

#[test]
fn join_drops_a_future_when_it_is_ready() {
    struct Sets<'a>(&'a Cell<bool>);
    impl Drop for Sets<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let dropped = Cell::new(false);
    let (sets, dropped) = (Sets(&dropped), &dropped);
    let first = std::future::poll_fn(move |_| {
        let _ = &sets;
        std::task::Poll::Ready(())
    });
    let second = async {
        yield_now().await;
        dropped.get()
    };
    assert!(block_on(async { join!(first, second) }).1);
}

#[test]
fn joined_future_is_send_if_its_parts_are() {
    fn is_send<T: Send>(_: &T) {}
    let joined = async { join!(yield_now(), async { 1 }) };
    is_send(&joined);
    let joined = async { try_join!(async { Ok::<_, ()>(1) }, ready(Ok(2))) };
    is_send(&joined);
}

#[test]
fn pinned_variable_is_awaited_by_reference() {
    let sum = block_on(async {
        let (a, b) = (async { 1 }, yield_now());
        pin!(a, b);
        pin! {
            let c = async { 2 };
            let d = async { 3 };
        }
        (&mut b).await;
        a.as_mut().await + c.await + d.await
    });
    assert_eq!(sum, 6);
}
