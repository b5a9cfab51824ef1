//! The step `msrv`: each published crate builds with the oldest Rust that its manifest promises.
//!
//! All are packed, as for a release, and unpacked beside each other. Where the crate's toolchain is
//! installed (`rustup toolchain install 1.85.0 --profile minimal`), it checks what was unpacked:
//! without features, with the default ones and with all. Elsewhere the newest Rust does, with the
//! same sets of features; clippy looks for items of the library that are too new, and this file for
//! syntax that is. The step then says that the crate is not checked with the Rust that it promises.
use crate::{
    orderings::source::{Cfg, modules},
    test::succeeds,
    workspace::{self, Package, cargo},
};
use anyhow::{Context, Result, ensure};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The newest Rust that a part may need: that of edition 2024.
const PARTS: (u32, u32) = (1, 85);
/// The sets of features that each crate is built with; the empty text stands for the default ones.
const FEATURES: [&str; 3] = ["--no-default-features", "", "--all-features"];
/// The crate that is no part.
const WHOLE: &str = "selvedge";

pub(crate) fn run() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let published: Vec<_> = packages.iter().filter(|p| p.is_published()).collect();
    let Some(folder) = unpacked(&published, &root)? else {
        return Ok(false);
    };
    let installed = installed();
    let mut passed = true;
    for package in published {
        let name = &package.name;
        let promised = package.rust_version().context("no rust-version")?;
        let version = parsed(promised).with_context(|| format!("{name}: {promised}"))?;
        if name != WHOLE && version > PARTS {
            eprintln!("{name}: needs Rust {promised}, and a part may need {PARTS:?}");
            passed = false;
        }
        let toolchain = installed.iter().find(|(has, _)| *has == version);
        let toolchain = toolchain.map(|(_, toolchain)| toolchain.as_str());
        if !builds(name, toolchain, &folder)? {
            passed = false;
        } else if let Some(toolchain) = toolchain {
            say!("{name}: its package builds with {toolchain}");
        } else {
            passed &= looks_old_enough(package, version)?;
            say!(
                "{name}: not checked with {promised}, which is not installed. Checked instead, \
                 with this Rust: its package builds, clippy::incompatible_msrv, and let chains and \
                 guards, but no other syntax"
            );
        }
    }
    Ok(passed)
}

/// A workspace of all packages, unpacked; none if one can't be packed.
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
    let mut manifest =
        "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n[patch.crates-io]\n".to_owned();
    for package in published {
        let (name, packed) = (&package.name, package.name_and_version());
        let archive = target.join(format!("package/{packed}.crate"));
        let mut unpack = Command::new("tar");
        unpack.arg("xzf").arg(archive).arg("-C").arg(&folder);
        ensure!(succeeds(&mut unpack)?, "{packed} is not to be unpacked");
        writeln!(manifest, "{name} = {{ path = {packed:?} }}")?;
    }
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(Some(folder))
}

