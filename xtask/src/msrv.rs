//! The step `msrv`: each published crate builds with the oldest Rust that its manifest promises.
//!
//! The step packs all published crates, as for a release, and unpacks them beside each other. Then
//! it checks each unpacked crate: without features, with the default features, and with all. If the
//! toolchain of the promised Rust is installed, that toolchain makes the check. This command
//! installs it: `rustup toolchain install 1.85.0 --profile minimal`.
//!
//! Otherwise clippy makes the check with the Rust that runs the step. clippy also finds items of
//! the standard library that are too new, and this file finds some syntax that is too new. The step
//! then reports that the crate is not checked with the Rust that it promises.
use anyhow::{Context, Result, ensure};
use project::{
    say,
    source::{closing, modules},
    workspace::{self, Package, cargo, succeeds},
};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The newest Rust that a crate may need: the first one with edition 2024.
const NEWEST: (u32, u32) = (1, 85);
/// The sets of features that each crate is built with; the empty text stands for the default ones.
const FEATURES: [&str; 3] = ["--no-default-features", "", "--all-features"];

pub(crate) fn run() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let published: Vec<_> = packages.iter().filter(|p| p.is_publishable()).collect();
    let Some(folder) = unpacked(&published, &root)? else {
        return Ok(false);
    };
    let installed = installed();
    let mut passed = true;
    for package in published {
        let name = &package.name;
        let promised = package.rust_version().context("no rust-version")?;
        let version = parsed(promised).with_context(|| format!("{name}: {promised}"))?;
        if version > NEWEST {
            eprintln!("{name}: needs Rust {promised}; a crate may need {NEWEST:?} at most");
            passed = false;
        }
        let toolchain = installed.iter().find(|(has, _)| *has == version);
        let toolchain = toolchain.map(|(_, toolchain)| toolchain.as_str());
        if !builds(name, toolchain, &root, &folder)? {
            passed = false;
        } else if let Some(toolchain) = toolchain {
            say!("{name}: its package builds with {toolchain}");
        } else {
            passed &= has_no_newer_syntax(package, version)?;
            say!(
                "{name}: not checked with {promised}, which is not installed. Checked with this \
                 Rust instead: whether the package builds, whether clippy::incompatible_msrv \
                 passes, and whether there are let chains or `if let` guards. Other new syntax is \
                 not searched for."
            );
        }
    }
    Ok(passed)
}

/// Packs all packages, and unpacks them into one workspace. `None` if a package can't be packed.
fn unpacked(published: &[&Package], root: &Path) -> Result<Option<PathBuf>> {
    let target = root.join("target/msrv");
    let mut pack = cargo();
    pack.args(["package", "--quiet", "--allow-dirty", "--no-verify"]);
    for package in published {
        pack.args(["--package", &package.name]);
    }
    if !succeeds(pack.arg("--target-dir").arg(&target))? {
        return Ok(None);
    }
    let folder = target.join("unpacked");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n[patch.crates-io]\n"
        .to_owned();
    for package in published {
        let (name, packed) = (&package.name, package.name_and_version());
        let archive = target.join(format!("package/{packed}.crate"));
        ensure!(unpack(&archive, &folder)?, "tar cannot unpack {packed}");
        writeln!(manifest, "{name} = {{ path = {packed:?} }}")?;
    }
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(Some(folder))
}

/// Unpacks an archive into a folder. The files get the present time. In the archive each file has
/// the same time in each run, so cargo would take a changed file for the one that it has checked in
/// an earlier run, and would not check it.
fn unpack(archive: &Path, folder: &Path) -> Result<bool> {
    let mut tar = Command::new("tar");
    tar.arg("xzmf").arg(archive).arg("-C").arg(folder);
    succeeds(&mut tar)
}

