//! The public types that are invariant: a longer lifetime in place of a shorter does not compile.
//! `tests/variance.rs` has the covariant ones, and the auto traits.
//!
//! A node holds links to entries that it may be used to reach:
//!
//! ```compile_fail
//! use timer_wheel::Node;
//! fn shorten<'a>(node: Node<&'static u8>) -> Node<&'a u8> { node }
//! ```
//!
//! Timers hold a wheel, which takes handles in and gives them out:
//!
//! ```compile_fail
//! use timer_wheel::Timers;
//! fn shorten<'a>(timers: Timers<&'static u8>) -> Timers<&'a u8> { timers }
//! ```
//!
//! Both compile with one lifetime:
//!
//! ```
//! use timer_wheel::{Node, Timers};
//! fn same_node(node: Node<&'static u8>) -> Node<&'static u8> { node }
//! fn same_timers(timers: Timers<&'static u8>) -> Timers<&'static u8> { timers }
//! ```
