//! Reads `orderings.toml`: survivors that are justified, and structural mutants that no rule finds.
use super::{
    Row,
    mutants::{Mutant, Order},
};
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
    #[serde(default)]
    pub(crate) helper: Vec<Helper>,
    #[serde(default)]
    pub(crate) named: Vec<Named>,
}

/// A function with a fence. In a mutant one of its calls makes no fence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Helper {
    /// The key of the function: `crate/file/function`.
    pub(crate) function: String,
    /// The texts before the brackets of its calls: `idle.notify`, `.is_still_held`. They tell its
    /// calls from those of other functions with the same name. The list is empty if the fence
    /// orders only accesses of the function itself: then no call can do without it.
    pub(crate) calls: Vec<String>,
}

/// A mutant to which the report gives a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) what: String,
    pub(crate) site: String,
    pub(crate) mutant: String,
}

/// A mutant that no model needs to kill.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Justified {
    pub(crate) site: String,
    pub(crate) mutant: String,
    /// The ordering that is written at the site; `None` for a mutant that weakens no ordering. When
    /// the source has another ordering, the entry no longer fits, as its reason needs a new look.
    pub(crate) written: Option<Order>,
    pub(crate) reason: String,
}

/// A change of the source: `find`, in the function that `site` names, becomes `with`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// The key of the site: `crate/file/function#name`.
    pub(crate) site: String,
    pub(crate) find: String,
    pub(crate) with: String,
}

impl List {
    /// Reads the file; the list is empty when there is no file.
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

    pub(crate) fn reason(&self, mutant: &Mutant) -> Option<&str> {
        let mut justified = self.justified.iter();
        let entry = justified.find(|entry| entry.fits(mutant))?;
        Some(&entry.reason)
    }

    /// Returns the functions whose calls have mutants. A function whose fence may be dropped, with
    /// a reason, is left out: the reason holds for each call.
    pub(crate) fn helpers(&self) -> impl Iterator<Item = &Helper> {
        let may_drop = |helper: &Helper| {
            let fence = format!("{}#fence", helper.function);
            let mut justified = self.justified.iter();
            justified.any(|entry| entry.site == fence && entry.mutant == "dropped")
        };
        self.helper.iter().filter(move |helper| !may_drop(helper))
    }

    /// Returns the entries of this crate whose mutant is gone.
    pub(crate) fn stale(&self, mutants: &[Mutant], package: &str) -> Vec<String> {
        let justified = self.justified.iter().filter(|entry| {
            of(&entry.site, package) && !mutants.iter().any(|mutant| entry.fits(mutant))
        });
        let is = |named: &Named, mutant: &Mutant| {
            mutant.site == named.site && mutant.how == named.mutant
        };
        let named = self.named.iter().filter(|entry| {
            of(&entry.site, package) && !mutants.iter().any(|mutant| is(entry, mutant))
        });
        let justified = justified.map(|entry| format!("justifies {} {}", entry.site, entry.mutant));
        let named = named.map(|entry| format!("names {} {}", entry.site, entry.mutant));
        justified.chain(named).collect()
    }

    /// Returns the entries whose crate is not one of `crates`.
    pub(crate) fn of_unknown_crates(&self, crates: &[&str]) -> Vec<String> {
        let justified = self
            .justified
            .iter()
            .map(|entry| ("justifies", &entry.site));
        let changes = self.structural.iter().map(|entry| ("changes", &entry.site));
        let named = self.named.iter().map(|entry| ("names", &entry.site));
        let helpers = self.helper.iter().map(|entry| ("lists", &entry.function));
        justified
            .chain(changes)
            .chain(helpers)
            .chain(named)
            .filter(|(_, site)| !crates.iter().any(|name| of(site, name)))
            .map(|(how, site)| format!("{how} {site}"))
            .collect()
    }
}

impl Named {
    pub(crate) fn is(&self, row: &Row) -> bool {
        row.site == self.site && row.mutant == self.mutant
    }
}

impl Justified {
    fn fits(&self, mutant: &Mutant) -> bool {
        let Self {
            site,
            mutant: how,
            written,
            ..
        } = self;
        (site, how, written) == (&mutant.site, &mutant.how, &mutant.written)
    }
}

/// Returns whether a site's key belongs to the crate `name`.
pub(crate) fn of(key: &str, name: &str) -> bool {
    key.strip_prefix(name)
        .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_fence_that_may_be_dropped_have_no_mutants() {
        let list = r#"
            justified = [{ site = "a/b.rs/c#fence", mutant = "dropped", reason = "r" },
                         { site = "a/b.rs/d#fence", mutant = "AcqRel", reason = "r" }]
            helper = [{ function = "a/b.rs/c", calls = [".c"] },
                      { function = "a/b.rs/d", calls = [".d"] }]
        "#;
        let list: List = toml::from_str(list).unwrap();
        let functions: Vec<_> = list.helpers().map(|helper| &*helper.function).collect();
        assert_eq!(functions, ["a/b.rs/d"]);
    }

    #[test]
    fn entry_about_a_missing_crate_is_reported() {
        let list = r#"
            justified = [{ site = "a/b.rs/c#1", mutant = "Relaxed", reason = "r" }]
            structural = [{ site = "ab/b.rs/c#x", find = "f", with = "w" }]
            helper = [{ function = "ab/b.rs/d", calls = [".d"] }]
            named = [{ what = "w", site = "a/b.rs/c#1", mutant = "Relaxed" }]
        "#;
        let list: List = toml::from_str(list).unwrap();
        assert_eq!(list.of_unknown_crates(&["a", "ab"]), [""; 0]);
        assert_eq!(
            list.of_unknown_crates(&["a"]),
            ["changes ab/b.rs/c#x", "lists ab/b.rs/d"]
        );
        assert_eq!(
            list.of_unknown_crates(&["ab"]),
            ["justifies a/b.rs/c#1", "names a/b.rs/c#1"]
        );
    }
}
