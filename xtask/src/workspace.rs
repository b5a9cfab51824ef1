//! Reads the workspace's metadata from cargo, and runs cargo.
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

/// A member of the workspace. From [`load_all`], also a dependency of a member.
#[derive(Deserialize)]
pub struct Package {
    /// The name in `Cargo.toml`.
    pub name: String,
    /// The path of the package's `Cargo.toml`.
    pub manifest_path: PathBuf,
    version: String,
    rust_version: Option<String>,
    /// The dependencies of all kinds.
    pub dependencies: Vec<Dependency>,
    /// The features, each with those that it turns on.
    pub features: BTreeMap<String, Vec<String>>,
    targets: Vec<Target>,
    publish: Option<Vec<String>>,
    /// The address of the package's documentation.
    pub documentation: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Target {
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|known| known == kind)
    }
}

/// A dependency, as the manifest states it.
#[derive(Deserialize)]
pub struct Dependency {
    /// The name of the package.
    pub name: String,
    /// The versions that fit; `*` if the manifest names none.
    pub req: String,
    /// The kind of the dependency, such as `dev`; `None` for a normal dependency.
    pub kind: Option<String>,
    /// The target that needs the dependency; `None` if all targets need it.
    pub target: Option<String>,
    /// Whether only a feature turns the dependency on.
    #[serde(default)]
    pub optional: bool,
}

impl Package {
    /// Returns whether the manifest lets the package be published.
    pub fn is_publishable(&self) -> bool {
        self.publish.is_none()
    }

    /// Returns the oldest Rust with which the package promises to build.
    pub fn rust_version(&self) -> Option<&str> {
        self.rust_version.as_deref()
    }

    /// Returns the version of the package.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the name and the version of the package, with a hyphen between them.
    pub fn name_and_version(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Returns whether the package has an integration test with this name.
    pub fn has_test(&self, name: &str) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|target| target.name == name && target.is("test"))
    }

    /// Returns the root file of the package's library.
    pub fn lib(&self) -> Option<&Path> {
        let is_lib = |target: &&Target| target.is("lib") || target.is("proc-macro");
        let lib = self.targets.iter().find(is_lib)?;
        Some(&lib.src_path)
    }

    /// Returns the root files of the package's library and programs.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        let is_root = |target: &&Target| {
            ["lib", "proc-macro", "bin"]
                .iter()
                .any(|kind| target.is(kind))
        };
        let roots = self.targets.iter().filter(is_root);
        roots.map(|target| &*target.src_path)
    }

    /// Returns whether the package may have models: it is the shim, or a crate on top of the shim
    /// that can be published, or `adopt`.
    pub fn is_modelled(&self) -> bool {
        let shim = "sync-shim";
        let is_shim =
            |dependency: &Dependency| dependency.name == shim && dependency.kind.is_none();
        let uses_shim = self.dependencies.iter().any(is_shim);
        (self.name == shim || uses_shim) && (self.is_publishable() || self.name == "adopt")
    }
}

/// Returns the members and the folder of the workspace.
pub fn load() -> Result<(Vec<Package>, PathBuf)> {
    load_at(None)
}

/// Returns the members and the folder of the workspace at `folder`, or of this one.
pub fn load_at(folder: Option<&Path>) -> Result<(Vec<Package>, PathBuf)> {
    let metadata = metadata(folder, "--no-deps")?;
    Ok((metadata.packages, metadata.workspace_root))
}

/// Returns the members of the workspace and all their dependencies, which cargo fetches.
pub fn load_all() -> Result<Vec<Package>> {
    Ok(metadata(None, "--locked")?.packages)
}

/// Returns the members of the workspace at `folder` and all their dependencies on this system,
/// which cargo resolves and fetches.
pub fn load_graph(folder: &Path) -> Result<Vec<Package>> {
    Ok(metadata(Some(folder), &format!("--filter-platform={}", host()?))?.packages)
}

/// Returns the triple of this system.
pub fn host() -> Result<String> {
    let version = output_of(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Returns a program of the nightly toolchain, which the sanitizers need.
pub fn nightly(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", program]).args(arguments);
    for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "CARGO_TARGET_DIR"] {
        command.env_remove(name);
    }
    command
}

fn metadata(folder: Option<&Path>, option: &str) -> Result<Metadata> {
    let mut cargo = cargo();
    cargo.args(["metadata", "--quiet", "--format-version=1", option]);
    let cargo = cargo.current_dir(folder.unwrap_or(Path::new(".")));
    serde_json::from_str(&output_of(cargo)?).context("cargo metadata")
}

/// Returns the packages with these names, or all packages if `names` is empty. Fails if no package
/// has one of the names. `what` says in the error what the packages have, such as "models".
pub fn chosen<'a>(
    packages: impl Iterator<Item = &'a Package>,
    names: &[String],
    what: &str,
) -> Result<Vec<&'a Package>> {
    let mut all: Vec<_> = packages.collect();
    for name in names {
        let known: Vec<_> = all.iter().map(|package| &*package.name).collect();
        ensure!(
            known.contains(&&**name),
            "no crate {name} with {what}; there are {}",
            known.join(", ")
        );
    }
    all.retain(|package| names.is_empty() || names.contains(&package.name));
    Ok(all)
}

