//! In the place of `signal` where there are no stacks.
use std::time::Duration;

pub(super) fn capture(_: u32, _: Duration) -> Option<Vec<usize>> {
    None
}
