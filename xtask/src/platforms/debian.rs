//! Downloads packages of Debian, and unpacks them into a folder. It installs nothing. So it needs
//! no root, and the compilers of this machine stay as they are.
use anyhow::{Context, Result, ensure};
use project::{
    say,
    workspace::{is_installed, succeeds},
};
use std::{fs, os::unix, path::Path, process::Command};

/// The release that has the packages. It has Rust 1.85.
const RELEASE: &str = "bookworm";

/// The version of Rust's packages.
const RUST: &str = "1.85.0+dfsg3-1~deb12u3";

/// Packages, and the folder into which they are unpacked.
pub(super) struct Packages {
    pub(super) folder: &'static str,
    /// Rust's packages, whose version is [`RUST`]. A name may have an architecture, after a colon.
    pub(super) rust: &'static [&'static str],
    /// Other packages, whose version is the release's.
    pub(super) others: &'static [&'static str],
}

/// Downloads and unpacks the packages, unless an earlier call has done so.
pub(super) fn unpack(packages: &Packages, work: &Path) -> Result<()> {
    let folder = work.join(packages.folder);
    let rust = packages.rust.iter().map(|name| format!("{name}={RUST}"));
    let others = packages.others.iter().map(|name| (*name).to_owned());
    let names: Vec<_> = rust.chain(others).collect();
    // This file is written once all packages are unpacked.
    let (names_file, wanted) = (folder.join("packages"), names.join("\n"));
    if fs::read_to_string(&names_file).is_ok_and(|unpacked| unpacked == wanted) {
        return Ok(());
    }
    download_and_unpack(&names, &folder, work).with_context(|| {
        format!(
            "these packages of Debian {RELEASE} are needed, but cannot be downloaded here: {}",
            names.join(" ")
        )
    })?;
    correct_links(&folder)?;
    fs::write(&names_file, wanted).with_context(|| names_file.display().to_string())
}

/// Downloads the packages, and unpacks them into the folder, which is emptied before. apt keeps its
/// state in a folder of `work`.
fn download_and_unpack(names: &[String], folder: &Path, work: &Path) -> Result<()> {
    ensure!(
        is_installed(&mut Command::new("apt-get")),
        "apt-get is not installed: the command needs Debian, or a system made from it"
    );
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let archives = folder.join("archives");
    let state = work.join("apt");
    for new in [
        &archives,
        &state.join("lists/partial"),
        &state.join("cache/archives/partial"),
    ] {
        fs::create_dir_all(new)?;
    }
    // apt gets its sources and its lists of packages from `state`. So this machine's own sources,
    // lists and architectures stay as they are.
    let source = state.join("sources.list");
    let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let site = format!("[signed-by={key}] http://deb.debian.org/debian {RELEASE} main\n");
    fs::write(&source, format!("deb {site}"))?;
    let apt = |command: &[&str]| {
        let mut apt = Command::new("apt-get");
        for (option, value) in [
            ("APT::Architecture", "amd64".into()),
            ("APT::Architectures", "amd64,i386".into()),
            ("APT::Sandbox::User", "root".into()),
            ("Debug::NoLocking", "true".into()),
            ("Dir::Etc::sourcelist", source.display().to_string()),
            ("Dir::Etc::sourceparts", "-".into()),
            (
                "Dir::State::lists",
                state.join("lists").display().to_string(),
            ),
            ("Dir::Cache", state.join("cache").display().to_string()),
        ] {
            apt.arg("-o").arg(format!("{option}={value}"));
        }
        apt.arg("-qq").args(command).current_dir(&archives);
        apt
    };
    say!("downloading {}", names.join(" "));
    ensure!(succeeds(&mut apt(&["update"]))?, "apt-get update failed");
    let downloaded = succeeds(apt(&["download"]).args(names))?;
    ensure!(downloaded, "apt-get download failed");
    for archive in fs::read_dir(&archives)? {
        let archive = archive?.path();
        let mut unpack = Command::new("dpkg-deb");
        let unpacked = succeeds(unpack.arg("-x").arg(&archive).arg(folder))?;
        ensure!(unpacked, "dpkg-deb cannot unpack {}", archive.display());
        fs::remove_file(&archive)?;
    }
    Ok(())
}

/// Replaces each absolute link in `folder/lib` by a link to the same path inside of the folder,
/// where the linker finds the file.
fn correct_links(folder: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder.join("lib")) else {
        return Ok(()); // No package has this folder.
    };
    for entry in entries {
        let link = entry?.path();
        let Ok(target) = fs::read_link(&link) else {
            continue; // It is no link.
        };
        if let Ok(inner) = target.strip_prefix("/") {
            fs::remove_file(&link)?;
            unix::fs::symlink(folder.join(inner), &link)?;
        }
    }
    Ok(())
}
