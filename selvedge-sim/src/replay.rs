//! Replay files: the choices of a failure, to run them again.
use crate::{
    Failure, Run, Sim,
    explore::{Found, find_difference},
};
use std::{
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

const FIRST_LINE: &str = "selvedge-sim replay 2";

/// Stands in the place of choices that the seed makes.
const OF_SEED: &str = " of the seed";

/// The kind of [`Failure::Diverged`].
const DIVERGED: &str = "diverged";

/// The most events of a replay's report, and of its trace.
const SHOWN: usize = 200;
const TRACED: usize = 1 << 17;

/// A failure that was written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The name of the scenario.
    pub scenario: String,
    /// The build that has written the file. Another build may make other choices.
    pub build: String,
    /// The seed.
    pub seed: u64,
    /// The kind of the failure.
    pub failure: String,
    /// The hash of the events of the run ([`Run::hash`]).
    pub hash: u64,
    /// The choices of the run, as [`Run::choices`] has them. `None` if the seed makes them.
    pub choices: Option<Vec<u32>>,
}

impl Replay {
    /// Makes the replay of what [`explore`](crate::explore) has found.
    pub fn of(scenario: &str, found: &Found) -> Self {
        let failure = found.run.failure.as_ref();
        Self {
            scenario: scenario.to_owned(),
            build: this_build(),
            seed: found.run.seed,
            failure: failure.map_or("none", Failure::kind).to_owned(),
            hash: found.run.hash,
            choices: found.choices.clone(),
        }
    }

    /// Returns whether this program has written the file.
    pub fn is_of_this_build(&self) -> bool {
        self.build == this_build()
    }

    /// Says in words how a run of these choices differs from the one of the file, if it does: by
    /// its events, which are the same in each build of one source.
    ///
    /// The events of a run that diverges are never the same.
    pub fn compare(&self, run: &Run) -> Option<String> {
        let kind = run.failure.as_ref().map_or("none", Failure::kind);
        let is_same = self.hash == run.hash || self.failure == DIVERGED;
        if is_same && kind == self.failure {
            return None;
        }
        let why = match self.is_of_this_build() {
            true => "the same program has written the file, so its runs do not repeat",
            false => "another source, or another version of a crate, has written the file",
        };
        Some(format!(
            "this run has the hash {:016x} and the failure {kind}, and the run of the file has the \
             hash {:016x} and the failure {}: {why}",
            run.hash, self.hash, self.failure
        ))
    }

    /// Runs the scenario with the choices of the failure. If two runs of the seed have differed,
    /// compares two runs again.
    pub fn run(&self, scenario: impl Fn(Sim) -> Run) -> Run {
        if self.failure == DIVERGED {
            if let Some(diverged) = find_difference(self.seed, &scenario) {
                return diverged;
            }
        }
        scenario(self.sim().keep_events(SHOWN))
    }

    fn sim(&self) -> Sim {
        let sim = Sim::new(self.seed);
        match &self.choices {
            Some(choices) => sim.choices(choices.clone()),
            None => sim,
        }
    }

    /// Runs the scenario with the choices of the failure, and writes its events to two files beside
    /// `path`: a page of HTML, and JSON for Perfetto ([`Run::write_trace`]). Returns the two paths.
    /// Of a long run the files have the last 131,072 events.
    ///
    /// # Errors
    /// As [`fs::write`].
    pub fn write_trace(
        &self,
        path: &Path,
        scenario: impl Fn(Sim) -> Run,
    ) -> io::Result<[PathBuf; 2]> {
        let run = scenario(self.sim().quiet().keep_events(TRACED));
        let files = ["html", "json"].map(|extension| path.with_extension(extension));
        files.iter().try_for_each(|file| run.write_trace(file))?;
        Ok(files)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// As [`fs::write`].
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, self.to_text())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`fs::read_to_string`]; also if the file is no replay.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        Self::parse(&text).ok_or_else(|| io::Error::other("the file is no replay of this version"))
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let Self {
            scenario,
            build,
            seed,
            failure,
            hash,
            choices,
        } = self;
        let head = format!("{FIRST_LINE}\nscenario {scenario}\nbuild {build}\nseed {seed}\n");
        text.push_str(&head);
        let _ = writeln!(text, "failure {failure}\nhash {hash:016x}");
        text.push_str("choices");
        match choices {
            Some(choices) => choices.iter().for_each(|choice| {
                let _ = write!(text, " {choice}");
            }),
            None => text.push_str(OF_SEED),
        }
        text.push('\n');
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let mut value = |key: &str| {
            let rest = lines.next()?.strip_prefix(key)?;
            Some(rest.trim().to_owned())
        };
        Some(Self {
            scenario: value("scenario")?,
            build: value("build")?,
            seed: value("seed")?.parse().ok()?,
            failure: value("failure")?,
            hash: u64::from_str_radix(&value("hash")?, 16).ok()?,
            choices: {
                let choices = value("choices")?;
                let numbers = choices.split_whitespace().map(|choice| choice.parse().ok());
                match choices == OF_SEED.trim() {
                    true => None,
                    false => Some(numbers.collect::<Option<_>>()?),
                }
            },
        })
    }
}

/// Returns a hash of this program's file.
fn this_build() -> String {
    let program = std::env::current_exe()
        .and_then(fs::read)
        .unwrap_or_default();
    let add = |hash: u64, part: &[u8]| {
        let number = part
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        (hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95)
    };
    format!("{:016x}", program.chunks(8).fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::Replay;

    #[test]
    fn replay_reads_what_it_has_written() {
        for choices in [Some(vec![0, 0, 3]), Some(vec![]), None] {
            let replay = Replay {
                scenario: "ping".to_owned(),
                build: "0123".to_owned(),
                seed: 7,
                failure: "lost-wake".to_owned(),
                hash: 0x12,
                choices,
            };
            assert_eq!(Replay::parse(&replay.to_text()), Some(replay));
        }
    }
}
