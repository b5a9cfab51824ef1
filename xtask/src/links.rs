//! Part of the step `doc`: checks the links in the Markdown documents. The check opens no web
//! addresses, and does not look for the heading that a link names.
//!
//! 1. A document in the folder of a published crate or in its `src`, such as the README or the
//!    change log, has no relative link. It links only to web addresses and to its own headings.
//! 2. In every other document, a relative link leads to a file or a folder of the repository.
//! 3. Text in brackets has a target. It is not an item's path alone, as in ``[`Worker::push`]``.
//!
//! The reason for rule 1 is that such a document is also read outside of the repository, on docs.rs
//! and on the crate's page at the registry:
//!
//! - On docs.rs, a relative link to a file leads nowhere: docs.rs has no such page.
//! - On the registry's page, a relative link to a file leads nowhere either. A link to an item by
//!   its path, such as `[text](a::b)`, leads nowhere there: only rustdoc can find the item.
//!
//! The reason for rule 3 is that only rustdoc turns an item's path in brackets into a link.
//! Everywhere else, a reader sees the brackets.
use anyhow::{Context, Result};
use project::{say, workspace};
use std::{
    fs,
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

pub(crate) fn run() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let published = packages.iter().filter(|package| package.is_publishable());
    let published = published.map(|package| package.lib().context("a package without a library"));
    let published: Vec<_> = published.collect::<Result<_>>()?;
    let mut alive = true;
    for file in files(&root, "md")? {
        let folder = file.parent().context("a file without a folder")?;
        let text = fs::read_to_string(&file)?;
        // The folder of a published crate contains the crate's library. The root contains
        // libraries, too, but its own documents are read in the repository.
        let is_published = published.iter().any(|lib| lib.starts_with(folder)) && folder != root;
        for link in links(&text)
            .into_iter()
            .filter(|link| is_dead(link, folder, is_published))
        {
            alive = false;
            let file = file.strip_prefix(&root)?.display();
            say!("{file}: this link breaks a rule of xtask/src/links.rs: {link}");
        }
        for (line, words) in without_target(&text) {
            alive = false;
            let file = file.strip_prefix(&root)?.display();
            say!(
                "{file}:{line}: brackets without a target (rule 3 of xtask/src/links.rs): {words}"
            );
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
/// says whether rule 1 applies to the document.
fn is_dead(link: &str, folder: &Path, is_published: bool) -> bool {
    if link.starts_with("https://") || link.starts_with('#') {
        return false;
    }
    let file = link.split('#').next().unwrap_or(link);
    is_published || !folder.join(file).exists()
}

/// Returns the targets of all links `[text](target)` and `[text]: target` that are not in code.
fn links(text: &str) -> Vec<String> {
    let prose = without_code(text);
    let of_line = |line: &str| {
        let after = line.split("](").skip(1);
        let inline = after.filter_map(|rest| Some(rest.split_once(')')?.0));
        let named = definition(line).map(|(_, target)| target.trim());
        inline.chain(named).map(str::to_owned).collect::<Vec<_>>()
    };
    prose.lines().flat_map(of_line).collect()
}

/// Returns the name and the target of a line `[name]: target`.
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

/// Returns each text in brackets that leads nowhere, and the number of its line. The box `[ ]` of a
/// list of tasks does not count.
fn without_target(text: &str) -> Vec<(usize, &str)> {
    let prose = without_code(text);
    let defined: Vec<_> = text.lines().filter_map(definition).collect();
    let is_defined = |name: &str| defined.iter().any(|(known, _)| *known == name);
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for (at, byte) in prose.bytes().enumerate() {
        match byte {
            b'[' => open.push(at),
            b']' => {
                let Some(begin) = open.pop() else {
                    continue;
                };
                let (name, rest) = (&text[begin + 1..at], &prose[at + 1..]);
                let begins_line = begin == 0 || prose[..begin].ends_with('\n');
                let is_link = rest.starts_with(['(', '['])
                    || rest.starts_with(": ") && begins_line
                    || is_defined(name);
                if !is_link && !["", "x"].contains(&name.trim()) {
                    let line = prose[..begin].matches('\n').count() + 1;
                    found.push((line, &text[begin..=at]));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the text with `_` in place of each byte of its code. Line ends stay.
fn without_code(text: &str) -> String {
    let mut prose = text.as_bytes().to_owned();
    let mut blank = |from: usize, to: usize| {
        let code = prose[from..to].iter_mut();
        code.filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b'_');
    };
    let (mut at, mut begins_line) = (0, true);
    while at < text.len() {
        let rest = &text[at..];
        let indented = rest.trim_start_matches(' ');
        if begins_line && indented.starts_with("```") {
            let body = rest.find('\n').unwrap_or(rest.len());
            let mut lines = rest[body..].split_inclusive('\n').skip(1);
            let length: usize = (&mut lines)
                .take_while(|line| !line.trim_start().starts_with("```"))
                .map(str::len)
                .sum();
            let end = at + (body + 1 + length).min(rest.len());
            let end = end + text[end..].find('\n').unwrap_or(text.len() - end);
            blank(at, end);
            at = end;
        } else if rest.starts_with('`') {
            let quotes = rest.len() - rest.trim_start_matches('`').len();
            at += quotes;
            at += code_length(&text[at..], quotes).map_or(0, |length| {
                blank(at - quotes, at + length);
                length
            });
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        begins_line = text[..at].ends_with('\n');
    }
    String::from_utf8(prose).expect("whole characters were replaced")
}

/// Returns the length of code that ends with this number of backquotes, these included. `None` if
/// the paragraph ends before.
fn code_length(text: &str, quotes: usize) -> Option<usize> {
    let paragraph = text.find("\n\n").map_or(text, |end| &text[..end]);
    let mut at = 0;
    loop {
        at += paragraph[at..].find('`')?;
        let rest = &paragraph[at..];
        let run = rest.len() - rest.trim_start_matches('`').len();
        at += run;
        if run == quotes {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_outside_of_code_are_found() {
        let text = "[a](b) `[c](d)` [`e`](f#g)\n```\n[h](i)\n```\n[j]: k\n- [l]";
        assert_eq!(links(text), ["b", "f#g", "k"]);
        let text = "  ```text\n  [a](b)\n  ```\n[c](d) `` [`e`](f) ``\n[g](h)`\n\n`[i](j)";
        assert_eq!(links(text), ["d", "h", "j"]);
    }

    #[test]
    fn brackets_without_a_target_are_found_but_no_code() {
        let text = "# a\n\n[`A::b`], [c], and a\n[`D`]: e.";
        assert_eq!(without_target(text), [(3, "[`A::b`]"), (3, "[c]")]);
        for fine in [
            "`[a]` [`b`](c) ``[`d`]``",
            "```\n#[e]\n```",
            "- [ ] f\n- [x] g",
            "[`h`] and [i][`h`]\n\n[`h`]: https://j",
            "[![k](l)](m)",
        ] {
            assert!(without_target(fine).is_empty(), "{fine}");
        }
        assert_eq!(without_target("| a [`B`]: c |"), [(1, "[`B`]")]);
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