/// Whether a package builds from what was unpacked, with each set of features.
fn builds(name: &str, toolchain: Option<&str>, folder: &Path) -> Result<bool> {
    for features in FEATURES {
        let mut check = match toolchain {
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo"]);
                // The cargo that runs this set them for its own Rust.
                for variable in ["CARGO", "RUSTC", "RUSTDOC", "CARGO_TARGET_DIR"] {
                    rustup.env_remove(variable);
                }
                rustup
            }
            None => cargo(),
        };
        check
            .args(["check", "--quiet", "--package", name])
            .args(Some(features).filter(|features| !features.is_empty()))
            .arg("--target-dir")
            .arg(folder.with_file_name(toolchain.unwrap_or("this")))
            .current_dir(folder);
        if !succeeds(&mut check)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The toolchains of rustup that are named by a version; none where there is no rustup.
fn installed() -> Vec<((u32, u32), String)> {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = listed.unwrap_or_default();
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    let versions = names.filter_map(|name| Some((parsed(name)?, name.to_owned())));
    versions.collect()
}

/// The first two numbers of a version, or of the name of a toolchain.
fn parsed(version: &str) -> Option<(u32, u32)> {
    let version = version.split('-').next()?;
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// What can be seen without the toolchain.
fn looks_old_enough(package: &Package, version: (u32, u32)) -> Result<bool> {
    let mut passed = true;
    for features in FEATURES {
        let mut clippy = cargo();
        clippy
            .args(["clippy", "--quiet", "--no-deps", "--lib"])
            .args(["--package", &package.name])
            .args(Some(features).filter(|features| !features.is_empty()))
            .args(["--", "-D", "clippy::incompatible_msrv"]);
        passed &= succeeds(&mut clippy)?;
    }
    let cfg = Cfg::of("", &package.features())?;
    for module in modules(package.lib().context("no library")?, &cfg)? {
        let tokens = module.text.parse::<TokenStream>();
        let tokens = tokens.map_err(|error| anyhow::anyhow!("{}: {error}", module.file))?;
        let mut found = Vec::new();
        newer_syntax(tokens, &mut found);
        for (line, what, needs) in found {
            if needs > version {
                let (name, file) = (&package.name, &module.file);
                eprintln!("{name}: {file}:{line}: {what} need Rust {needs:?}");
                passed = false;
            }
        }
    }
    Ok(passed)
}

/// Syntax that is newer than edition 2024: its line, its name and the Rust that it needs. In
/// macros, too.
fn newer_syntax(tokens: TokenStream, found: &mut Vec<(usize, &'static str, (u32, u32))>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => newer_syntax(group.stream(), found),
            TokenTree::Ident(word) if word == "let" => {
                let line = word.span().start().line;
                let is_after = |word: &str| at > 0 && is_word(&tokens[at - 1], word);
                if at > 1 && is_and(&tokens, at - 2) {
                    found.push((line, "let chains", (1, 88)));
                } else if is_after("if") || is_after("while") {
                    let (what, needs) = match condition(&tokens[at + 1..]) {
                        Condition::Chain => ("let chains", (1, 88)),
                        Condition::Guard => ("`if let` guards", (1, 95)),
                        Condition::Plain => continue,
                    };
                    found.push((line, what, needs));
                }
            }
            _ => {}
        }
    }
}

enum Condition {
    Plain,
    Chain,
    Guard,
}

/// What follows `if let` or `while let`.
fn condition(tokens: &[TokenTree]) -> Condition {
    let is_assignment = |at: usize| {
        let is = |at: Option<usize>, sign| at.is_some_and(|at| is_sign(&tokens[at], sign, None));
        // Not the end of `..=`.
        is_sign(&tokens[at], '=', Some(Spacing::Alone)) && !is(at.checked_sub(1), '.')
    };
    let Some(assignment) = (0..tokens.len()).find(|&at| is_assignment(at)) else {
        return Condition::Plain;
    };
    for at in assignment + 1..tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            _ if is_arrow(tokens, at) => return Condition::Guard,
            // A reference to a reference is at the begin.
            _ if at > assignment + 1 && is_and(tokens, at) => return Condition::Chain,
            _ => {}
        }
    }
    Condition::Plain
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_sign(token: &TokenTree, sign: char, spacing: Option<Spacing>) -> bool {
    let TokenTree::Punct(punct) = token else {
        return false;
    };
    punct.as_char() == sign && spacing.is_none_or(|spacing| punct.spacing() == spacing)
}

/// Whether `=>` begins there.
fn is_arrow(tokens: &[TokenTree], at: usize) -> bool {
    let is_next = |next| is_sign(next, '>', None);
    is_sign(&tokens[at], '=', Some(Spacing::Joint)) && tokens.get(at + 1).is_some_and(is_next)
}

/// Whether `&&` begins there.
fn is_and(tokens: &[TokenTree], at: usize) -> bool {
    is_sign(&tokens[at], '&', Some(Spacing::Joint))
        && tokens
            .get(at + 1)
            .is_some_and(|next| is_sign(next, '&', None))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let count = |text: &str| {
            let mut found = Vec::new();
            newer_syntax(text.parse().unwrap(), &mut found);
            found.len()
        };
        assert!(new.iter().all(|text| count(text) > 0));
        assert!(old.iter().all(|text| count(text) == 0));
    }
}
