//! The descriptors, the threads and the memory that the process of a test leaves as it ends.
use anyhow::{Context, Result};
use project::workspace::output_of;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The variable that names the file which the process of a test writes as it ends.
const VARIABLE: &str = "FACADE_LEFT";
const SOURCE: &str = "xtask/facade/left.rs";

/// The bytes that a test may leave more: the façade keeps up to 4 MiB of ended tasks for new ones.
/// `--sanitize` finds smaller leaks, as nothing is kept there.
const SLACK: usize = 5 << 20;

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Left {
    /// The descriptors that the process has more than at its beginning.
    pub(super) descriptors: usize,
    /// The threads beside the one that ends the process.
    threads: usize,
    /// The bytes that are allocated.
    bytes: usize,
}

/// The library that counts. A test program loads it first.
pub(super) struct Counter(PathBuf);

impl Counter {
    /// Builds the library.
    pub(super) fn build(root: &Path, scratch: &Path) -> Result<Self> {
        let library = scratch.join("left.so");
        fs::create_dir_all(scratch)?;
        let mut rustc = Command::new("rustc");
        rustc.args([
            "--edition=2024",
            "--crate-type=cdylib",
            "-O",
            "-Cpanic=abort",
        ]);
        output_of(rustc.arg("-o").arg(&library).arg(root.join(SOURCE)))?;
        Ok(Self(library))
    }

    /// Returns the variables of a test whose process writes `file`. A backtrace would keep
    /// megabytes of symbols in memory.
    pub(super) fn variables(&self, file: &Path) -> [(String, String); 3] {
        let backtrace = ("RUST_BACKTRACE", Path::new("0"));
        [("LD_PRELOAD", &*self.0), (VARIABLE, file), backtrace]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()))
    }
}

impl Left {
    /// Reads and removes the file that a process has written.
    pub(super) fn take(file: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(file).context("the process has not counted what it leaves")?;
        fs::remove_file(file)?;
        Self::parse(&text).context("three numbers")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|number| number.parse().ok());
        Some(Self {
            descriptors: numbers.next()??,
            threads: numbers.next()??,
            bytes: numbers.next()??,
        })
    }

    /// Says what is more than the same test left with tokio. `kept` is the number of descriptors
    /// that tokio keeps open in any process with a runtime.
    pub(super) fn excess(self, tokio: Self, kept: usize) -> Option<String> {
        let descriptors = self.descriptors > tokio.descriptors.saturating_sub(kept);
        let more = descriptors || self.threads > tokio.threads || self.bytes > tokio.bytes + SLACK;
        more.then(|| format!("leaves {self:?}, and with tokio {tokio:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_is_a_descriptor_a_thread_or_some_memory_more() {
        let left = |text| Left::parse(text).unwrap();
        let excess = |here, tokio| left(here).excess(left(tokio), 2);
        assert_eq!(excess("0 0 9", "2 0 9"), None);
        assert_eq!(excess("1 1 5242889", "3 1 9"), None);
        assert!(excess("1 0 9", "2 0 9").is_some());
        assert!(excess("0 1 9", "2 0 9").is_some());
        assert!(excess("0 0 5242890", "2 0 9").is_some());
        assert_eq!(Left::parse("1 2"), None);
    }
}
