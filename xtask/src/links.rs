//! Part of the step `doc`: checks the relative links in the Markdown documents. The check opens no
//! web addresses, and does not look for the heading that a link names.
//!
//! 1. A document in the folder of a published crate or in its `src`, such as the README or the
//!    change log, has no relative link. It links only to web addresses and to its own headings.
//! 2. In every other document, a relative link leads to a file or a folder of the repository.
//!
//! The reason for rule 1 is that such a document is also read outside of the repository, on docs.rs
//! and on the crate's page at the registry:
//!
//! - On docs.rs, a relative link to a file leads nowhere: docs.rs has no such page.
//! - On the registry's page, a relative link to a file leads nowhere either. A link to an item by
//!   its path, such as `[text](a::b)`, leads nowhere there: only rustdoc can find the item.
//!
//! An item's path in brackets alone, as in ``[`Worker::push`]``, is allowed. rustdoc turns it into
//! a link, and the registry's page shows it as text.
use anyhow::{Context, Result};
use project::{say, workspace};
use std::{
    fs,
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

pub(crate) fn run() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let published = packages.iter().filter(|package| package.is_published());
    let published = published.map(|package| package.lib().context("a package without a library"));
    let published: Vec<_> = published.collect::<Result<_>>()?;
    let mut alive = true;
    for file in files(&root, "md")? {
        let folder = file.parent().context("a file without a folder")?;
        let text = fs::read_to_string(&file)?;
        // The folder of a published crate contains the crate's library. The root contains
        // libraries, too, but its own documents are read in the repository.
        let is_published = published.iter().any(|lib| lib.starts_with(folder)) && folder != root;
        for link in links(&text).filter(|link| is_dead(link, folder, is_published)) {
            alive = false;
            let file = file.strip_prefix(&root)?.display();
            say!("{file}: this link breaks a rule of xtask/src/links.rs: {link}");
        }
    }
    Ok(alive)
}

/// Returns the files below `root` that have this extension. Skips hidden files and folders, and the
/// folders named `target`.
pub(crate) fn files(root: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let files = WalkDir::new(root).min_depth(1).into_iter();
    let files = files.filter_entry(|entry| {
        let name = entry.file_name().to_string_lossy();
        !name.starts_with('.') && name != "target"
    });
    let paths = files.map(|entry| Ok(entry?.into_path()));
    let paths: Vec<_> = paths.collect::<Result<_>>()?;
    let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == extension);
    Ok(paths.into_iter().filter(is_one).collect())
}

/// Returns whether a link of a document in `folder` breaks one of the rules above. `is_published`
/// says whether rule 1 is for the document.
fn is_dead(link: &str, folder: &Path, is_published: bool) -> bool {
    if link.starts_with("https://") || link.starts_with('#') {
        return false;
    }
    let file = link.split('#').next().unwrap_or(link);
    is_published || !folder.join(file).exists()
}

/// Returns the targets of all links `[text](target)` and `[text]: target` that are not in code.
fn links(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    let lines = text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    lines.flat_map(|line| {
        // Backquotes split the line into pieces. The first piece is text, the second is code, the
        // third is text, and so on.
        let line: String = line.split('`').step_by(2).collect();
        let after = line.split("](").skip(1);
        let inline = after.filter_map(|rest| Some(rest.split_once(')')?.0));
        let named = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        let named = named.map(|(_, target)| target.trim());
        inline.chain(named).map(str::to_owned).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_outside_of_code_are_found() {
        let text = "[a](b) `[c](d)` [`e`](f#g)\n```\n[h](i)\n```\n[j]: k\n- [l]";
        assert!(links(text).eq(["b", "f#g", "k"]));
    }

    #[test]
    fn relative_link_is_dead_if_published_or_without_a_file() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for link in ["https://docs.rs/selvedge", "#a-heading"] {
            assert!(!is_dead(link, here, true) && !is_dead(link, here, false));
        }
        for link in ["src/main.rs", "../README.md#how-fast-is-it"] {
            assert!(is_dead(link, here, true) && !is_dead(link, here, false));
        }
        for link in ["a::b", "src/nothing.rs"] {
            assert!(is_dead(link, here, true) && is_dead(link, here, false));
        }
    }
}
