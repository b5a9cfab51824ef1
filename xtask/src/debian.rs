//! Downloads packages of Debian, and unpacks them into a folder. It installs nothing. So it needs
//! no root, and the compilers of this machine stay as they are.
use crate::workspace::{is_installed, succeeds};
use anyhow::{Context, Result, ensure};
use std::{
    error::Error,
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The release that has the packages.
const RELEASE: &str = "bookworm";

/// The version of Rust's packages that most platforms use, the oldest that the crates promise.
const OLDEST: &str = "1.85.0+dfsg3-1~deb12u3";

/// A newer version, whose packages have the source of std. The release has it among its security
/// updates, which are asked for x86-64 alone.
const NEWEST: &str = "1.96.0+dfsg1-1~deb12u2";

/// Packages, and the folder into which they are unpacked.
pub struct Packages {
    /// The name of the folder.
    pub folder: &'static str,
    /// Rust's packages. A name may have an architecture, after a colon.
    pub rust: &'static [&'static str],
    /// Other packages, whose version is the release's.
    pub others: &'static [&'static str],
}

/// The oldest compiler, which runs on x86-64, those of its libraries that few machines have, and a
/// linker.
pub const OLDEST_RUST: Packages = Packages {
    folder: "rust",
    rust: &[
        "rustc-web",
        "cargo-web",
        "libstd-rust-web-1.85",
        "libstd-rust-web-dev",
    ],
    others: &[
        "libgit2-1.5",
        "libhttp-parser2.9",
        "libllvm19",
        "libpcre3",
        "libssh2-1",
        "lld-19",
    ],
};

/// The newer compiler, and the source of its std.
pub const NEWEST_RUST: Packages = Packages {
    folder: "rust-newest",
    rust: &[
        "rustc-web",
        "cargo-web",
        "libstd-rust-web-1.96",
        "libstd-rust-web-dev",
        "rust-web-src",
    ],
    others: &[
        "libgit2-1.5",
        "libhttp-parser2.9",
        "libllvm22",
        "libmbedcrypto7",
        "libmbedtls14",
        "libmbedx509-1",
        "libpcre3",
        "libssh2-1",
    ],
};

