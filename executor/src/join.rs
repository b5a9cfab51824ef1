//! The code that `join!` and `try_join!` expand to.
//!
//! A *branch* has one future of a `join!`, and that future's output once the future is ready. The
//! future is pinned in the frame of the code that awaits the `join!`. Nothing is allocated. A poll
//! of the `join!` polls each branch that is not ready. Unless the macro is `biased`, each poll
//! begins with another branch than the poll before. So no branch always uses the budget up before
//! the others.
#![doc(hidden)]

use std::{
    future::{Future, IntoFuture},
    ops::ControlFlow::{self, Break, Continue},
    pin::Pin,
    task::{Context, Poll},
};

/// Makes the future that a branch polls.
#[doc(hidden)]
pub fn some<F: IntoFuture>(future: F) -> Option<F::IntoFuture> {
    Some(future.into_future())
}

/// A future, and then its output.
#[derive(Debug)]
#[doc(hidden)]
pub struct Branch<'a, F: Future> {
    future: Pin<&'a mut Option<F>>,
    output: Option<F::Output>,
}

impl<'a, F: Future> Branch<'a, F> {
    /// Makes the branch of a future that was not polled.
    #[doc(hidden)]
    pub fn new(future: Pin<&'a mut Option<F>>) -> Self {
        let output = None;
        Self { future, output }
    }

    /// Polls the future unless it was ready. Returns whether it is pending.
    #[doc(hidden)]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> ControlFlow<(), bool> {
        if let Some(future) = self.future.as_mut().as_pin_mut() {
            let Poll::Ready(output) = future.poll(cx) else {
                return Continue(true);
            };
            self.output = Some(output);
            self.future.set(None);
        }
        Continue(false)
    }

    /// Takes the output of a future that is ready.
    #[doc(hidden)]
    pub fn output(&mut self) -> F::Output {
        match self.output.take() {
            Some(output) => output,
            None => panic!("a join was polled after it was ready"),
        }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Branch<'_, F> {
    /// As `poll`, and breaks at an error.
    #[doc(hidden)]
    pub fn try_poll(&mut self, cx: &mut Context<'_>) -> ControlFlow<(), bool> {
        let polled = self.poll(cx);
        match self.output {
            Some(Err(_)) => Break(()),
            _ => polled,
        }
    }

    /// Takes the output if it is an error.
    #[doc(hidden)]
    pub fn error(&mut self) -> Option<E> {
        self.output.take_if(|output| output.is_err())?.err()
    }

    /// Takes the value of a future that is ready, and whose output is `Ok`.
    #[doc(hidden)]
    pub fn value(&mut self) -> T {
        match self.output() {
            Ok(value) => value,
            Err(_) => unreachable!("errors were taken out"),
        }
    }
}

/// The order in which a poll goes through the branches.
#[derive(Debug)]
#[doc(hidden)]
pub enum Turns {
    /// The order of the arguments.
    Biased,
    /// The next poll begins with this branch.
    From(usize),
}

/// Polls one branch.
#[doc(hidden)]
pub type PollBranch<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> ControlFlow<(), bool>;

/// Polls the branches, until one breaks. Returns whether one is pending or has broken.
#[doc(hidden)]
pub fn poll(turns: &mut Turns, branches: &mut [PollBranch<'_>], cx: &mut Context<'_>) -> bool {
    let first = match turns {
        Turns::Biased => 0,
        Turns::From(next) => {
            let first = *next;
            *next = (first + 1) % branches.len();
            first
        }
    };
    let mut pending = false;
    let (before, from) = branches.split_at_mut(first);
    for branch in from.iter_mut().chain(before) {
        match branch(cx) {
            Continue(is_pending) => pending |= is_pending,
            Break(()) => return true,
        }
    }
    pending
}
