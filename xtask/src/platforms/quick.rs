//! The step `platforms`: checks two crates, and those on which they depend, for two other machines.
//! These checks find most of what a change on Linux may break: on another system, and with shorter
//! words.
use super::{
    list::{Build, CHECKED, PLATFORMS, Platform},
    machine::Machine,
};
use anyhow::{Context, Result};
use project::{
    say,
    workspace::{self, succeeds},
};
use std::{path::Path, sync::OnceLock, thread};

/// Windows by the library that needs no tool of a linker. Its std takes half of the time.
const WINDOWS: Platform = Platform {
    name: "windows",
    targets: &["x86_64-pc-windows-msvc"],
    build: Build::Check,
    flags: |_| "-Zno-codegen".into(),
    ..CHECKED
};

/// Returns each machine, and the crate that is checked for it.
fn machines(root: &Path) -> Result<[(Machine<'_>, &'static str); 2]> {
    let i686 = PLATFORMS.iter().find(|platform| platform.name == "i686");
    Ok([
        (Machine::new(&WINDOWS, root)?, "selvedge"),
        (
            Machine::new(i686.context("a known platform")?, root)?,
            "selvedge-executor",
        ),
    ])
}

/// Why the compilers are not there, once they were downloaded or not.
static REFUSAL: OnceLock<Option<String>> = OnceLock::new();

/// Downloads the compilers, which takes half a minute.
pub(crate) fn fetch() -> Option<&'static str> {
    let refusal = REFUSAL.get_or_init(|| {
        let fetched = workspace::load().and_then(|(_, root)| machines(&root).map(drop));
        fetched.err().map(|error| format!("{error:#}"))
    });
    refusal.as_deref()
}

/// Checks the crates, both machines at a time. Without the compilers it checks none.
pub(crate) fn check() -> Result<bool> {
    if let Some(refusal) = fetch() {
        say!("not checked: {refusal}");
        return Ok(true);
    }
    let (_, root) = workspace::load()?;
    let machines = machines(&root)?;
    thread::scope(|scope| {
        let checks = machines.each_ref().map(|(machine, package)| {
            let mut check = machine.check(package);
            scope.spawn(move || succeeds(&mut check))
        });
        let checked = checks.map(|check| check.join().expect("a check does not panic"));
        checked
            .into_iter()
            .try_fold(true, |all, one| Ok(all & one?))
    })
}
