//! The results of a crate with both, for the table and the page.
use crate::{cases::End, expected::Kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of a crate, for the table and the page.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) version: String,
    /// The tests that count, and those of them that pass with the façade.
    pub(super) counted: usize,
    pub(super) passed: usize,
    /// The tests that pass with tokio but enter no runtime, and those of them that pass here.
    pub(super) others: usize,
    pub(super) others_passed: usize,
    /// The tests that fail with tokio, and the targets that do not compile with it.
    pub(super) failed_on_tokio: usize,
    pub(super) not_compiled: Vec<String>,
    pub(super) skipped: BTreeMap<String, usize>,
    /// The tests that pass with tokio and not with the façade.
    pub(super) differences: Vec<Difference>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Difference {
    pub(super) test: String,
    /// Whether the test counts.
    pub(super) counts: bool,
    pub(super) end: End,
    pub(super) line: String,
    /// The reason, from a row.
    pub(super) kind: Option<Kind>,
    pub(super) why: Option<String>,
}
