//! Part of the step `doc`: checks that the links in the documents lead somewhere.
//!
//! The README and the change log of a published crate are read on its registry page and on docs.rs.
//! There a relative link leads nowhere, neither to a file nor to an item by its path. So these
//! documents link only to addresses and to their own headings. All other documents are read in the
//! repository, where a relative link leads to a file.
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
    let published = published.map(|package| package.lib().context("a library"));
    let published: Vec<_> = published.collect::<Result<_>>()?;
    let mut alive = true;
    for file in files(&root, "md")? {
        let folder = file.parent().context("a file")?;
        let text = fs::read_to_string(&file)?;
        let is_published = published.iter().any(|lib| lib.starts_with(folder)) && folder != root;
        for link in links(&text).filter(|link| is_dead(link, folder, is_published)) {
            alive = false;
            let file = file.strip_prefix(&root)?.display();
            say!("{file}: a link that leads nowhere: {link}");
        }
    }
    Ok(alive)
}

/// Returns the files of the repository with this extension.
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

fn is_dead(link: &str, folder: &Path, is_published: bool) -> bool {
    if link.starts_with("https://") || link.starts_with('#') {
        return false;
    }
    let file = link.split('#').next().unwrap_or(link);
    is_published || !folder.join(file).exists()
}

/// Returns the targets of `[text](target)` and `[text]: target`, except those in code.
fn links(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    let lines = text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    lines.flat_map(|line| {
        // Backquotes split the line into pieces, and every second piece is code.
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
    fn link_without_a_target_for_its_reader_is_dead() {
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
