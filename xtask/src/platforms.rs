//! `cargo xtask platforms`: builds the published crates for other machines than this one and with
//! the oldest Rust that they promise, and runs their tests where an emulator can.
//!
//! The compilers, libraries and emulators are Debian's, which are downloaded and unpacked into
//! `target/platforms`. The compilers build the crates with the versions of the committed
//! `Cargo.lock`, so that file names no package that is too new for the oldest Rust. A further
//! platform is a further row of [`PLATFORMS`].
use anyhow::{Result, ensure};
use list::PLATFORMS;
use machine::Machine;
use page::{Cell, Row};
use project::{say, workspace};
use std::{collections::BTreeMap, time::Instant};

mod cfgs;
mod examples;
mod list;
mod machine;
mod page;
pub(crate) mod quick;

/// Options of `cargo xtask platforms`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The platforms. Without one, all of them.
    platforms: Vec<String>,
    /// Builds only these crates.
    #[arg(long = "crate", value_name = "CRATE", value_delimiter = ',')]
    crates: Vec<String>,
    /// Writes the results of the platforms that passed into the page `docs/platforms.md`.
    #[arg(long, conflicts_with = "crates")]
    page: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let names: Vec<_> = PLATFORMS.iter().map(|platform| platform.name).collect();
    for name in &options.platforms {
        let known = names.contains(&name.as_str());
        ensure!(known, "no platform {name}; there are {}", names.join(", "));
    }
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "the command runs on Linux on x86-64, for which its compilers are"
    );
    let (packages, root) = workspace::load()?;
    let published = packages.iter().filter(|package| package.is_publishable());
    let chosen = workspace::chosen(published, &options.crates, "releases")?;
    let commit = workspace::commit(&root);
    let mut rows = BTreeMap::new();
    let mut passed = true;
    for platform in PLATFORMS {
        let named = options.platforms.iter().any(|name| name == platform.name);
        if !options.platforms.is_empty() && !named {
            continue;
        }
        say!("== {}: {}", platform.name, platform.what);
        let begun = Instant::now();
        let cells = Machine::new(platform, &root)?.run(&chosen)?;
        for (name, cell) in &cells {
            say!("{} {name}: {cell}", platform.name);
        }
        let seconds = begun.elapsed().as_secs();
        passed &= !cells.values().any(Cell::is_failure);
        say!("== {}: {seconds} s\n", platform.name);
        let commit = commit.clone();
        let tests = page::tests(platform);
        let row = Row {
            commit,
            tests,
            cells,
        };
        rows.insert(platform.name.to_owned(), row);
    }
    let ran: Vec<_> = names
        .iter()
        .copied()
        .filter(|name| rows.contains_key(*name))
        .collect();
    say!("{}", page::table(&rows, &ran, &chosen));
    if options.page {
        // The page shows no failure: there such a row stays as it was.
        rows.retain(|_, row| !row.cells.values().any(Cell::is_failure));
        page::write(&root, rows, &chosen)?;
    }
    Ok(passed)
}
