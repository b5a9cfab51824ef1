//! Settings besides the scheduling itself: hooks, panics, exits, the user's values.
pub(crate) mod attributes;
pub(crate) mod exits;
pub(crate) mod extensions;
pub(crate) mod hooks;
pub(crate) mod unhandled;