/// The error without Debian's packages: there is no apt, or no site that it reaches and that has
/// them.
#[derive(Debug)]
pub struct Unreachable(&'static str);

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Unreachable {}

/// Downloads and unpacks the packages, unless an earlier call has done so.
pub fn unpack(packages: &Packages, work: &Path) -> Result<()> {
    let folder = work.join(packages.folder);
    let version = match packages.folder == NEWEST_RUST.folder {
        true => NEWEST,
        false => OLDEST,
    };
    let rust = packages.rust.iter();
    let rust = rust.map(|name| format!("{name}={version}"));
    let others = packages.others.iter().map(|name| (*name).to_owned());
    let names: Vec<_> = rust.chain(others).collect();
    // This file is written once all packages are unpacked.
    let (names_file, wanted) = (folder.join("packages"), names.join("\n"));
    if fs::read_to_string(&names_file).is_ok_and(|unpacked| unpacked == wanted) {
        return Ok(());
    }
    // Another process may do the same: each has its own folder until it has all.
    let own = folder.with_extension(std::process::id().to_string());
    download_and_unpack(&names, &own, work).with_context(|| {
        format!(
            "these packages of Debian {RELEASE} are needed, but cannot be downloaded here: {}",
            names.join(" ")
        )
    })?;
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::rename(&own, &folder)?;
    correct_links(&folder)?;
    fs::write(&names_file, wanted).with_context(|| names_file.display().to_string())
}

/// Downloads the packages, and unpacks them into the folder, which is emptied before. apt keeps its
/// state in a folder of `work`.
fn download_and_unpack(names: &[String], folder: &Path, work: &Path) -> Result<()> {
    let missing = "apt-get is not installed: the command needs Debian, or a system made from it";
    ensure!(
        is_installed(&mut Command::new("apt-get")),
        Unreachable(missing)
    );
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let archives = folder.join("archives");
    // The state is that of one set of architectures: apt forgets the lists of the others.
    let architectures = architectures(names);
    let state = work.join("apt").join(architectures.replace(',', "-"));
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
    let key = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg";
    let site = "http://deb.debian.org";
    let text = format!(
        "deb [{key}] {site}/debian {RELEASE} main\n\
         deb [{key} arch=amd64] {site}/debian-security {RELEASE}-security main\n"
    );
    fs::write(&source, text)?;
    let apt = |command: &[&str]| {
        let mut apt = Command::new("apt-get");
        for (option, value) in [
            ("Acquire::Languages", "none".into()),
            ("Acquire::Retries", "1".into()),
            // The seconds without a byte after which a download ends.
            ("Acquire::http::Timeout", "30".into()),
            ("APT::Architecture", "amd64".into()),
            ("APT::Architectures", architectures.clone()),
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
    // The lists of an earlier call serve as long as the site has the packages that they name.
    let downloaded = apt(&["download"]).args(names).output()?.status.success();
    if !downloaded {
        let updated = succeeds(&mut apt(&["update"]))?;
        ensure!(updated, Unreachable("apt-get update failed"));
        let downloaded = succeeds(apt(&["download"]).args(names))?;
        ensure!(downloaded, Unreachable("apt-get download failed"));
    }
    for archive in fs::read_dir(&archives)? {
        let archive = archive?.path();
        let mut unpack = Command::new("dpkg-deb");
        let unpacked = succeeds(unpack.arg("-x").arg(&archive).arg(folder))?;
        ensure!(unpacked, "dpkg-deb cannot unpack {}", archive.display());
        fs::remove_file(&archive)?;
    }
    Ok(())
}

/// Returns the architectures of the packages, and that of this machine, with commas between them.
fn architectures(names: &[String]) -> String {
    let named = names.iter().filter_map(|name| name.split_once(':'));
    let named = named.map(|(_, rest)| rest.split('=').next().unwrap_or(rest));
    let mut all: Vec<_> = ["amd64"].into_iter().chain(named).collect();
    all.dedup();
    all.join(",")
}

/// A compiler whose packages are unpacked.
pub struct Compiler {
    /// The folder that has `bin` and `lib`.
    pub folder: PathBuf,
}

impl Compiler {
    /// Unpacks a compiler. Fails if it does not start here.
    pub fn new(packages: &Packages, work: &Path) -> Result<Self> {
        unpack(packages, work)?;
        let folder = work.join(packages.folder).join("usr");
        let compiler = Self { folder };
        let mut cargo = compiler.cargo(&[]);
        ensure!(
            is_installed(&mut cargo),
            "Debian's cargo does not start. `ldd {}` lists the libraries that it needs",
            cargo.get_program().to_string_lossy()
        );
        Ok(compiler)
    }

    /// Returns a command of Debian's cargo, which uses Debian's compiler. `others` are folders of
    /// further packages that have libraries of this machine.
    pub fn cargo(&self, others: &[PathBuf]) -> Command {
        let mut cargo = Command::new(self.folder.join("bin/cargo"));
        for name in ["rustc", "rustdoc"] {
            let program = self.folder.join("bin").join(name);
            cargo.env(name.to_uppercase(), program);
        }
        cargo
            .env("LD_LIBRARY_PATH", self.libraries(others))
            .env("CARGO_INCREMENTAL", "0")
            .env_remove("RUSTFLAGS");
        cargo
    }

    /// Returns the folders of the unpacked libraries of this machine, with colons between them.
    pub fn libraries(&self, others: &[PathBuf]) -> String {
        let own = self.folder.parent().map(Path::to_owned);
        let folders = others.iter().cloned().chain(own);
        let libraries = folders.flat_map(|folder| {
            ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|library| folder.join(library))
        });
        // The tests of a procedural macro load std from here.
        let std = self.folder.join("lib/rustlib/x86_64-unknown-linux-gnu/lib");
        let libraries = libraries.chain([std]);
        let libraries = libraries.map(|folder| folder.display().to_string());
        libraries.collect::<Vec<_>>().join(":")
    }
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
            #[cfg(unix)]
            std::os::unix::fs::symlink(folder.join(inner), &link)?;
        }
    }
    Ok(())
}
