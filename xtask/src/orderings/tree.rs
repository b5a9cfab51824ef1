//! The scratch tree: a copy of a workspace without what is built from it.
use anyhow::{Context, Result};
use std::{borrow::Cow, collections::HashSet, fs, path::Path};
use walkdir::WalkDir;

/// Makes `to` a copy of `from`. A file that has not changed is left as it is, so that cargo sees no change, and what
/// is gone is removed. What a manifest names by a path out of the tree stays where it is.
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
            let mut text = fs::read(entry.path())?;
            if entry.file_name() == "Cargo.toml" {
                text = outward(&String::from_utf8(text)?, entry.path(), from).into_bytes();
            }
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

/// The text of a manifest with each `path` that leads out of `root` made absolute.
fn outward(text: &str, manifest: &Path, root: &Path) -> String {
    let folder = manifest.parent().unwrap_or(root);
    let absolute = |path: &str| -> Option<String> {
        let there = folder.join(path).canonicalize().ok()?;
        let inside = there.starts_with(root.canonicalize().ok()?);
        (!inside).then(|| there.to_str().map(str::to_owned))?
    };
    let mut quoted = text.split('"');
    let mut written = quoted.next().unwrap_or_default().to_owned();
    // What is between quotation marks, and what follows it up to the next.
    while let Some(value) = quoted.next() {
        let before = written.trim_end().strip_suffix('=').map(str::trim_end);
        let is_path = before.is_some_and(|before| {
            let key = before.strip_suffix("path");
            key.is_some_and(|rest| rest.ends_with([' ', '\t', '\n', '{', ',', '.']))
        });
        let found = is_path.then(|| absolute(value)).flatten();
        let value = found.map_or(Cow::Borrowed(value), Cow::Owned);
        written.extend(["\"", &value]);
        if let Some(rest) = quoted.next() {
            written.extend(["\"", rest]);
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{copy, outward};
    use std::fs;

    #[test]
    fn a_path_out_of_the_tree_becomes_absolute_and_no_other_does() {
        let all = tempfile::tempdir().unwrap();
        let (root, part) = (all.path().join("a"), all.path().join("part"));
        fs::create_dir_all(root.join("b")).unwrap();
        fs::create_dir_all(&part).unwrap();
        let part = part.canonicalize().unwrap();
        let text = |path: &str| {
            format!(
                "c = {{ version = \"1\", path = \"{path}\" }}\nd.path=\"b\"\nnopath = \"../part\"\n"
            )
        };
        let written = outward(&text("../part"), &root.join("Cargo.toml"), &root);
        assert_eq!(written, text(part.to_str().unwrap()));
        assert_eq!(
            outward(&text("b"), &root.join("Cargo.toml"), &root),
            text("b")
        );
    }

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