/// Returns whether an unpacked package builds with each set of features. Without the toolchain, the
/// package must also use no item of the standard library that is too new.
fn builds(name: &str, toolchain: Option<&str>, root: &Path, folder: &Path) -> Result<bool> {
    for features in FEATURES {
        let mut check = match toolchain {
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo", "check", "--target-dir"]);
                rustup.arg(folder.with_file_name(toolchain));
                // The cargo that runs this process set these variables for its own Rust.
                for variable in ["CARGO", "RUSTC", "RUSTDOC", "CARGO_TARGET_DIR"] {
                    rustup.env_remove(variable);
                }
                rustup
            }
            None => {
                let mut clippy = cargo();
                // The step `clippy` has checked the dependencies in this directory.
                clippy.args(["clippy", "--no-deps", "--target-dir"]);
                clippy.arg(root.join("target"));
                clippy
            }
        };
        check
            .args(["--quiet", "--package", name])
            .args(Some(features).filter(|features| !features.is_empty()))
            .current_dir(folder);
        if toolchain.is_none() {
            check.args(["--", "-D", "clippy::incompatible_msrv"]);
        }
        if !succeeds(&mut check)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the toolchains of rustup that are named by a version; none without rustup.
fn installed() -> Vec<((u32, u32), String)> {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = listed.unwrap_or_default();
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    let versions = names.filter_map(|name| Some((parsed(name)?, name.to_owned())));
    versions.collect()
}

/// Returns the first two numbers of a version, or of the name of a toolchain.
fn parsed(version: &str) -> Option<(u32, u32)> {
    let version = version.split('-').next()?;
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Returns whether [`newer_syntax`] finds no syntax in a package that is newer than the version. No
/// toolchain of that version is needed.
fn has_no_newer_syntax(package: &Package, version: (u32, u32)) -> Result<bool> {
    let mut passed = true;
    for module in modules(package.lib().context("no library")?, "")? {
        for (at, what, needs) in newer_syntax(&module.code) {
            if needs > version {
                let line = module.code[..at].matches('\n').count() + 1;
                let (name, file) = (&package.name, module.file.display());
                eprintln!("{name}: {file}:{line}: {what} need Rust {needs:?}");
                passed = false;
            }
        }
    }
    Ok(passed)
}

/// Finds let chains and `if let` guards. For each, returns its place, its name, and the first Rust
/// that has it.
fn newer_syntax(code: &str) -> Vec<(usize, &'static str, (u32, u32))> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("let ") {
        let before = code[..at].trim_end();
        let is_first = before.ends_with("if") || before.ends_with("while");
        let condition = condition(&code[at..]);
        let (pattern, value) = condition.split_once(" = ").unwrap_or_default();
        if (before.ends_with("&&") && !pattern.is_empty()) || (is_first && value.contains("&& ")) {
            found.push((at, "let chains", (1, 88)));
        } else if is_first && code[at + condition.len()..].starts_with("=>") {
            found.push((at, "`if let` guards", (1, 95)));
        }
    }
    found
}

/// Returns the text from `let` to the body, an arrow or a `;`, with blanks in place of bracketed
/// text.
fn condition(code: &str) -> String {
    let mut text = String::new();
    while let Some(next) = code[text.len()..].chars().next() {
        let (at, has_value) = (text.len(), text.contains(" = "));
        if next == ';' || (next == '{' && has_value) || code[at..].starts_with("=>") {
            break;
        } else if "([{".contains(next) {
            let end = code.len().min(closing(code, at) + 1);
            text += &" ".repeat(end - at);
        } else {
            text.push(next);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::source::code;
    use std::time::SystemTime;

    #[test]
    fn unpacked_file_has_another_time_than_in_the_archive() {
        let folder = std::env::temp_dir().join(format!("selvedge-msrv-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(&from).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(from.join("lib.rs"), "").unwrap();
        let file = fs::File::options().write(true).open(from.join("lib.rs"));
        file.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let archive = folder.join("a.crate");
        let mut pack = Command::new("tar");
        pack.arg("czf")
            .arg(&archive)
            .arg("-C")
            .arg(&from)
            .arg("lib.rs");
        assert!(succeeds(&mut pack).unwrap());
        assert!(unpack(&archive, &to).unwrap());
        let modified = fs::metadata(to.join("lib.rs")).unwrap().modified().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_ne!(modified, SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn version_of_a_toolchain_is_its_first_two_numbers() {
        assert_eq!(parsed("1.85"), Some((1, 85)));
        assert_eq!(parsed("1.85.0-x86_64-unknown-linux-gnu"), Some((1, 85)));
        assert_eq!(parsed("stable-x86_64-unknown-linux-gnu"), None);
    }

    #[test]
    fn syntax_that_is_too_new_is_found_in_code_and_macros() {
        let new = [
            "fn f() { if a && let Some(b) = c {} }",
            "fn f() { if let Some(b) = c && d {} }",
            "fn f() { while let Some(b) = c\n && let d = b {} }",
            "macro! { fn f() { if let Foo { x } = c() && d {} } }",
            "fn f() { match a { b if let Some(c) = b => {} } }",
        ];
        let old = [
            "fn f() { if let Some(b) = c { d && e } }",
            "fn f() { if let 1..=2 = c {} else if d && e {} }",
            "fn f() { let Some(a) = b && c else { return }; }",
            "fn f() { if let &&a = &&b {} }",
            "fn f() { if let Some(a) = (b && c) {} }",
            "fn f() { match a { b if c && d => {} } }",
        ];
        let count = |text: &str| newer_syntax(&code(text, "")).len();
        assert!(new.iter().all(|text| count(text) > 0));
        assert!(old.iter().all(|text| count(text) == 0));
    }
}
