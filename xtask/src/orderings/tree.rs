//! The scratch tree: a copy of a workspace without what is built from it.
use anyhow::{Context, Result};
use std::{collections::HashSet, fs, path::Path};
use walkdir::WalkDir;

/// Makes `to` a copy of `from`. A file that has not changed is left as it is, so that cargo sees no change, and what
/// is gone is removed.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut there = HashSet::new();
    let hidden = |name: &std::ffi::OsStr| name == "target" || name == ".git";
    let files = WalkDir::new(from)
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !hidden(entry.file_name()));
    for entry in files {
        let entry = entry?;
        let place = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&place)?;
        } else if entry.file_type().is_file() {
            let text = fs::read(entry.path())?;
            if fs::read(&place).ok().as_ref() != Some(&text) {
                fs::write(&place, text).with_context(|| format!("writing {}", place.display()))?;
            }
        }
        there.insert(place);
    }
    for entry in WalkDir::new(to).contents_first(true) {
        let entry = entry?;
        if !there.contains(entry.path()) {
            if entry.file_type().is_dir() {
                fs::remove_dir(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::copy;
    use std::fs;

    #[test]
    fn a_copy_has_what_is_there_and_nothing_else() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("a/target")).unwrap();
        fs::write(from.path().join("a/b"), "1").unwrap();
        fs::write(from.path().join("a/target/c"), "2").unwrap();
        fs::create_dir_all(to.path().join("old")).unwrap();
        fs::write(to.path().join("old/d"), "3").unwrap();
        copy(from.path(), to.path()).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("a/b")).unwrap(), "1");
        assert!(!to.path().join("a/target").exists());
        assert!(!to.path().join("old").exists());
    }
}
