//! Makes one error, which the first argument names. A sanitizer must report that error. If the
//! sanitizer does not, its silence about other programs means nothing.
use std::{
    hint::black_box,
    sync::{Mutex, mpsc},
    thread,
};
use sync_shim::{cell::UnsafeCell, sync::Arc};

struct Racy(UnsafeCell<u64>);

// SAFETY: unsound on purpose.
unsafe impl Sync for Racy {}

/// Two threads write to one word without synchronisation.
fn race() {
    let word = Arc::new(Racy(UnsafeCell::new(0)));
    let write = |word: &Racy| {
        for _ in 0..1_000 {
            // SAFETY: unsound on purpose.
            word.0.with_mut(|word| unsafe { *word += 1 });
            thread::yield_now();
        }
    };
    let other = {
        let word = word.clone();
        thread::spawn(move || write(&word))
    };
    write(&word);
    other.join().unwrap();
}

/// A block is leaked, with no pointer left to it.
#[inline(never)]
fn leak() {
    std::mem::forget(black_box(Box::new([1u64; 100])));
}

/// A freed block is read.
fn use_after_free() {
    let block = Box::into_raw(Box::new(1u64));
    // SAFETY: the pointer came from the box.
    drop(unsafe { Box::from_raw(block) });
    // SAFETY: unsound on purpose.
    let value = unsafe { black_box(block).read() };
    assert_ne!(black_box(value), 2);
}

/// Two threads share values by std's locks, channels and counts, without a mistake. A tool that
/// does not see the orderings inside std reports a race.
fn nothing() {
    let (send, receive) = mpsc::channel();
    let words = Arc::new(Mutex::new(Vec::new()));
    let other = {
        let words = words.clone();
        thread::spawn(move || {
            for sent in receive {
                words.lock().unwrap().push(Box::new(sent));
            }
        })
    };
    for word in 0..1_000 {
        send.send(Box::new(word)).unwrap();
        words.lock().unwrap().pop();
    }
    drop((send, words));
    other.join().unwrap();
}

const USAGE: &str = "\
Runs code with a mistake that a sanitizer must report.

Usage: probe race|leak|use-after-free|nothing";

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        "race" => race(),
        "leak" => leak(),
        "use-after-free" => use_after_free(),
        "nothing" => nothing(),
        "--help" | "-h" => println!("{USAGE}"),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    }
}
