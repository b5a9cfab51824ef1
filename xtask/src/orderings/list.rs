//! `orderings.toml`: survivors that are justified, and structural mutants that no rule finds.
use super::{mutants::Order, sites::Site};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::{fs, path::Path};

/// The whole file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    #[serde(default)]
    pub(crate) justified: Vec<Justified>,
    #[serde(default)]
    pub(crate) structural: Vec<Listed>,
}

/// A mutant that no model needs to kill.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Justified {
    pub(crate) site: String,
    pub(crate) mutant: String,
    /// What is written at the site; none for a structural one. When the source changes, the reason is to be thought over.
    pub(crate) written: Option<Order>,
    pub(crate) reason: String,
}

/// A change of the source: `find`, in the function that `site` names, becomes `with`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// `crate/file/function#name`.
    pub(crate) site: String,
    pub(crate) find: String,
    pub(crate) with: String,
}

impl List {
    /// Empty when there is no file.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(file)?;
        let list: Self =
            toml::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
        for entry in &list.justified {
            ensure!(
                !entry.reason.trim().is_empty(),
                "{} {} has no reason",
                entry.site,
                entry.mutant
            );
        }
        Ok(list)
    }

    pub(crate) fn reason(&self, site: &Site, mutant: &str) -> Option<&str> {
        self.justified
            .iter()
            .find(|entry| entry.fits(site) && entry.mutant == mutant)
            .map(|entry| entry.reason.as_str())
    }

    /// The justifications that name, in one of these crates, a mutant that is gone.
    pub(crate) fn stale<'a>(
        &'a self,
        sites: &'a [Site],
        crates: &'a [String],
    ) -> impl Iterator<Item = String> + 'a {
        self.justified
            .iter()
            .filter(|entry| crates.iter().any(|name| of(&entry.site, name)))
            .filter(|entry| {
                !sites
                    .iter()
                    .any(|site| entry.fits(site) && site.mutants.contains(&entry.mutant))
            })
            .map(|entry| format!("{} {}", entry.site, entry.mutant))
    }
}

impl Justified {
    fn fits(&self, site: &Site) -> bool {
        self.site == site.key && self.written == site.written
    }
}

/// Whether a site's key is of the crate `name`.
pub(crate) fn of(key: &str, name: &str) -> bool {
    key.strip_prefix(name)
        .is_some_and(|rest| rest.starts_with('/'))
}
