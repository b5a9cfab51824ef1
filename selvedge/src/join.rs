//! The code that `join!` and `try_join!` expand to.
//!
//! A *branch* has one future of a `join!`, and in its place that future's output once the future is
//! ready. The branch is pinned in the frame of the code that awaits the `join!`. Nothing is
//! allocated. A poll of the `join!` polls each branch that is not ready. Unless the macro is
//! `biased`, each poll begins with another branch than the poll before. So no branch always uses
//! the budget up before the others.
#![doc(hidden)]

use std::{
    future::{Future, IntoFuture},
    mem,
    ops::ControlFlow::{self, Break, Continue},
    pin::Pin,
    task::{Context, Poll},
};

/// A future, and then its output in the same place.
#[derive(Debug)]
#[doc(hidden)]
pub enum Branch<F: Future> {
    Pending(F),
    Ready(F::Output),
    /// The output was taken.
    Taken,
}

impl<F: Future> Branch<F> {
    /// Makes the branch of a future that was not polled.
    #[doc(hidden)]
    pub fn new(future: impl IntoFuture<IntoFuture = F>) -> Self {
        Self::Pending(future.into_future())
    }

    /// Polls the future unless it was ready. Returns whether it is pending.
    #[doc(hidden)]
    pub fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> ControlFlow<(), bool> {
        // SAFETY: the future is not moved through this reference.
        if let Self::Pending(future) = unsafe { self.as_mut().get_unchecked_mut() } {
            // SAFETY: the branch is pinned, and its future with it. The future is dropped in place,
            // by the `set` below or with the branch.
            let future = unsafe { Pin::new_unchecked(future) };
            let Poll::Ready(output) = future.poll(cx) else {
                return Continue(true);
            };
            self.set(Self::Ready(output));
        }
        Continue(false)
    }

    /// Takes the output of a future that is ready.
    #[doc(hidden)]
    pub fn output(self: Pin<&mut Self>) -> F::Output {
        if let Self::Pending(_) = *self {
            unreachable!("a branch is pending");
        }
        // SAFETY: the branch has no future any more, and an output is not pinned.
        match mem::replace(unsafe { self.get_unchecked_mut() }, Self::Taken) {
            Self::Ready(output) => output,
            _ => panic!("a join was polled after it was ready"),
        }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Branch<F> {
    /// As `poll`, and breaks at an error.
    #[doc(hidden)]
    pub fn try_poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> ControlFlow<(), bool> {
        let polled = self.as_mut().poll(cx);
        match *self {
            Self::Ready(Err(_)) => Break(()),
            _ => polled,
        }
    }

    /// Takes the output if it is an error.
    #[doc(hidden)]
    pub fn error(self: Pin<&mut Self>) -> Option<E> {
        match *self {
            Self::Ready(Err(_)) => self.output().err(),
            _ => None,
        }
    }

    /// Takes the value of a future that is ready, and whose output is `Ok`.
    #[doc(hidden)]
    pub fn value(self: Pin<&mut Self>) -> T {
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
