//! Replaces `signal` in builds that capture no stacks.
use std::time::Duration;

pub(super) fn capture(_: u32, _: Duration) -> Option<Vec<usize>> {
    None
}
