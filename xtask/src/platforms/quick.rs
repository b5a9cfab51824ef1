//! The step `platforms`: checks two crates, and those on which they depend, each for another
//! machine. These checks find most of what a change on Linux may break: on another system, and with
//! shorter words.
use super::{
    list::{Build, CHECKED, PLATFORMS, Platform},
    machine::Machine,
};
use anyhow::{Context, Result};
use project::{
    debian::Unreachable,
    say,
    workspace::{self, succeeds},
};
use std::{path::Path, thread};

/// Windows by the target for which rustc needs no `dlltool`. Its std takes half of the time.
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
    let i686 = i686.context("a known platform")?;
    Ok([
        (Machine::new(&WINDOWS, root)?, "selvedge"),
        (Machine::new(i686, root)?, "selvedge-executor"),
    ])
}

/// Checks the crates, both machines at a time. Without Debian's packages it checks none.
pub(crate) fn check() -> Result<bool> {
    let (_, root) = workspace::load()?;
    let machines = match machines(&root) {
        Err(error) if error.is::<Unreachable>() => {
            say!("not checked: {error:#}");
            return Ok(true);
        }
        machines => machines?,
    };
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
