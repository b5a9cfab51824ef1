//! What cargo says of the workspace.
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

/// A member of the workspace.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
    publish: Option<Vec<String>>,
    features: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

impl Package {
    /// Whether it goes to the registry.
    pub(crate) fn is_published(&self) -> bool {
        self.publish.is_none()
    }

    /// Whether it has an integration test of that name.
    pub(crate) fn has_test(&self, name: &str) -> bool {
        self.targets
            .iter()
            .any(|target| target.name == name && target.kind.iter().any(|kind| kind == "test"))
    }

    /// Whether it has integration tests.
    pub(crate) fn has_tests(&self) -> bool {
        let mut kinds = self.targets.iter().flat_map(|target| &target.kind);
        kinds.any(|kind| kind == "test")
    }

    /// The root of its library.
    pub(crate) fn lib(&self) -> Option<&Path> {
        let lib = |target: &&Target| target.kind.iter().any(|kind| kind == "lib");
        self.targets
            .iter()
            .find(lib)
            .map(|target| target.src_path.as_path())
    }

    /// The names of its features.
    pub(crate) fn features(&self) -> Vec<String> {
        self.features.keys().cloned().collect()
    }

    /// Whether it may have models: it is the shim, or a published crate on top of it.
    pub(crate) fn is_modelled(&self) -> bool {
        let shim = "sync-shim";
        self.is_published()
            && (self.name == shim
                || self
                    .dependencies
                    .iter()
                    .any(|dependency| dependency.name == shim))
    }
}

/// The members, and where the workspace is.
pub(crate) fn load() -> Result<(Vec<Package>, PathBuf)> {
    load_at(None)
}

/// The members of the workspace at a folder, or here.
pub(crate) fn load_at(folder: Option<&Path>) -> Result<(Vec<Package>, PathBuf)> {
    let mut cargo = cargo();
    if let Some(folder) = folder {
        cargo.current_dir(folder);
    }
    let output = cargo
        .args(["metadata", "--format-version=1", "--no-deps"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok((metadata.packages, metadata.workspace_root))
}

/// Asks at once whether results can be written there, not when they are there.
pub(crate) fn writable(file: Option<&Path>) -> Result<()> {
    if let Some(file) = file {
        let opened = fs::OpenOptions::new().create(true).append(true).open(file);
        opened.with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// The cargo that runs this, free of what it set for this process.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.env_remove("CARGO_TARGET_DIR");
    command
}
