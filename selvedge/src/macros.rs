//! `pin!`, `join!` and `try_join!`, with tokio's syntax.
//!
//! `join!` and `try_join!` expand to calls of the code in [`join`](crate::join).

/// Pins futures in the current function, each under the name that it has. As tokio's.
///
/// `pin!(a, b)` pins the variables `a` and `b`. `pin! { let c = future; }` declares a variable `c`
/// whose future is pinned. To pin an expression use [`std::pin::pin!`].
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
/// Each poll of the task polls the futures one after another, in an order that changes.
/// `join!(biased; a, b)` keeps the order of the arguments. Nothing is allocated. To run the futures
/// in parallel, spawn them first.
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
                &mut [$(&mut |cx: &mut ::core::task::Context<'_>| $branch.as_mut().poll(cx)),+],
                cx,
            );
            match pending {
                false => ::core::task::Poll::Ready(($($branch.as_mut().output(),)+)),
                true => ::core::task::Poll::Pending,
            }
        })
        .await;
        outputs
    }};
    (@branches $turns:ident [$($branch:ident)*] $future:expr $(, $($rest:expr),*)?) => {{
        let mut branch = ::core::pin::pin!($crate::join::Branch::new($future));
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
/// It returns a tuple of the futures' values. At the first error it returns that error, and drops
/// the other futures. In all else it acts as [`join!`](crate::join).
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
                &mut [$(&mut |cx: &mut ::core::task::Context<'_>| $branch.as_mut().try_poll(cx)),+],
                cx,
            );
            $(
                if let ::core::option::Option::Some(error) = $branch.as_mut().error() {
                    return ::core::task::Poll::Ready(::core::result::Result::Err(error));
                }
            )+
            match pending {
                false => ::core::task::Poll::Ready(
                    ::core::result::Result::Ok(($($branch.as_mut().value(),)+))
                ),
                true => ::core::task::Poll::Pending,
            }
        })
        .await;
        outputs
    }};
    (@branches $turns:ident [$($branch:ident)*] $future:expr $(, $($rest:expr),*)?) => {{
        let mut branch = ::core::pin::pin!($crate::join::Branch::new($future));
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
