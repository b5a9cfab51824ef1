//! The arguments and the output of a program on a simulated host.
use std::{cell::RefCell, future::Future, future::poll_fn, pin::pin};

thread_local! {
    // A run has a thread of the system of its own, so each run begins with these values.
    static ARGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Returns the arguments of the program whose `main` is polled.
pub fn args() -> impl Iterator<Item = String> {
    ARGS.with_borrow(Clone::clone).into_iter()
}

/// Keeps a line that a program prints.
pub fn print(line: String) {
    OUTPUT.with_borrow_mut(|output| output.push(line));
}

/// Returns the lines that the programs of this run have printed.
pub fn output() -> Vec<String> {
    OUTPUT.with_borrow(Clone::clone)
}

/// Runs the `main` of a program with these arguments.
///
/// A program that reads its arguments at the first poll, before it waits, gets its own.
pub async fn run<F: Future>(args: &[&str], main: impl FnOnce() -> F) -> F::Output {
    let mut main = pin!(main());
    poll_fn(|cx| {
        ARGS.set(args.iter().map(ToString::to_string).collect());
        main.as_mut().poll(cx)
    })
    .await
}
