//! The checks that a simulation makes of a scheduler while all threads wait ([`sync_shim::sim`]).
use crate::shared::Shared;
use std::time::Instant;
use sync_shim::{atomic::Ordering::Relaxed, sim::Subject};

impl Subject for Shared {
    fn ready(&self) -> Option<String> {
        // A worker that was notified counts as searching.
        let (searchers, sleepers) = self.idle.counts();
        let sleepers = searchers + sleepers;
        // Ordering: Relaxed, as all threads wait.
        let is_open = !self.stop.load(Relaxed);
        let is_left = is_open && sleepers == self.stealers.len() && self.has_ready();
        is_left.then(|| format!("a process is ready, and {sleepers} workers sleep"))
    }

    fn unserved(&self) -> Option<String> {
        let (searchers, sleepers) = self.idle.counts();
        // Ordering: Relaxed, as all threads wait.
        let is_open = !self.stop.load(Relaxed);
        // A searcher may be between two looks.
        let is_left = is_open && searchers == 0 && sleepers > 0 && self.has_shared();
        is_left.then(|| format!("processes wait, and {sleepers} workers sleep"))
    }

    fn deadline(&self, _: Instant) -> Option<Instant> {
        self.timer.first_deadline()
    }
}
