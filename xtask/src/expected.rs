//! Tests of other projects that are expected to fail, each with the reason: a file of rows.
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fs, path::Path};

/// The documents that a row may quote.
const DOCUMENTS: &[&str] = &[
    "docs/from-tokio.md",
    "guide/src/from-tokio.md",
    "task-sync/README.md",
];

/// Why a test fails.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The same happens, but a message has other words.
    Wording,
    /// The crates differ, as a document says.
    Difference,
    /// The test needs an unstable item of tokio that is not there.
    Unstable,
    /// The test needs an item that is not built yet.
    NotBuilt,
    /// The test checks something that tokio does not promise.
    Internal,
    /// The test depends on the machine or its load. It may pass.
    Machine,
    /// A known fault of ours.
    Fault,
}

impl Kind {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Wording => "the message has other words",
            Self::Difference => "the crates differ, as a document says",
            Self::Unstable => "the test needs an unstable item",
            Self::NotBuilt => "the test needs an item that is not built yet",
            Self::Internal => "tokio does not promise it",
            Self::Machine => "the machine is the reason",
            Self::Fault => "a fault of ours",
        }
    }
}

/// Tests of a file that fail for one reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// The name of the file, without `.rs`.
    file: String,
    /// The tests: by their paths, or by the last names of these. The text of a call stands for the
    /// tests that the called macro makes. `*` stands for the tests of a file of which nothing
    /// compiles.
    tests: Vec<String>,
    pub(crate) kind: Kind,
    /// Text of the document that states the difference.
    see: Option<String>,
    /// Text that the test's output has, or the compiler's error.
    says: Option<String>,
    pub(crate) why: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    expected: Vec<Row>,
}

/// The rows, and which of their tests have failed.
#[derive(Default)]
pub(crate) struct Expected {
    rows: Vec<Row>,
    /// The row and the place in `tests` of each name that a failed test has used.
    used: BTreeSet<(usize, usize)>,
}

impl Expected {
    /// Reads the rows. Fails if a row says nothing, or quotes a text that no document has.
    pub(crate) fn read(root: &Path, file: &str) -> Result<Self> {
        let text = fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
        let mut documents = String::new();
        for document in DOCUMENTS {
            documents += &fs::read_to_string(root.join(document)).context(*document)?;
        }
        Self::parse(&text, &documents).with_context(|| file.to_owned())
    }

    fn parse(text: &str, documents: &str) -> Result<Self> {
        let rows = toml::from_str::<List>(text)?.expected;
        let mut named = BTreeSet::new();
        for row in &rows {
            let Row { file, see, why, .. } = row;
            ensure!(!why.is_empty(), "{file}: a row does not say why");
            ensure!(
                see.is_some() == (row.kind == Kind::Difference),
                "{file}: rows of the kind `difference`, and only these, have `see`"
            );
            ensure!(
                row.says.is_some() || row.kind != Kind::Wording,
                "{file}: a row of the kind `wording` has `says`, our words"
            );
            if let Some(see) = see {
                ensure!(documents.contains(see), "{file}: no document has {see:?}");
            }
            for test in &row.tests {
                ensure!(named.insert((file, test)), "{file}: two rows name {test}");
            }
        }
        Ok(Self {
            rows,
            used: BTreeSet::new(),
        })
    }

    /// Returns the row of a test that failed with this output. `compiles_nothing` says that nothing
    /// of its file compiles.
    pub(crate) fn row(
        &mut self,
        file: &str,
        test: &str,
        compiles_nothing: bool,
        output: &str,
    ) -> Option<&Row> {
        let last = test.rsplit("::").next().unwrap_or(test);
        // A path is more exact than a last name, wherever the rows are.
        let names = [Some(test), Some(last), compiles_nothing.then_some("*")];
        for name in names.into_iter().flatten() {
            for (at, row) in self.rows.iter().enumerate() {
                let place = row.tests.iter().position(|known| known == name);
                let fits = row.says.as_ref().is_none_or(|says| output.contains(says));
                if let (true, Some(place)) = (row.file == file && fits, place) {
                    self.used.insert((at, place));
                    return Some(row);
                }
            }
        }
        None
    }

    /// Returns the files that the rows name.
    pub(crate) fn files(&self) -> impl Iterator<Item = String> {
        self.rows.iter().map(|row| row.file.clone())
    }

    /// Returns the tests of these files that rows name, but that did not fail.
    pub(crate) fn stale(&self, files: &BTreeSet<String>) -> Vec<String> {
        let mut stale = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let may_pass = row.kind == Kind::Machine;
            if may_pass || !files.contains(&row.file) {
                continue;
            }
            for (place, test) in row.tests.iter().enumerate() {
                if !self.used.contains(&(at, place)) {
                    stale.push(format!("{}::{test}", row.file));
                }
            }
        }
        stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Result<Expected> {
        Expected::parse(&format!("[[expected]]\nfile = \"a\"\n{fields}"), "| x |")
    }

    #[test]
    fn row_matches_by_path_or_by_last_name() {
        let text = "tests = ['b', 'm::c']\nkind = 'unstable'\nsays = 'says'\nwhy = 'w'";
        let mut expected = parse(text).unwrap();
        let mut matches = |file, test| expected.row(file, test, false, "says").is_some();
        assert!(matches("a", "m::b") && !matches("a", "c") && !matches("x", "m::b"));
        assert!(expected.row("a", "b", false, "other words").is_none());
        let files = ["a".to_owned()].into();
        assert_eq!(expected.stale(&files), ["a::m::c"]);
        assert!(expected.row("a", "m::c", false, "says").is_some());
        assert!(expected.stale(&files).is_empty());
    }

    #[test]
    fn row_for_all_tests_matches_where_nothing_compiles() {
        let mut expected = parse("tests = ['*']\nkind = 'unstable'\nwhy = 'w'").unwrap();
        assert!(expected.row("a", "b", true, "").is_some());
        assert!(expected.row("a", "b", false, "").is_none());
    }

    #[test]
    fn row_without_reason_or_with_a_wrong_quote_is_refused() {
        let refused = |fields| parse(fields).is_err();
        assert!(refused("tests = ['b']\nkind = 'unstable'\nwhy = ''"));
        assert!(refused("tests = ['b']\nkind = 'difference'\nwhy = 'w'"));
        assert!(refused(
            "tests = ['b']\nkind = 'difference'\nsee = 'y'\nwhy = 'w'"
        ));
        assert!(refused("tests = ['b']\nkind = 'wording'\nwhy = 'w'"));
        assert!(refused("tests = ['b', 'b']\nkind = 'unstable'\nwhy = 'w'"));
        assert!(!refused(
            "tests = ['b']\nkind = 'difference'\nsee = '| x |'\nwhy = 'w'"
        ));
    }
}
