//! The results that are kept in `docs/verification/`.
use crate::{loom::Outcome, results};
use anyhow::Result;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub(super) const FOLDER: &str = "docs/verification";

/// Results by crate and model.
pub(super) type Models = BTreeMap<(String, String), Outcome>;

pub(super) fn key(model: &Outcome) -> (String, String) {
    (model.package.clone(), model.model.clone())
}

pub(super) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(name).with_extension("json")
}

/// Reads a file of results; `None` when there is no such file.
pub(super) fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>> {
    results::earlier(&file(folder, name))
}

pub(super) fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<()> {
    results::write_json(&file(folder, name), value)
}
