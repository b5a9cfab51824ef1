//! The results of a crate's tests with one tokio.
use super::left::Left;
use crate::cases::End;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The results of the tests of a crate with one tokio.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) version: String,
    /// The tests that passed, as `target::path`.
    pub(super) passed: BTreeMap<String, Pass>,
    /// The tests that failed, each with its most telling line.
    pub(super) failed: BTreeMap<String, (End, String)>,
    /// The targets that do not compile, each with the first error.
    pub(super) not_compiled: BTreeMap<String, String>,
    /// The tests that passed only when they ran for the second time.
    pub(super) second: BTreeSet<String>,
    /// The number of tests that did not run, by the reason.
    pub(super) skipped: BTreeMap<String, usize>,
}

/// How a test passed.
#[derive(Serialize, Deserialize)]
pub(super) struct Pass {
    /// Whether it entered a runtime.
    pub(super) entered: bool,
    pub(super) left: Left,
}

impl Results {
    /// Says what a test leaves beyond what it left in these results, those with tokio.
    pub(super) fn excess(&self, test: &str, left: Left) -> Option<String> {
        let entered = self.passed.values().filter(|pass| pass.entered);
        let kept = entered.map(|pass| pass.left.descriptors).min();
        left.excess(self.passed.get(test)?.left, kept.unwrap_or_default())
    }
}
