//! The step `no-std`: builds and links, without `std`, the parts that promise not to need it.
//!
//! Each part builds alone, without its features and with one feature at a time. Then all of them
//! are linked into a static library that has its own allocator and panic handler, and the library
//! is linked into a program that runs. If a part used std, there would be two panic handlers, and
//! the library would not build. A symbol of std in the library or in the program fails the step,
//! too.
//!
//! The library defines its own `rust_eh_personality`, which does nothing. Usually std defines it,
//! and the unwinding tables of the prebuilt `core` and `alloc` name it, although nothing unwinds
//! where a panic aborts.
use anyhow::{Context, Result, ensure};
use project::{
    say,
    workspace::{self, cargo, cargo_succeeds, output_of, succeeds},
};
use std::{fmt::Write as _, fs, path::Path, process::Command};

/// The parts, and those of their features that need no `std` either.
pub(crate) const PARTS: &[(&str, &[&str])] = &[
    ("sync-shim", &[]),
    ("queue-spmc", &["deque"]),
    ("queue-global", &["queue-spmc"]),
    ("waker-vtable", &[]),
    (
        "task-sync",
        &[
            "barrier",
            "broadcast",
            "mpsc",
            "mutex",
            "notify",
            "once",
            "oneshot",
            "rwlock",
            "semaphore",
            "watch",
        ],
    ),
    ("task-header", &["queue-global"]),
    ("coop-budget", &[]),
    ("worker-idle", &[]),
    ("worker-queue", &[]),
    ("timer-wheel", &["alloc"]),
    ("sched-group", &[]),
];

pub(crate) fn run() -> Result<bool> {
    // Each part builds alone, so that no part turns on a feature of another.
    for (part, features) in PARTS {
        for feature in [""].iter().chain(*features) {
            let build =
                format!("build --no-default-features --package {part} --features={feature}");
            if !cargo_succeeds(&build)? {
                return Ok(false);
            }
        }
    }
    if !cargo_succeeds("test --no-default-features --package task-header --test without_std")? {
        return Ok(false);
    }
    let (_, root) = workspace::load()?;
    links(&root)
}

/// Links all parts into a program and runs it. Returns `false` if the build, the link or the
/// program fails, or if the library or the program has a symbol of std.
fn links(root: &Path) -> Result<bool> {
    let folder = root.join("target/no-std");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("Cargo.toml"), manifest(root)?)?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut build = cargo();
    build
        .args(["build", "--target-dir"])
        .arg(folder.join("target"))
        .current_dir(&folder);
    if !succeeds(&mut build)? {
        return Ok(false);
    }
    let library = folder.join("target/debug/liblinked.a");
    let program = folder.join("linked");
    let mut link = Command::new("cc");
    link.arg(&library).arg("-o").arg(&program);
    if !succeeds(&mut link)? || !succeeds(&mut Command::new(&program))? {
        return Ok(false);
    }
    let mut checked = 0;
    for file in [&library, &program] {
        let listed = output_of(Command::new("nm").arg(file)).context("nm, of binutils")?;
        // A line has an address (if the symbol has one), a letter, and the symbol.
        let symbols = listed
            .lines()
            .filter_map(|line| line.split(' ').next_back());
        for symbol in symbols {
            checked += 1;
            if is_of_std(symbol) {
                eprintln!("{}: a symbol of std: {symbol}", file.display());
                return Ok(false);
            }
        }
    }
    ensure!(checked > 1000, "nm listed only {checked} symbols");
    say!("no symbol of std among {checked}");
    Ok(true)
}

/// Returns the manifest of a crate outside the workspace. That crate depends on all parts.
fn manifest(root: &Path) -> Result<String> {
    let mut text = format!(
        "[package]\nname = \"linked\"\nedition = \"2024\"\n[workspace]\n\
         [lib]\npath = {:?}\ncrate-type = [\"staticlib\"]\n\
         [profile.dev]\npanic = \"abort\"\n[dependencies]\n",
        root.join("xtask/no_std/lib.rs")
    );
    for (part, features) in PARTS {
        let path = root.join(part);
        writeln!(
            text,
            "{part} = {{ path = {path:?}, default-features = false, features = {features:?} }}"
        )?;
    }
    Ok(text)
}

/// Returns whether a symbol is of std, in the old mangling or the new. The new mangling names a
/// crate by `Cs`, a hash, `_`, the length of the name, and the name.
fn is_of_std(symbol: &str) -> bool {
    let is_root = |(at, _)| {
        let hash = symbol[..at].rsplit_once("Cs").map(|(_, hash)| hash);
        let is_hash = |hash: &str| hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
        hash.is_some_and(is_hash)
    };
    symbol.contains("_ZN3std")
        || symbol.contains("$LT$std..")
        || symbol.starts_with("_R") && symbol.match_indices("_3std").any(is_root)
}

#[cfg(test)]
mod tests {
    use super::is_of_std;

    #[test]
    fn symbol_of_std_is_known_in_both_manglings() {
        let of_std = [
            "_ZN3std2rt10lang_start17h0123456789abcdefE",
            "_ZN58_$LT$std..io..error..Error$u20$as$u20$core..fmt..Debug$GT$3fmt17h01E",
            "_RNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal",
            "_RINvMNtCsgEmfK2I1SDS_4core4cell4onceE0E0zECsjrHSEGnQ3l9_3std",
        ];
        assert!(of_std.iter().all(|symbol| is_of_std(symbol)));
        let others = [
            "main",
            "rust_eh_personality",
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            "_ZN4mine5_3std17h0123456789abcdefE",
            "_RNvCs4X4t9plMPHF_4mine5a_3std",
            "_RNvCs4X4t9plMPHF_7no_3std3run",
        ];
        assert!(others.iter().all(|symbol| !is_of_std(symbol)));
    }
}