/// Checks, before a long run, that results can be written to `file`, if there is one.
pub fn check_writable(file: Option<&Path>) -> Result<()> {
    if let Some(file) = file {
        let opened = fs::OpenOptions::new().create(true).append(true).open(file);
        opened.with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// Returns the commit of the tree at a folder, for a result that is measured there. Call this
/// before anything is built, so that the text is about the tree that is built. The text also says
/// whether the tree has changes that are not committed. Changes in `docs` do not count, as the
/// results are there.
pub fn commit(root: &Path) -> String {
    let Some(head) = git(root, &["rev-parse", "--short", "HEAD"]) else {
        return "unknown".into();
    };
    match git(
        root,
        &[
            "status",
            "--porcelain",
            "-uno",
            "--",
            ":(top)",
            ":(top,exclude)docs",
        ],
    ) {
        Some(changes) if changes.is_empty() => head,
        _ => head + " with changes",
    }
}

/// Returns whether code in these folders has changed since the commit. Lines of comments, empty
/// lines and tests do not count.
///
/// Returns `None` if git cannot compare: there is no git, it is older than 2.30, it does not know
/// the commit (as in a shallow clone), or no folder is given.
pub fn code_changed(root: &Path, commit: &str, folders: &[PathBuf]) -> Option<bool> {
    if folders.is_empty() {
        return None;
    }
    let mut arguments = vec![
        "diff",
        "--no-ext-diff",
        "--numstat",
        "--ignore-matching-lines=^[[:space:]]*//|^[[:space:]]+$",
        commit,
        "--",
        ":(exclude,glob)**/tests/**",
        ":(exclude,glob)**/tests.rs",
        ":(exclude,glob)**/counts.rs",
    ];
    arguments.extend(folders.iter().filter_map(|folder| folder.to_str()));
    git(root, &arguments).map(|changes| !changes.is_empty())
}

/// Returns the output of git, run in `folder`, or `None` if git fails.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(folder).args(arguments);
    // Git sets these variables for its hooks, and a hook may run this command.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    // These commands only read, so they need no lock, which could disturb the user's own git.
    git.env("GIT_OPTIONAL_LOCKS", "0");
    let output = git.stderr(Stdio::null()).output().ok()?;
    let stdout = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8_lossy(&stdout).trim().to_owned())
}

/// Has `cargo` compile the workspace's own crates with these flags of rustc, through another
/// `driver` if one is given.
///
/// With `RUSTFLAGS`, cargo would build each dependency once more for each set of flags. A wrapper
/// for the workspace's crates shares the dependencies. The wrapper is a script of the shell. So on
/// systems other than Unix the flags go into `RUSTFLAGS`, and `driver` is ignored.
///
/// For another workspace, where our crates are dependencies, the caller sets `RUSTFLAGS` itself.
pub fn add_flags(
    cargo: &mut Command,
    root: &Path,
    driver: Option<&Path>,
    flags: &str,
) -> Result<()> {
    if cfg!(not(unix)) {
        cargo.env("RUSTFLAGS", flags.replace(CROSSBEAM, ""));
        return Ok(());
    }
    // Cargo tells builds apart by the wrapper's path, so the path contains the flags.
    let folder = root.join("target/rustc-with");
    let driver = driver.map_or_else(String::new, |driver| format!("\"{}\" ", driver.display()));
    let name = driver.rsplit('/').next().unwrap_or_default();
    let name = format!("{name}{flags}").replace([' ', '"'], "_");
    let wrapper = folder.join(name);
    let text = format!("#!/bin/sh\nrustc=$1\nshift\nexec {driver}\"$rustc\" \"$@\" {flags}\n");
    write_script(&wrapper, &text)?;
    cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    if flags.contains(CROSSBEAM) {
        let wrapper = folder.join("crossbeam");
        let text = format!(
            "#!/bin/sh\ncase \" $* \" in\n\
            *\" --crate-name crossbeam_\"*'feature=\"loom\"'*) exec \"$@\" {CROSSBEAM} ;;\n\
            esac\nexec \"$@\"\n"
        );
        write_script(&wrapper, &text)?;
        cargo.env("RUSTC_WRAPPER", wrapper);
    }
    Ok(())
}

