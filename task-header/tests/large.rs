//! Measures how many copies of a large future the stack holds during a spawn. Run it with
//! `cargo test --release -p task-header --test large`. Only a release build has this test, because
//! without optimisation every move is a copy.
#![cfg(all(feature = "std", not(debug_assertions), target_arch = "x86_64"))]
#![allow(missing_docs, reason = "a test")]
use std::{
    future::Future,
    hint::black_box,
    pin::Pin,
    task::{Context, Poll},
    thread,
};
use task_header::{Builder, Notified, Ran, Schedule, WakeKind, new, new_detached};

const SIZE: usize = 64 << 10;
const PAINTED: usize = 8 * SIZE;
const PAINT: u8 = 0xA5;

struct Nowhere;

impl Schedule for Nowhere {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        drop(task);
    }
}

struct Large([u8; SIZE]);

impl Large {
    fn new() -> Self {
        Self([black_box(3); SIZE])
    }
}

impl Future for Large {
    type Output = u8;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u8> {
        Poll::Ready(black_box(&self.0)[77])
    }
}

#[inline(never)]
fn paint() -> usize {
    let mut paint = [PAINT; PAINTED];
    black_box(&mut paint).as_ptr().addr()
}

/// Returns the depth to which `f` writes into the stack, in bytes.
fn depth(f: fn()) -> usize {
    let measured = thread::Builder::new().stack_size(PAINTED + (256 << 10));
    let measured = measured.spawn(move || {
        let bottom = paint();
        f();
        let untouched = (0..PAINTED).take_while(|&at| {
            let byte = std::ptr::with_exposed_provenance::<u8>(bottom + at);
            // SAFETY: the address is below this frame, in this thread's stack. It is mapped, since
            // it was painted, and nothing else uses it.
            (unsafe { byte.read_volatile() }) == PAINT
        });
        PAINTED - untouched.count()
    });
    measured.unwrap().join().unwrap()
}

#[inline(never)]
fn pass_on(large: Large) -> Large {
    black_box(large)
}

#[test]
fn large_future_is_spawned_without_a_second_copy_on_the_stack() {
    let spawns: [(&str, fn()); 3] = [
        ("detached", || {
            let task = new_detached(Large::new(), Nowhere);
            assert!(matches!(task.run(), Ran::Complete));
        }),
        ("joined", || {
            let (task, join) = new(Large::new(), Nowhere);
            assert!(matches!(task.run(), Ran::Complete));
            drop(join);
        }),
        ("built", || {
            let (task, join) = Builder::new().name("large").spawn(Large::new(), Nowhere);
            assert!(matches!(task.run(), Ran::Complete));
            drop(join);
        }),
    ];
    for (name, spawn) in spawns {
        let depth = depth(spawn);
        println!("{name}: {depth} bytes");
        assert!(depth < SIZE + SIZE / 2, "{name}: {depth} bytes of stack");
    }
}

#[test]
fn second_copy_on_the_stack_is_detected() {
    let depth = depth(|| {
        let large = pass_on(Large::new());
        assert!(matches!(new_detached(large, Nowhere).run(), Ran::Complete));
    });
    assert!(depth >= 2 * SIZE, "{depth} bytes of stack");
}
