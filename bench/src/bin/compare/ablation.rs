//! `cargo xtask bench --ablate DIR`: measures what each optimisation gains. For each optimisation
//! it builds a copy of the tree in which a few lines are replaced, to undo the optimisation. All
//! copies, and the tree as it is, are measured in the same rounds.
use crate::{
    Listing, Machine, Options, Runtime, Session, build, choose, interrupt, plot, print,
    table::Table,
};
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

/// An optimisation, and the replacements that undo it. Each is a file, the text to replace in that
/// file, and the new text.
struct Ablation {
    without: &'static str,
    how: &'static str,
    /// The purpose of the optimisation, by the article that [`SOURCE`] names.
    claim: &'static str,
    edits: &'static [(&'static str, &'static str, &'static str)],
}

const AS_IT_IS: &str = "as it is";

/// The rows that are measured if the options name none: the benchmarks of the article in
/// [`SOURCE`].
const ROWS: [&str; 5] = [
    "chained_spawn",
    "ping_pong",
    "spawn_many_remote",
    "spawn_many_local",
    "yield_many",
];

const ABLATIONS: &[Ablation] = &[
    Ablation {
        without: "slot",
        how: "a task that is woken or spawned by a worker goes to the back of its ring, and others are notified",
        claim: "a message's receiver runs next: no wait behind the queue, and its data still in the cache",
        edits: &[(
            "worker-queue/src/queue.rs",
            "if !self.has_slot {",
            "if true {",
        )],
    },
    Ablation {
        without: "throttled search",
        how: "every push wakes a worker if one sleeps, and all of them may search at once",
        claim: "workers that run out at once don't contend for the same queues, and a burst wakes few",
        edits: &[
            (
                "worker-idle/src/idle.rs",
                "counts.rotate_left(32).wrapping_sub(1) >> 31 != 0",
                "sleeping(counts) <= 0",
            ),
            (
                "worker-idle/src/idle.rs",
                "if 2 * searching(self.line.counts.load(Relaxed)) >= self.workers {",
                "if false {",
            ),
        ],
    },
    Ablation {
        without: "refcount elision",
        how: "a poll counts a waker of its own, and drops it",
        claim: "a wake by reference costs no more than one by value",
        edits: &[(
            "task-header/src/complete.rs",
            "let mut cx = Context::from_waker(&waker);",
            "let waker = core::task::Waker::clone(&waker);
    let mut cx = Context::from_waker(&waker);",
        )],
    },
    Ablation {
        without: "overflow in batches",
        how: "an item that finds the ring full goes to the injector alone, without a batch",
        claim: "the queue needs no growth, and its lock is rarely taken",
        edits: &[(
            "worker-queue/src/queue.rs",
            "self.ring(|ring| ring.push_or_overflow(item, &spilt));",
            "if let Err(full) = self.ring(|ring| ring.push(item)) {
            spilt.push(full.0);
        }",
        )],
    },
    Ablation {
        without: "one allocation",
        how: "the future has a box of its own",
        claim: "one allocation a task in place of two",
        edits: &[
            (
                "executor/src/spawn.rs",
                "let (task, join) = task_header::new(future, Scheduler::inherited(shared));\n        trace::spawn(shared",
                "let (task, join) = task_header::new(Box::pin(future), Scheduler::inherited(shared));\n        trace::spawn(shared",
            ),
            (
                "executor/src/spawn.rs",
                "let (task, join) = task_header::new(future, Scheduler::inherited_on(core));",
                "let (task, join) = task_header::new(Box::pin(future), Scheduler::inherited_on(core));",
            ),
        ],
    },
];