/// The flag with which the crates of crossbeam use loom's atomics. They are no members of the
/// workspace, so [`add_flags`] gives this one to them too, on Unix. Only those whose feature `loom`
/// is on get it: the others would not compile. Cargo tells builds apart by their features, but not
/// by this flag, so no other build finds a crate that was built with it.
pub const CROSSBEAM: &str = "--cfg crossbeam_loom";

/// Writes a program of the shell, unless it is there already: a write would change the file's time,
/// and cargo would build anew.
fn write_script(path: &Path, text: &str) -> Result<()> {
    let write = || -> io::Result<()> {
        if fs::read_to_string(path).is_ok_and(|written| written == text) {
            return Ok(());
        }
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, text)?;
        #[cfg(unix)]
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok(())
    };
    write().with_context(|| format!("writing {}", path.display()))
}

/// Returns a command of the cargo that runs this process. The command does not see the variable
/// `CARGO_TARGET_DIR` of this process.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.env_remove("CARGO_TARGET_DIR");
    command
}

/// Returns whether a command succeeds. Prints a command that fails.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command
        .status()
        .with_context(|| format!("running {:?}", command.get_program()))?;
    if !status.success() {
        eprintln!("failed: {command:?}");
    }
    Ok(status.success())
}

/// Returns the text that a command writes to its standard output. Fails if the command fails.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let program = Path::new(command.get_program()).file_name();
    let name = program.into_iter().chain(command.get_args().take(1));
    let name: Vec<_> = name.map(OsStr::to_string_lossy).collect();
    let name = name.join(" ");
    let output = output.with_context(|| name.clone())?;
    ensure!(output.status.success(), "{name} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns whether a program is installed, which is so if it prints its version.
pub fn is_installed(program: &mut Command) -> bool {
    let output = program.arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Returns whether cargo succeeds with these arguments, which are separated by blanks.
pub fn cargo_succeeds(arguments: &str) -> Result<bool> {
    succeeds(cargo().args(arguments.split(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git_of(folder: &Path, arguments: &str) {
        let mut git = Command::new("git");
        for setting in ["user.name=a", "user.email=a@b", "commit.gpgsign=false"] {
            git.args(["-c", setting]);
        }
        git.args(["-c", "core.hooksPath=/dev/null"]);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            git.env_remove(name);
        }
        let git = git.current_dir(folder).args(arguments.split(' '));
        assert!(git.output().unwrap().status.success());
    }

    #[test]
    fn commit_names_the_tree_and_its_changes_outside_of_docs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(commit(folder.path()), "unknown");
        let git = |arguments| git_of(folder.path(), arguments);
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        git("init");
        write("a", "1");
        fs::create_dir(folder.path().join("docs")).unwrap();
        write("docs/b", "1");
        git("add .");
        git("commit -m a");
        let clean = commit(folder.path());
        assert!(clean.len() >= 4 && clean.chars().all(|c| c.is_ascii_hexdigit()));
        write("docs/b", "2");
        assert_eq!(commit(folder.path()), clean);
        assert_eq!(commit(&folder.path().join("docs")), clean);
        write("a", "2");
        let changed = clean + " with changes";
        assert_eq!(commit(folder.path()), changed);
        assert_eq!(commit(&folder.path().join("docs")), changed);
    }

    #[test]
    fn code_changes_neither_by_comments_nor_by_tests() {
        let folder = tempfile::tempdir().unwrap();
        let changed = |commit| {
            let sources = [folder.path().join("a/src"), folder.path().join("b/src")];
            code_changed(folder.path(), commit, &sources)
        };
        assert_eq!(changed("HEAD"), None);
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        let tests = [
            "a/src/tests.rs",
            "a/src/counts.rs",
            "a/src/c/tests/d.rs",
            "a/src/tests/d.rs",
        ];
        let code = ["a/src/lib.rs", "b/src/lib.rs"];
        let elsewhere = "c/src/lib.rs";
        for file in tests.iter().chain(&code).chain([&elsewhere]) {
            fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
            write(file, "fn a() {}\n");
        }
        git_of(folder.path(), "init");
        git_of(folder.path(), "add .");
        git_of(folder.path(), "commit -m a");
        assert_eq!(changed("HEAD"), Some(false));
        for file in tests.iter().chain([&elsewhere]) {
            write(file, "fn b() {}\n");
        }
        assert_eq!(changed("HEAD"), Some(false));
        for file in code {
            write(file, "    // A comment.\n\nfn a() {}\n");
            assert_eq!(changed("HEAD"), Some(false));
            for change in ["    // A comment.\n\nfn b() {}\n", "fn b() {}\n", "\n"] {
                write(file, change);
                assert_eq!(changed("HEAD"), Some(true), "{change}");
            }
            write(file, "fn a() {}\n");
        }
        assert_eq!(changed("HEAD"), Some(false));
        assert_eq!(changed("unknown"), None);
        assert_eq!(code_changed(folder.path(), "HEAD", &[]), None);
    }
}
