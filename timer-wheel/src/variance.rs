//! Asserts that these public types are invariant: a longer lifetime does not become a shorter one.
//! `tests/variance.rs` asserts the covariant types and the auto traits.
//!
//! A node holds links to entries, which can be accessed through it:
//!
//! ```compile_fail
//! use timer_wheel::Node;
//! fn shorten<'a>(node: Node<&'static u8>) -> Node<&'a u8> { node }
//! ```
//!
//! Timers hold a wheel, which takes in handles and returns them:
//!
//! ```compile_fail
//! use timer_wheel::Timers;
//! fn shorten<'a>(timers: Timers<&'static u8>) -> Timers<&'a u8> { timers }
//! ```
//!
//! A wheel takes in handles and returns them. Their type is a projection, which is invariant:
//!
//! ```compile_fail,E0308
//! use std::ptr::NonNull;
//! use timer_wheel::{Entry, Node, Wheel};
//! struct Item<P>(Node<Self>, P);
//! unsafe impl<P> Entry for Item<P> {
//!     type Handle = Box<Self>;
//!     fn into_ptr(_: Box<Self>) -> NonNull<Self> { unimplemented!() }
//!     unsafe fn from_ptr(_: NonNull<Self>) -> Box<Self> { unimplemented!() }
//!     unsafe fn node(_: NonNull<Self>) -> NonNull<Node<Self>> { unimplemented!() }
//! }
//! type T<P> = Wheel<Item<P>>;
//! fn coerced(wheel: T<for<'a> fn(&'a u8)>) -> T<fn(&'static u8)> { wheel }
//! ```
//!
//! All three compile with one lifetime:
//!
//! ```
//! use std::ptr::NonNull;
//! use timer_wheel::{Entry, Node, Timers, Wheel};
//! fn same_node(node: Node<&'static u8>) -> Node<&'static u8> { node }
//! fn same_timers(timers: Timers<&'static u8>) -> Timers<&'static u8> { timers }
//!
//! struct Item<P>(Node<Self>, P);
//! unsafe impl<P> Entry for Item<P> {
//!     type Handle = Box<Self>;
//!     fn into_ptr(_: Box<Self>) -> NonNull<Self> { unimplemented!() }
//!     unsafe fn from_ptr(_: NonNull<Self>) -> Box<Self> { unimplemented!() }
//!     unsafe fn node(_: NonNull<Self>) -> NonNull<Node<Self>> { unimplemented!() }
//! }
//! type T<P> = Wheel<Item<P>>;
//! fn short(wheel: T<fn(&'static u8)>) -> T<fn(&'static u8)> { wheel }
//! fn long(wheel: T<for<'a> fn(&'a u8)>) -> T<for<'a> fn(&'a u8)> { wheel }
//! ```
