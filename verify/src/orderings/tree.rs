//! Copies a workspace, without build results and with changes of some files, to a scratch tree.
use anyhow::{Context, Result};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    ops::Range,
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

/// Changes of the texts of files. The files have their paths from the root of the workspace.
#[derive(Default)]
pub(crate) struct Edits(BTreeMap<PathBuf, Vec<(Range<usize>, String)>>);

impl Edits {
    /// Puts `new` in place of a part of a file. Parts may touch, but not overlap.
    pub(crate) fn replace(&mut self, file: &Path, part: Range<usize>, new: &str) {
        let edits = self.0.entry(file.to_owned()).or_default();
        edits.push((part, new.into()));
    }

    /// Returns the files that have changes, with their new texts.
    pub(crate) fn texts(self, root: &Path) -> Result<Vec<(PathBuf, String)>> {
        let texts = self.0.into_iter().map(|(file, mut edits)| {
            let place = root.join(&file);
            let mut text = fs::read_to_string(&place)
                .with_context(|| format!("reading {}", place.display()))?;
            edits.sort_by_key(|(part, _)| (part.start, part.end));
            for (part, new) in edits.into_iter().rev() {
                text.replace_range(part, &new);
            }
            Ok((file, text))
        });
        texts.collect()
    }
}

/// Makes `to` a copy of `from`, in which the files `changed` have other texts. Files that have not
/// changed are left alone, so that cargo sees no change. Files that are gone are removed.
pub(crate) fn copy(from: &Path, to: &Path, changed: &[(PathBuf, String)]) -> Result<()> {
    let changed: HashMap<_, _> = changed.iter().map(|(file, text)| (&**file, text)).collect();
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
    fn edits_that_touch_are_made_in_their_order() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "f(g)").unwrap();
        let mut edits = Edits::default();
        for (part, new) in [(2..3, "h"), (0..0, "if x { "), (4..4, " }"), (0..1, "k")] {
            edits.replace(Path::new("a"), part, new);
        }
        let texts = edits.texts(root.path()).unwrap();
        assert_eq!(texts, [("a".into(), "if x { k(h) }".to_owned())]);
    }

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
        copy(from.path(), to.path(), &[("a/c".into(), "4".into())]).unwrap();
        assert_eq!((&*read("a/b"), &*read("a/c")), ("1", "4"));
        assert!(!to.path().join("a/target").exists());
        assert!(!to.path().join("old").exists());
        copy(from.path(), &to.path().join("new"), &[]).unwrap();
        assert_eq!(read("new/a/c"), "1");
    }
}
