/// For tests: asserts that types are invariant in `P`.
///
/// A type that takes a value in through a shared reference and hands it out to another holder must
/// be invariant. Suppose that it were covariant. Then a `T<for<'a> fn(&'a u8)>` could be coerced to
/// a `T<fn(&'static u8)>`, which takes in a value of the second type and hands it out as one of the
/// first.
///
/// Only a doctest can assert that code does not compile, so this macro belongs in a module under
/// `cfg(doctest)`. Each type gets two doctests. The first must compile: it shows that nothing but
/// the coercion makes the second fail. On nightly, rustdoc compares the error's number, too.
#[doc(hidden)]
#[macro_export]
macro_rules! invariant {
    ($($name:ident: $type:literal,)*) => {$(
        #[doc = concat!("```\ntype T<P> = ", $type, ";")]
        /// fn short(x: T<fn(&'static u8)>) -> T<fn(&'static u8)> { x }
        /// fn long(x: T<for<'a> fn(&'a u8)>) -> T<for<'a> fn(&'a u8)> { x }
        /// ```
        ///
        #[doc = concat!("```compile_fail,E0308\ntype T<P> = ", $type, ";")]
        /// fn coerced(x: T<for<'a> fn(&'a u8)>) -> T<fn(&'static u8)> { x }
        /// ```
        mod $name {}
    )*};
}
