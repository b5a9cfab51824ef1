//! A row of the table: a mutant, and its end.
use super::{mutants::Mutant, trial::End};
use serde::{Deserialize, Serialize};

/// One row of the table.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    #[serde(rename = "crate")]
    pub(crate) package: String,
    pub(crate) site: String,
    pub(super) line: usize,
    pub(crate) operation: String,
    pub(crate) ordering: String,
    pub(crate) mutant: String,
    pub(super) end: End,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The message of the model that killed the mutant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) said: Option<String>,
    pub(super) tried: usize,
    pub(super) seconds: f64,
    /// The commit of the tree to which the result belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

/// Returns the function of a site: `crate/file/function` of `crate/file/function#n`.
pub(super) fn function(site: &str) -> &str {
    site.split_once('#').map_or(site, |(function, _)| function)
}

impl Row {
    pub(crate) fn function(&self) -> &str {
        function(&self.site)
    }

    pub(crate) fn with_reason(&self, reason: Option<String>) -> Self {
        Self {
            reason,
            ..self.clone()
        }
    }

    /// Returns the key of the row, which stays the same when lines of the source move.
    pub(crate) fn name(&self) -> (String, String) {
        row_name(&self.site, &self.operation, &self.ordering, &self.mutant)
    }

    pub(crate) fn is_killed(&self) -> bool {
        matches!(self.end, End::Killed | End::Limit)
    }

    pub(crate) fn survived(&self) -> bool {
        !self.is_killed() && self.reason.is_none()
    }

    pub(crate) fn is_justified(&self) -> bool {
        !self.is_killed() && !self.survived()
    }

    pub(crate) fn fate(&self) -> String {
        match (self.end, &self.reason, &self.model) {
            (End::Killed, _, Some(model)) => format!("killed by {model}"),
            (End::Limit, _, Some(model)) => format!("killed by the limit in {model}"),
            (_, Some(reason), _) => format!("justified: {reason}"),
            (End::GivenUp, ..) => format!("SURVIVED ({} models, then given up)", self.tried),
            (End::Unreached, ..) => "SURVIVED (no model reaches the call)".into(),
            _ => format!("SURVIVED ({} models)", self.tried),
        }
    }
}

impl Mutant {
    pub(super) fn ordering(&self) -> String {
        self.written.map_or("-".into(), |order| order.to_string())
    }

    /// Returns the key of the mutant's row; see [`Row::name`].
    pub(super) fn row_name(&self) -> (String, String) {
        row_name(&self.site, &self.operation, &self.ordering(), &self.how)
    }
}

fn row_name(site: &str, operation: &str, ordering: &str, mutant: &str) -> (String, String) {
    let change = format!("{operation} {ordering} -> {mutant}");
    (site.to_owned(), change)
}
