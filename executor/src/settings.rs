//! Settings besides the scheduling itself: hooks, panics, exits, threads' attributes.
pub(crate) mod attributes;
pub(crate) mod exits;
pub(crate) mod hooks;
pub(crate) mod unhandled;
