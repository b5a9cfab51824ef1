//! Copies a workspace, without build results and with changes of some files, to a scratch tree.
use anyhow::{Context, Result};
use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

/// Makes `to` a copy of `from`, in which the files `changed` have other texts. Files that have not
/// changed are left alone, so that cargo sees no change. Files that are gone are removed.
pub(crate) fn copy(from: &Path, to: &Path, changed: Vec<(PathBuf, String)>) -> Result<()> {
    let changed: HashMap<_, _> = changed.into_iter().collect();
    let mut there = HashSet::from([to.to_owned()]);
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    let built = |name: &std::ffi::OsStr| name == "target" || name == ".git";
    let all = WalkDir::new(from).min_depth(1).into_iter();
    for entry in all.filter_entry(|entry| !built(entry.file_name())) {
        let entry = entry?;
        let name = entry.path().strip_prefix(from)?;
        let place = to.join(name);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&place)?;
        } else if entry.file_type().is_file() {
            let text = match changed.get(name) {
                Some(text) => text.as_bytes().to_owned(),
                None => fs::read(entry.path())?,
            };
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
    use super::*;

    #[test]
    fn copy_has_the_present_files_and_no_older_ones() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let read = |name: &str| fs::read_to_string(to.path().join(name)).unwrap();
        fs::create_dir_all(from.path().join("a/target")).unwrap();
        fs::write(from.path().join("a/b"), "1").unwrap();
        fs::write(from.path().join("a/c"), "1").unwrap();
        fs::write(from.path().join("a/target/d"), "2").unwrap();
        fs::create_dir_all(to.path().join("old")).unwrap();
        fs::write(to.path().join("old/e"), "3").unwrap();
        copy(from.path(), to.path(), vec![("a/c".into(), "4".into())]).unwrap();
        assert_eq!((&*read("a/b"), &*read("a/c")), ("1", "4"));
        assert!(!to.path().join("a/target").exists());
        assert!(!to.path().join("old").exists());
        copy(from.path(), &to.path().join("new"), Vec::new()).unwrap();
        assert_eq!(read("new/a/c"), "1");
    }
}
