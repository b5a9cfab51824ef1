//! `cargo xtask platforms`: runs the tests of the published crates with the oldest Rust that they
//! promise, and on other machines than this one.
//!
//! The compiler is Debian's, which is downloaded and unpacked into `target/platforms`. It builds
//! the crates with the versions of the committed `Cargo.lock`, so that file names no package that
//! is too new for that Rust. A further platform is a further row of [`PLATFORMS`].
use anyhow::{Result, bail, ensure};
use debian::Packages;
use project::{
    say,
    workspace::{self, Package, is_installed},
};
use std::{
    fs::{self, File},
    os::unix,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

mod debian;

/// Options of `cargo xtask platforms`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The platforms. Without one, all of them.
    platforms: Vec<String>,
    /// Tests only these crates.
    #[arg(long = "crate", value_name = "CRATE", value_delimiter = ',')]
    crates: Vec<String>,
}

/// A machine, and how its programs are built and run here.
struct Platform {
    name: &'static str,
    what: &'static str,
    /// The target's name. `None` for this machine.
    target: Option<&'static str>,
    /// The packages that have the target's std, and those that its programs are linked with.
    packages: &'static [Packages],
    /// Returns the flags with which rustc links the target's programs. It takes the folder that has
    /// the folders of `packages`.
    flags: fn(&Path) -> String,
}

/// The compiler, which runs on x86-64, and those of its libraries that few machines have.
const COMPILER: Packages = Packages {
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
    ],
};

const PLATFORMS: &[Platform] = &[
    Platform {
        name: "msrv",
        what: "Rust 1.85",
        target: None,
        packages: &[],
        flags: |_| String::new(),
    },
    Platform {
        name: "i686",
        what: "32-bit x86, which this processor runs",
        target: Some("i686-unknown-linux-gnu"),
        packages: &[
            Packages {
                folder: "i686-std",
                rust: &["libstd-rust-web-dev:i386"],
                others: &[],
            },
            Packages {
                folder: "i686-libc",
                rust: &[],
                others: &[
                    "lib32gcc-12-dev",
                    "lib32gcc-s1",
                    "libc6-dev-i386",
                    "libc6-i386",
                ],
            },
        ],
        flags: |work| {
            let root = work.join("i686-libc");
            let root = root.display();
            // The program names its loader and its libraries by their paths below `root`, as this
            // machine need not have them elsewhere.
            format!(
                "-Clinker=gcc -Clink-arg=-m32 -Clink-arg=--sysroot={root} \
                 -Clink-arg=-B{root}/usr/lib/gcc/x86_64-linux-gnu/12/32 \
                 -Clink-arg=-Wl,--dynamic-linker={root}/lib32/ld-linux.so.2 \
                 -Clink-arg=-Wl,-rpath,{root}/lib32:{root}/usr/lib32"
            )
        },
    },
];

pub(crate) fn run(options: &Options) -> Result<bool> {
    let names: Vec<_> = PLATFORMS.iter().map(|platform| platform.name).collect();
    for name in &options.platforms {
        let known = names.contains(&name.as_str());
        ensure!(known, "no platform {name}; there are {}", names.join(", "));
    }
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "the command runs on Linux on x86-64, for which its compiler is"
    );
    let (packages, root) = workspace::load()?;
    let published = packages.iter().filter(|package| package.is_publishable());
    let chosen = workspace::chosen(published, &options.crates, "releases")?;
    let work = root.join("target/platforms");
    debian::unpack(&COMPILER, &work)?;
    let mut results = Vec::new();
    for platform in PLATFORMS {
        let named = options.platforms.iter().any(|name| name == platform.name);
        if !options.platforms.is_empty() && !named {
            continue;
        }
        say!("== {}: {}", platform.name, platform.what);
        let machine = Machine::new(platform, &work)?;
        for package in &chosen {
            let begun = Instant::now();
            let result = machine.test(package)?;
            let seconds = begun.elapsed().as_secs();
            say!("{} {}: {result}, {seconds} s", platform.name, package.name);
            results.push(result);
        }
    }
    Ok(results.iter().all(|result| result == "ok"))
}

/// A platform whose packages are unpacked.
struct Machine<'a> {
    platform: &'a Platform,
    work: &'a Path,
    compiler: PathBuf,
}

impl<'a> Machine<'a> {
    fn new(platform: &'a Platform, work: &'a Path) -> Result<Self> {
        for packages in platform.packages {
            debian::unpack(packages, work)?;
        }
        let machine = Self {
            platform,
            work,
            compiler: work.join("rust/usr"),
        };
        machine.link_std()?;
        if !is_installed(&mut machine.cargo()) {
            bail!(
                "Debian's cargo does not start. `ldd {}` lists the libraries that it needs",
                machine.cargo().get_program().to_string_lossy()
            );
        }
        Ok(machine)
    }

    /// Puts the target's std where the compiler looks for it.
    fn link_std(&self) -> Result<()> {
        let Some(target) = self.platform.target else {
            return Ok(());
        };
        let std = format!("{}-std/usr/lib/rustlib/{target}", self.platform.name);
        let link = self.compiler.join("lib/rustlib").join(target);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link)?;
        }
        Ok(unix::fs::symlink(self.work.join(std), link)?)
    }

    /// Runs the tests of a crate. Returns "ok", or says which file has the output.
    fn test(&self, package: &Package) -> Result<String> {
        let name = package.name.as_str();
        let log = format!("{}-{name}.txt", self.platform.name);
        let log = self.work.join(log);
        let file = File::create(&log)?;
        let mut commands = Vec::new();
        if name == "selvedge" {
            // Some tests run the examples: some as a user builds them, and some with all features.
            commands.push(vec!["build", "--examples"]);
            commands.push(vec!["build", "--examples", "--all-features"]);
        }
        let test = ["test", "--all-features", "--no-fail-fast"];
        commands.push([&test[..], &["--lib", "--tests"]].concat());
        if self.platform.target.is_none() {
            // For another target, this cargo runs no doc tests.
            commands.push([&test[..], &["--doc"]].concat());
        }
        for command in commands {
            let mut cargo = self.cargo();
            cargo.args(command).args(["--locked", "--package", name]);
            if let Some(target) = self.platform.target {
                cargo.args(["--target", target]);
            }
            cargo.stdout(file.try_clone()?).stderr(file.try_clone()?);
            if !cargo.status()?.success() {
                return Ok(format!("FAILED, see {}", log.display()));
            }
        }
        fs::remove_file(&log)?;
        Ok("ok".into())
    }

    /// Returns a command of Debian's cargo, which uses Debian's compiler.
    fn cargo(&self) -> Command {
        let mut cargo = Command::new(self.compiler.join("bin/cargo"));
        for name in ["rustc", "rustdoc"] {
            let program = self.compiler.join("bin").join(name);
            cargo.env(name.to_uppercase(), program);
        }
        let library = |folder: &str| self.work.join("rust").join(folder);
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(library);
        let libraries = libraries.map(|folder| folder.display().to_string());
        cargo
            .env("LD_LIBRARY_PATH", libraries.join(":"))
            .env("CARGO_TARGET_DIR", self.work.join("target"))
            .env("CARGO_INCREMENTAL", "0")
            .env_remove("RUSTFLAGS");
        if let Some(target) = self.platform.target {
            let variable = target.replace('-', "_").to_uppercase();
            let flags = (self.platform.flags)(self.work);
            cargo.env(format!("CARGO_TARGET_{variable}_RUSTFLAGS"), flags);
        }
        cargo
    }
}
