//! `pin!`, `join!` and `try_join!`, with tokio's syntax.
//!
//! A *branch* is one future of a `join!`, pinned in the frame of the future that awaits it, and its
//! output once it is ready. Nothing is allocated. A poll of the whole polls each branch that is not
//! ready; unless it is `biased`, each poll begins with another branch than the one before, so that
//! no branch always uses the budget up before the others.
use std::{
    future::{Future, IntoFuture},
    ops::ControlFlow::{self, Break, Continue},
    pin::Pin,
    task::{Context, Poll},
};

/// Pins futures in the current function, each under the name that it has. As tokio's.
///
/// `pin!(a, b)` pins the variables `a` and `b`, and `pin! { let c = future; }` declares one that
/// is pinned. To pin an expression use [`std::pin::pin!`].
///
/// ```
/// async fn three() -> u32 {
///     3
/// }
///
/// let runtime = selvedge::Runtime::new()?;
/// let seven = runtime.block_on(async {
///     let a = three();
///     selvedge::pin!(a);
///     selvedge::pin! {
///         let b = async { 4 };
///     }
///     (&mut a).await + b.await
/// });
/// assert_eq!(seven, 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! pin {
    ($($name:ident),* $(,)?) => {
        $(
            #[allow(unused_mut)]
            let mut $name = ::core::pin::pin!($name);
        )*
    };
    ($(let $name:ident = $future:expr;)*) => {
        $(
            #[allow(unused_mut)]
            let mut $name = ::core::pin::pin!($future);
        )*
    };
}

/// Awaits several futures at once, in one task, and returns their outputs as a tuple. As tokio's.
///
/// They take turns in the task's polls, in an order that changes. `join!(biased; a, b)` keeps the
/// order of the arguments. Nothing is allocated. To run them in parallel, spawn them first.
///
/// ```
/// let runtime = selvedge::Runtime::new()?;
/// let outputs = runtime.block_on(async {
///     let seven = selvedge::spawn(async { 7 });
///     selvedge::join!(seven, async { "text" })
/// });
/// assert!(matches!(outputs, (Ok(7), "text")));
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! join {
    (@branches $turns:ident [$($branch:ident)+]) => {{
        let outputs = ::core::future::poll_fn(move |cx| {
            let pending = $crate::join::poll(
                &mut $turns,
                &mut [$(&mut |cx: &mut ::core::task::Context<'_>| $branch.poll(cx)),+],
                cx,
            );
            match pending {
                false => ::core::task::Poll::Ready(($($branch.output(),)+)),
                true => ::core::task::Poll::Pending,
            }
        })
        .await;
        outputs
    }};
    (@branches $turns:ident [$($branch:ident)*] $future:expr $(, $($rest:expr),*)?) => {{
        let future = ::core::pin::pin!($crate::join::some($future));
        let mut branch = $crate::join::Branch::new(future);
        $crate::join!(@branches $turns [$($branch)* branch] $($($rest),*)?)
    }};
    (biased; $($future:expr),+ $(,)?) => {{
        let mut turns = $crate::join::Turns::Biased;
        $crate::join!(@branches turns [] $($future),+)
    }};
    ($(biased;)?) => {
        ()
    };
    ($($future:expr),+ $(,)?) => {{
        let mut turns = $crate::join::Turns::From(0);
        $crate::join!(@branches turns [] $($future),+)
    }};
}

/// Awaits several futures of results at once, until all are `Ok` or one is an error. As tokio's.
///
/// It returns a tuple of their values, or the first error; then the other futures are dropped.
/// Otherwise as [`join!`](crate::join).
///
/// ```
/// async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
///
/// let runtime = selvedge::Runtime::new()?;
/// let both = runtime.block_on(async { selvedge::try_join!(parse("1"), parse("2")) });
/// assert_eq!(both, Ok((1, 2)));
/// let failed = runtime.block_on(async {
///     let never = std::future::pending::<Result<(), _>>();
///     selvedge::try_join!(never, parse("one"))
/// });
/// assert!(failed.is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! try_join {
    (@branches $turns:ident [$($branch:ident)+]) => {{
        let outputs = ::core::future::poll_fn(move |cx| {
            let pending = $crate::join::poll(
                &mut $turns,
                &mut [$(&mut |cx: &mut ::core::task::Context<'_>| $branch.try_poll(cx)),+],
                cx,
            );
            $(
                if let ::core::option::Option::Some(error) = $branch.error() {
                    return ::core::task::Poll::Ready(::core::result::Result::Err(error));
                }
            )+
            match pending {
                false => ::core::task::Poll::Ready(
                    ::core::result::Result::Ok(($($branch.value(),)+))
                ),
                true => ::core::task::Poll::Pending,
            }
        })
        .await;
        outputs
    }};
    (@branches $turns:ident [$($branch:ident)*] $future:expr $(, $($rest:expr),*)?) => {{
        let future = ::core::pin::pin!($crate::join::some($future));
        let mut branch = $crate::join::Branch::new(future);
        $crate::try_join!(@branches $turns [$($branch)* branch] $($($rest),*)?)
    }};
    (biased; $($future:expr),+ $(,)?) => {{
        let mut turns = $crate::join::Turns::Biased;
        $crate::try_join!(@branches turns [] $($future),+)
    }};
    ($(biased;)?) => {
        ::core::result::Result::Ok(())
    };
    ($($future:expr),+ $(,)?) => {{
        let mut turns = $crate::join::Turns::From(0);
        $crate::try_join!(@branches turns [] $($future),+)
    }};
}

/// Makes the future that a branch polls.
pub fn some<F: IntoFuture>(future: F) -> Option<F::IntoFuture> {
    Some(future.into_future())
}

/// A future, and then its output.
#[derive(Debug)]
pub struct Branch<'a, F: Future> {
    future: Pin<&'a mut Option<F>>,
    output: Option<F::Output>,
}

impl<'a, F: Future> Branch<'a, F> {
    /// Makes the branch of a future that was not polled.
    pub fn new(future: Pin<&'a mut Option<F>>) -> Self {
        let output = None;
        Self { future, output }
    }

    /// Polls the future unless it was ready. Returns whether it is pending.
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
    pub fn output(&mut self) -> F::Output {
        match self.output.take() {
            Some(output) => output,
            None => panic!("a join was polled after it was ready"),
        }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Branch<'_, F> {
    /// As `poll`, and breaks at an error.
    pub fn try_poll(&mut self, cx: &mut Context<'_>) -> ControlFlow<(), bool> {
        let polled = self.poll(cx);
        match self.output {
            Some(Err(_)) => Break(()),
            _ => polled,
        }
    }

    /// Takes the output if it is an error.
    pub fn error(&mut self) -> Option<E> {
        self.output.take_if(|output| output.is_err())?.err()
    }

    /// Takes the value of a future that is ready and no error.
    pub fn value(&mut self) -> T {
        match self.output() {
            Ok(value) => value,
            Err(_) => unreachable!("errors were taken out"),
        }
    }
}

/// The order in which a poll goes through the branches.
#[derive(Debug)]
pub enum Turns {
    /// That of the arguments.
    Biased,
    /// The next poll begins with this branch.
    From(usize),
}

/// Polls one branch.
pub type PollBranch<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> ControlFlow<(), bool>;

/// Polls the branches, until one breaks. Returns whether one is pending.
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