/// Builds all copies, measures, prints a table for each row, and writes `ablation.md` and
/// `ablation.svg`. Returns false if a figure is missing, a sample failed, or the user interrupted.
pub(super) fn run(
    root: &Path,
    commit: &str,
    listing: &Listing,
    options: &Options,
    bench: &Path,
    dir: &Path,
) -> Result<bool> {
    let names: Vec<String> = if options.rows.is_empty() {
        ROWS.map(String::from).into()
    } else {
        options.rows.clone()
    };
    let rows = choose(&listing.rows, |row| &row.name, &names, "row")?;
    let built = root.join("target/ablation");
    fs::create_dir_all(&built).context("making target/ablation")?;
    let mut variants = vec![(AS_IT_IS.to_owned(), bench.to_owned())];
    for ablation in ABLATIONS {
        let bench = ablation.build(root, &built, options)?;
        variants.push((format!("no {}", ablation.without), bench));
    }

    let ours = listing.runtimes.first().context("bench knows no runtime")?;
    let runtimes: Vec<Runtime> = variants
        .iter()
        .map(|(name, _)| Runtime {
            name: name.clone(),
            ..ours.clone()
        })
        .collect();
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let machine = Machine::this(options, std::slice::from_ref(ours), commit, &lock);
    print(&machine.line());
    let mut session = Session {
        options,
        bench,
        variants: &variants,
        patience: 0,
        failures: 0,
    };
    let mut tables = Vec::new();
    for row in &rows {
        let taken = session.take(row, &runtimes)?;
        if taken.is_empty() && interrupt::came() {
            break;
        }
        let table = Table::against(AS_IT_IS, row, &runtimes, &taken);
        print(&table.text());
        tables.push(table);
        if interrupt::came() {
            break;
        }
    }
    if interrupt::came() {
        print("interrupted: the page and the chart stay as they were\n");
        return Ok(false);
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let text = page(&machine, &tables);
    let file = dir.join("ablation.md");
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    plot::ablation(&machine, &tables, &dir.join("ablation.svg"))?;
    Ok(session.failures == 0 && tables.iter().all(Table::is_complete))
}

impl Ablation {
    /// Builds `bench` in `dir` without this optimisation, and returns the program's path. A program
    /// that was built from the same files before is not built again.
    ///
    /// All variants are built one after the other in one tree and one target directory. To cargo
    /// the variants are the same packages, with changed files.
    fn build(&self, root: &Path, dir: &Path, options: &Options) -> Result<PathBuf> {
        let files = self.files(root)?;
        let mut hasher = DefaultHasher::new();
        (&files, options.jemalloc).hash(&mut hasher);
        let kept = dir.join(format!(
            "bench-{}-{:x}",
            self.without.replace(' ', "-"),
            hasher.finish()
        ));
        if kept.exists() {
            return Ok(kept);
        }
        let tree = dir.join("tree");
        for (name, text) in files {
            let to = tree.join(name);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&to, text).with_context(|| format!("writing {}", to.display()))?;
        }
        print(&format!(
            "building without {}: {}\n",
            self.without, self.how
        ));
        let bench = build(&tree, options.jemalloc, &dir.join("target"))?;
        fs::copy(&bench, &kept).with_context(|| format!("copying {}", bench.display()))?;
        Ok(kept)
    }

    /// Returns the names and the contents of the files that git tracks, with the replacements made.
    /// Git tracks no build output.
    fn files(&self, root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
        let output = Command::new("git")
            .current_dir(root)
            .args(["ls-files", "-z"])
            .output()
            .context("git ls-files")?;
        ensure!(output.status.success(), "git ls-files failed");
        let mut files = Vec::new();
        for name in String::from_utf8_lossy(&output.stdout).split_terminator('\0') {
            let Ok(mut text) = fs::read(root.join(name)) else {
                continue; // The file was deleted, but the deletion is not staged.
            };
            for (_, old, new) in self.edits.iter().filter(|(file, ..)| *file == name) {
                let source = String::from_utf8(text).with_context(|| name.to_owned())?;
                ensure!(
                    source.matches(old).count() == 1,
                    "{} is undone by a replacement in {name}, where this is not found once any more:\n{old}",
                    self.without
                );
                text = source.replace(old, new).into_bytes();
            }
            files.push((name.to_owned(), text));
        }
        Ok(files)
    }
}

/// Returns the page in Markdown.
fn page(machine: &Machine, tables: &[Table]) -> String {
    let mut text = "# What each optimisation is worth here\n\n\
        Nanoseconds an operation with one optimisation undone in the source, and the ratio to the time with nothing undone (the median of the rounds' ratios; \
        a ratio within the spread means nothing). `cargo xtask bench --ablate docs/benchmarks` makes this page.\n\n"
        .to_owned();
    text.push_str(&format!(
        "{}\n![chart](ablation.svg)\n\n| row |",
        machine.line()
    ));
    for line in tables.iter().take(1).flat_map(|table| &table.lines) {
        text.push_str(&format!(" {} |", line.rt));
    }
    text.push_str("\n|---|");
    for _ in tables.iter().take(1).flat_map(|table| &table.lines) {
        text.push_str("---|");
    }
    for table in tables {
        text.push_str(&format!("\n| `{}` |", table.row));
        for line in &table.lines {
            let value = line.value.map_or("-".into(), |value| format!("{value:.1}"));
            let ratio = line.to_yardstick.map(|ratio| format!(", {ratio:.2} x"));
            let spread = line
                .spread
                .map(|spread| format!(" (spread {:.0} %)", 100.0 * spread));
            let rest = if line.rt == AS_IT_IS { spread } else { ratio };
            text.push_str(&format!(" {value}{} |", rest.unwrap_or_default()));
        }
    }
    text.push_str(
        "\n\n| without | that is | what the optimisation is for, by its source |\n|---|---|---|\n",
    );
    for ablation in ABLATIONS {
        let Ablation {
            without,
            how,
            claim,
            ..
        } = ablation;
        text.push_str(&format!("| {without} | {how} | {claim} |\n"));
    }
    text.push_str(SOURCE);
    text
}

/// The article that presented the optimisations, and its figures. The article has no figure for a
/// single optimisation.
const SOURCE: &str = "
The source is [Making the Tokio scheduler 10x faster](https://tokio.rs/blog/2019-10-scheduler) of 2019. It has figures only for all optimisations together, new against old, on its authors' machine: `chained_spawn` \
2,020 to 169 µs (12 x), `ping_pong` 1,280 to 563 µs (2.3 x), `spawn_many` 10.3 to 7.3 ms (1.4 x), `yield_many` 21.5 to 14.6 ms (1.5 x). Its old scheduler also had a queue that grew, with epochs, \
which none of the columns above brings back.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_of_each_ablation_match_the_source() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for ablation in ABLATIONS {
            ablation
                .files(&root)
                .unwrap_or_else(|error| panic!("{error:#}"));
        }
    }
}
