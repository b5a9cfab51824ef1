//! No cycle counter: each reading is one of the system's clock.
use std::convert::Infallible;

pub(super) struct Cycles(Infallible);

impl Cycles {
    pub(super) fn new(_: impl Fn() -> u64) -> Option<Self> {
        None
    }

    pub(super) fn now(&self, _: impl Fn() -> u64) -> u64 {
        match self.0 {}
    }
}
