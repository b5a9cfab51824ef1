//! Tests of the frame loop.
use adopt::{blocking::Blocking, game::Game};
use futures_lite::future::{block_on, yield_now};
use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

const ENDLESS: Duration = Duration::MAX;

fn game() -> Game {
    Game::new(2).expect("threads")
}

#[test]
fn frame_waits_for_its_jobs() {
    let mut game = game();
    let mut squares: Vec<u64> = (0..1_000).collect();
    game.frame(ENDLESS, |jobs| {
        squares
            .iter_mut()
            .for_each(|n| jobs.spawn(move |_| *n *= *n))
    });
    assert!(squares.into_iter().eq((0..1_000).map(|n| n * n)));
}

#[test]
fn frame_without_time_leaves_tasks_to_the_next() {
    let mut game = game();
    let ran = Rc::new(Cell::new(0));
    for _ in 0..3 {
        let ran = ran.clone();
        game.spawn(async move { ran.set(ran.get() + 1) });
    }
    for left in [2, 1, 0] {
        let frame = game.frame(Duration::ZERO, |_| ());
        assert_eq!((frame.polls, frame.left, ran.get()), (1, left, 3 - left));
    }
}

#[test]
fn task_awaiting_the_next_frame_is_polled_once_a_frame() {
    let mut game = game();
    let frames = game.frames().clone();
    let seen = Rc::new(Cell::new(0));
    let script = game.spawn({
        let seen = seen.clone();
        async move {
            for _ in 0..10 {
                seen.set(frames.number());
                frames.next().await;
            }
        }
    });
    for number in 1..=10 {
        assert_eq!(game.frame(ENDLESS, |_| ()).polls, 1);
        assert_eq!(seen.get(), number);
    }
    assert!(!script.is_finished());
    game.frame(ENDLESS, |_| ());
    assert!(script.is_finished());
}

#[test]
fn next_frame_polled_often_stores_one_waker() {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let mut game = game();
    let frames = game.frames().clone();
    let wakers = [Arc::new(Nothing), Arc::new(Nothing)];
    let mut next = pin!(frames.next());
    for waker in [&wakers[0], &wakers[1]] {
        for _ in 0..100 {
            let waker = Waker::from(waker.clone());
            let poll = next.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(poll.is_pending());
        }
    }
    assert_eq!(wakers.each_ref().map(Arc::strong_count), [1, 2]);
    game.frame(ENDLESS, |_| ());
    assert_eq!(Arc::strong_count(&wakers[1]), 1);
    assert!(
        next.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    );
}

#[test]
fn yielding_tasks_take_turns_until_the_frame_ends() {
    let mut game = game();
    let turns = Rc::new([const { Cell::new(0_i32) }; 2]);
    for task in 0..2 {
        let turns = turns.clone();
        game.spawn(async move {
            loop {
                turns[task].set(turns[task].get() + 1);
                assert!((turns[0].get() - turns[1].get()).abs() <= 1);
                yield_now().await;
            }
        });
    }
    let frame = game.frame(Duration::from_millis(1), |_| ());
    assert_eq!(frame.left, 2);
}

#[test]
fn task_awaiting_blocking_threads_is_woken_in_frames() {
    let mut game = game();
    let blocking = Blocking::new(2);
    let level = game.spawn(async move {
        let mut bytes = 0;
        for n in 0..100 {
            bytes += blocking.unblock(move || vec![0_u8; n]).await.len();
        }
        bytes
    });
    while !level.is_finished() {
        game.frame(Duration::from_micros(100), |_| ());
    }
    assert_eq!(block_on(level).unwrap(), 4_950);
}

#[test]
fn panic_of_a_job_leaves_tasks_to_the_next_frame() {
    let mut game = game();
    let (task, ran) = (game.spawn(async { 7 }), AtomicUsize::new(0));
    let frame = || {
        game.frame(ENDLESS, |jobs| {
            jobs.spawn(|_| panic!("of a job"));
            jobs.spawn(|_| _ = ran.fetch_add(1, Relaxed));
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(frame)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"of a job"));
    assert_eq!(ran.load(Relaxed), 1);
    assert_eq!(game.frame(ENDLESS, |_| ()).polls, 1);
    assert_eq!(block_on(task).unwrap(), 7);
}

#[test]
fn dropped_game_cancels_its_tasks() {
    let mut game = game();
    let held = Rc::new(());
    let frames = game.frames().clone();
    let tasks = [0, 1].map(|_| {
        let (held, frames) = (held.clone(), frames.clone());
        game.spawn(async move {
            frames.next().await;
            drop(held);
        })
    });
    game.frame(Duration::ZERO, |_| ()); // One task waits, and one has not begun.
    drop((game, frames));
    assert_eq!(Rc::strong_count(&held), 1);
    for task in tasks {
        assert!(block_on(task).unwrap_err().is_cancelled());
    }
}

#[test]
fn waker_that_panics_at_a_frames_begin_stops_no_other() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("in a wake");
        }
    }
    #[derive(Default)]
    struct Counts(AtomicUsize);
    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    let mut game = game();
    let (frames, counts) = (game.frames().clone(), Arc::<Counts>::default());
    let (mut first, mut second) = (pin!(frames.next()), pin!(frames.next()));
    let panics = Waker::from(Arc::new(Panics));
    let mut cx = Context::from_waker(&panics);
    assert!(first.as_mut().poll(&mut cx).is_pending());
    let counting = Waker::from(counts.clone());
    let mut cx = Context::from_waker(&counting);
    assert!(second.as_mut().poll(&mut cx).is_pending());
    game.frame(Duration::ZERO, |_| ());
    assert_eq!(counts.0.load(Relaxed), 1);
}
