#![doc = include_str!("../README.md")]

mod entry;
mod select;

use proc_macro::TokenStream;

/// Runs an async `main` in a runtime.
///
/// See the [crate's page](crate) for the arguments.
///
/// ```
/// #[selvedge::main]
/// async fn main() {
///     let seven = selvedge::spawn(async { 7 }).await.unwrap();
///     assert_eq!(seven, 7);
/// }
/// ```
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item, entry::Kind::Main, "::selvedge")
}

/// [`macro@main`], for a crate of the name `tokio` that re-exports it under the name `main`.
///
/// The argument `crate` is `::tokio` if it is left out.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn tokio_main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item, entry::Kind::Main, "::tokio")
}

/// Runs an async test in a runtime of its own, on the test's thread unless the flavor says
/// otherwise.
///
/// See the [crate's page](crate) for the arguments.
///
/// ```
/// #[selvedge::test(flavor = "multi_thread", worker_threads = 2)]
/// async fn both_run() {
///     let (one, two) = (selvedge::spawn(async { 1 }), selvedge::spawn(async { 2 }));
///     assert_eq!((one.await.unwrap(), two.await.unwrap()), (1, 2));
/// }
/// ```
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item, entry::Kind::Test, "::selvedge")
}

/// [`macro@test`], for a crate of the name `tokio` that re-exports it under the name `test`.
///
/// The argument `crate` is `::tokio` if it is left out.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn tokio_test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item, entry::Kind::Test, "::tokio")
}

fn expand(arguments: TokenStream, item: TokenStream, kind: entry::Kind, path: &str) -> TokenStream {
    entry::expand(arguments.into(), item.into(), kind, path).into()
}

/// Awaits several futures at once, and runs the handler of the future that is ready first.
///
/// The arguments are the path of the crate `selvedge`, a `;`, and the arguments of
/// `selvedge::select!`. That macro documents its arguments, and passes them on after the path.
///
/// ```
/// let runtime = selvedge::Runtime::new()?;
/// let seven = runtime.block_on(async {
///     selvedge_macros::select! { ::selvedge;
///         n = async { 7 } => n,
///         () = std::future::pending() => 0,
///     }
/// });
/// assert_eq!(seven, 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[proc_macro]
pub fn select(arguments: TokenStream) -> TokenStream {
    select::expand(arguments.into()).into()
}
