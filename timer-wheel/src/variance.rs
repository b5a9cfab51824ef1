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
//! Both compile with one lifetime:
//!
//! ```
//! use timer_wheel::{Node, Timers};
//! fn same_node(node: Node<&'static u8>) -> Node<&'static u8> { node }
//! fn same_timers(timers: Timers<&'static u8>) -> Timers<&'static u8> { timers }
//! ```
