//! `cargo xtask bench --ablate DIR`: measures what each optimisation of our runtime gains. For each
//! optimisation the command copies the tree, replaces the lines that make the optimisation, and
//! builds the benchmark. In each round of a row it takes one sample from each of these builds, and
//! one from the build of the unchanged tree.
use crate::{
    Listing, Machine, Options, Runtime, Session, build, choose, interrupt, plot, print,
    table::Table,
};
use anyhow::{Context, Result, ensure};
use std::{
    collections::HashMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

/// An optimisation, and the replacements that undo it.
struct Ablation {
    name: &'static str,
    /// The behaviour of the runtime without the optimisation.
    behaviour_without: &'static str,
    /// The purpose of the optimisation, according to the article that [`SOURCE`] names.
    purpose: &'static str,
    /// The replacements. Each is a file, the text to replace in that file, and the new text.
    edits: &'static [(&'static str, &'static str, &'static str)],
}

/// The name of the unchanged tree in the tables.
const AS_IT_IS: &str = "as it is";

/// The rows to measure if the options name none: the four benchmarks of the article that [`SOURCE`]
/// names, and `spawn_many_local`, which the article does not have. The article's `spawn_many` is
/// `spawn_many_remote` here.
const ROWS: [&str; 5] = [
    "chained_spawn",
    "ping_pong",
    "spawn_many_remote",
    "spawn_many_local",
    "yield_many",
];

