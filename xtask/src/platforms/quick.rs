//! The step `platforms`: checks the crates for other machines, with Debian's newer compiler, which
//! builds their std.
use super::list::PLATFORMS;
use anyhow::{Context, Result};
use project::{
    debian::{Compiler, NEWEST_RUST},
    say,
    workspace::{self, succeeds},
};

/// The platforms for which a check finds most of what a change on Linux may break: another system,
/// and shorter words.
const CHECKED: [&str; 2] = ["windows", "i686"];

/// Checks the published crates that all these platforms have. Without the compiler it checks none.
pub(crate) fn check() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let work = root.join("target/platforms");
    let compiler = match Compiler::new(&NEWEST_RUST, &work) {
        Ok(compiler) => compiler,
        Err(error) => {
            say!("not checked: {error:#}");
            return Ok(true);
        }
    };
    let mut check = compiler.cargo(&[]);
    check.env("RUSTC_BOOTSTRAP", "1").current_dir(&root);
    check.env("CARGO_TARGET_DIR", work.join("target-newest"));
    check.args(["check", "--quiet", "--lib", "--all-features", "--locked"]);
    check.arg("-Zbuild-std=std,panic_unwind");
    let mut absent = Vec::new();
    for name in CHECKED {
        let platform = PLATFORMS.iter().find(|platform| platform.name == name);
        let platform = platform.context("a known platform")?;
        check.args(["--target", platform.targets[0]]);
        absent.extend(platform.without.iter().flat_map(|(_, crates)| *crates));
    }
    for package in packages.iter().filter(|one| one.is_publishable()) {
        if !absent.contains(&&*package.name) {
            check.args(["--package", &package.name]);
        }
    }
    succeeds(&mut check)
}
