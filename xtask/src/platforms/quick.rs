//! The step `platforms`: checks the crates for other machines, with the Rust of this machine.
use super::list::PLATFORMS;
use anyhow::{Context, Result};
use project::{
    say,
    workspace::{self, cargo, output_of, succeeds},
};
use std::{path::Path, process::Command};

/// The platforms for which a check finds most of what a change on Linux may break: another system,
/// and shorter words.
const CHECKED: [&str; 2] = ["windows", "i686"];

/// Checks the published crates. A target whose std is not installed is left out.
pub(crate) fn check() -> Result<bool> {
    let (packages, _) = workspace::load()?;
    let sysroot = output_of(Command::new("rustc").args(["--print", "sysroot"]))?;
    let targets = Path::new(sysroot.trim()).join("lib/rustlib");
    for name in CHECKED {
        let platform = PLATFORMS.iter().find(|platform| platform.name == name);
        let platform = platform.context("a known platform")?;
        let target = platform.targets[0];
        if !targets.join(target).join("lib").exists() {
            say!("not checked for {target}: `rustup target add {target}` installs what it needs");
            continue;
        }
        let mut check = cargo();
        check.args(["check", "--lib", "--all-features", "--target", target]);
        let absent = |name: &str| {
            let mut without = platform.without.iter();
            without.any(|(_, crates)| crates.contains(&name))
        };
        for package in packages.iter().filter(|one| one.is_publishable()) {
            if !absent(&package.name) {
                check.args(["--package", &package.name]);
            }
        }
        if !succeeds(&mut check)? {
            return Ok(false);
        }
    }
    Ok(true)
}