const ABLATIONS: &[Ablation] = &[
    Ablation {
        name: "slot",
        behaviour_without: "a task that a worker wakes or spawns goes to the back of that worker's ring, and the \
              worker notifies a sleeper if one is needed",
        purpose: "a task that receives a message runs next: it does not wait behind the queue, and \
                the message is still in the cache",
        edits: &[(
            "worker-queue/src/queue.rs",
            "if self.next_goes.get() != NextGoes::Slot {",
            "if true {",
        )],
    },
    Ablation {
        name: "throttled search",
        behaviour_without: "every push wakes a worker if one sleeps, and all workers may search at once",
        purpose: "workers that run out of tasks at the same time contend less for the same queues, \
                and a burst of new tasks wakes the workers one by one",
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
        name: "refcount elision",
        behaviour_without: "each poll clones the task's waker, which adds a reference, and drops the clone \
              afterwards",
        purpose: "the reference count of a task changes less often. (In the article's scheduler \
                `wake_by_ref` does not change the count. Our runtime has another saving, which \
                this row undoes: a poll borrows its waker, and so does not change the count. \
                Without that, each poll changes it twice.)",
        edits: &[(
            "task-header/src/run.rs",
            "let mut cx = Context::from_waker(&waker);",
            "let waker = core::task::Waker::clone(&waker);
    let mut cx = Context::from_waker(&waker);",
        )],
    },
    Ablation {
        name: "overflow in batches",
        behaviour_without: "if the ring is full, the pushed task alone goes to the injector. The older half of the \
              ring does not go with it, so the ring stays full",
        purpose: "the ring needs no growth, and the injector's lock is rarely taken",
        edits: &[(
            "worker-queue/src/queue.rs",
            "self.ring(|ring| ring.push_or_overflow(item, &spilt));",
            "if let Err(full) = self.ring(|ring| ring.push(item)) {
            spilt.push(full.0);
        }",
        )],
    },
    Ablation {
        name: "one allocation",
        behaviour_without: "the future of each task is in a box of its own, outside the task's cell",
        purpose: "a task needs one allocation, not two",
        edits: &[
            (
                "executor/src/spawn.rs",
                "let (task, join) = task_header::new(future, to());",
                "let (task, join) = task_header::new(Box::pin(future), to());",
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
/// `ablation.svg` into `dir`. Returns false if a figure is missing, a sample failed, or the user
/// interrupted. An interrupted command writes neither file.
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
    let build_dir = root.join("target/ablation");
    fs::create_dir_all(&build_dir).context("making target/ablation")?;
    let mut variants = vec![(AS_IT_IS.to_owned(), bench.to_owned())];
    for ablation in ABLATIONS {
        let bench = ablation.build(root, &build_dir, options)?;
        variants.push((format!("no {}", ablation.name), bench));
    }

    let ours = listing
        .runtimes
        .first()
        .context("`bench list` names no runtime")?;
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
        capacities: HashMap::new(),
        patience: 0,
        failures: 0,
    };
    let mut tables = Vec::new();
    for row in &rows {
        let taken = session.take(row, &runtimes)?;
        if taken.is_empty() && interrupt::came() {
            break;
        }
        let table = Table::with_yardstick(AS_IT_IS, row, &runtimes, &taken);
        print(&table.text());
        tables.push(table);
        if interrupt::came() {
            break;
        }
    }
    if interrupt::came() {
        print("interrupted: ablation.md and ablation.svg were not written\n");
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
    /// Builds `bench` without this optimisation, and returns the program's path. Keeps the program
    /// in `dir`, so that a later run builds it again only if a file or the allocator has changed.
    ///
    /// All copies are built one after the other, in the same tree and the same target directory. So
    /// cargo sees the same packages with changed files: it builds the packages of the workspace
    /// again, and reuses the dependencies from outside the tree.
    fn build(&self, root: &Path, dir: &Path, options: &Options) -> Result<PathBuf> {
        let files = self.files(root)?;
        let mut hasher = DefaultHasher::new();
        (&files, options.jemalloc).hash(&mut hasher);
        let program = dir.join(format!(
            "bench-{}-{:x}",
            self.name.replace(' ', "-"),
            hasher.finish()
        ));
        if program.exists() {
            return Ok(program);
        }
        let tree = dir.join("tree");
        for (name, text) in files {
            let copy = tree.join(name);
            if let Some(parent) = copy.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&copy, text).with_context(|| format!("writing {}", copy.display()))?;
        }
        print(&format!(
            "building without {}: {}\n",
            self.name, self.behaviour_without
        ));
        let bench = build(&tree, options.jemalloc, &dir.join("target"))?;
        fs::copy(&bench, &program).with_context(|| format!("copying {}", bench.display()))?;
        Ok(program)
    }

    /// Returns the name and the content of each file that git tracks, with the replacements made.
    /// These files are the whole tree without its build output, which git does not track.
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
                let count = source.matches(old).count();
                ensure!(
                    count == 1,
                    "to undo {:?}, {name} must contain this text once, not {count} times:\n{old}",
                    self.name
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
        Each row of the first table is a workload of `cargo xtask bench`. The column `as it is` \
        gives the median time of an operation in nanoseconds, and the spread of the samples. Each \
        further column gives the median time with one optimisation undone in the source, and the \
        ratio to the time in `as it is`. In a round, each column's build takes one sample. The \
        ratio is the median of the rounds' ratios, so it may differ from the ratio of the two \
        medians. The spread is the largest sample less the smallest, as a part of the median. A \
        ratio that differs from 1 by less than the spread means nothing. The second table says how \
        the runtime works without each optimisation. The [glossary](../glossary.md) defines the \
        words. `cargo xtask bench --ablate docs/benchmarks` makes this page.\n\n"
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
        "\n\n| without | what happens instead | what the optimisation is for, according to the \
         article below |\n|---|---|---|\n",
    );
    for ablation in ABLATIONS {
        text.push_str(&format!(
            "| {} | {} | {} |\n",
            ablation.name, ablation.behaviour_without, ablation.purpose
        ));
    }
    text.push_str(SOURCE);
    text
}

/// The article that presented the optimisations, and its figures. The article has no figure for a
/// single optimisation.
const SOURCE: &str = "
The article is [Making the Tokio scheduler 10x faster](https://tokio.rs/blog/2019-10-scheduler) of \
2019. Its figures are for all optimisations together, on its author's machine. The list gives, for \
each benchmark, the time of tokio's old scheduler and the time of the new one, and in brackets the \
old time divided by the new: `chained_spawn` 2,020 to 169 µs (12 x), `ping_pong` 1,280 to 563 µs \
(2.3 x), `spawn_many` (here `spawn_many_remote`) 10.3 to 7.3 ms (1.4 x), `yield_many` 21.5 to 14.6 \
ms (1.5 x). The article has no benchmark like `spawn_many_local`. The old scheduler also used \
crossbeam's deque, which grows, and which frees its outgrown arrays by epoch-based reclamation. \
None of the columns above brings that deque back.
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
