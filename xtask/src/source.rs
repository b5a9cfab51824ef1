//! Reads source files without a parser: finds the modules of a crate, and the code in them.
use anyhow::{Context, Result};
use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

/// Returns the text with blanks in place of comments, literals, and items that a `cfg` leaves out.
/// Every character keeps its place. A `cfg` is evaluated with all features on, with `test` off, and
/// with `flag` as the one cfg flag that counts as set.
pub fn code(source: &str, flag: &str) -> String {
    let mut text = source.to_owned();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let begins = !source[..at].ends_with(is_word);
        let length = literal(&source[at..], begins).unwrap_or(0);
        blank(&mut text, at..at + length);
        at += length.max(first.len_utf8());
    }
    at = 0;
    while let Some(found) = text[at..].find("#[cfg(") {
        let begin = at + found;
        let end = closing(&text, begin + 1) + 1;
        at = end;
        if !holds(&source[begin + "#[cfg(".len()..end - ")]".len()], flag) {
            at = end_of_item(&text, end);
            blank(&mut text, begin..at);
        }
    }
    text
}

/// Returns whether a name may contain this character.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Puts blanks in place of a part of a text; line ends stay.
pub fn blank(text: &mut String, range: Range<usize>) {
    let blanks: String = text[range.clone()]
        .bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect();
    text.replace_range(range, &blanks);
}

/// Returns the length of the comment or literal with which the text begins. `begins` is false if
/// the text starts inside a word of the source: then a leading `r` starts no raw string.
fn literal(text: &str, begins: bool) -> Option<usize> {
    let until = |open: usize, close: &str| {
        let end = text[open..].find(close);
        end.map_or(text.len(), |end| open + end + close.len())
    };
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    } else if text.starts_with("/*") {
        return Some(until(2, "*/"));
    } else if text.starts_with('r') && begins {
        let hashes = text[1..].bytes().take_while(|byte| *byte == b'#').count();
        let open = hashes + 2;
        return (text[1 + hashes..].starts_with('"'))
            .then(|| until(open, &format!("\"{}", "#".repeat(hashes))));
    }
    let quote = text.chars().next().filter(|c| ['"', '\''].contains(c))?;
    let mut inner = text[1..].chars();
    let is_lifetime = inner.next() != Some('\\') && inner.next() != Some('\'');
    if quote == '\'' && is_lifetime {
        return None;
    }
    let mut escaped = false;
    let mut ends = |c: char| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    };
    let end = text.char_indices().skip(1).find(|&(_, c)| ends(c));
    Some(end.map_or(text.len(), |(end, _)| end + 1))
}

/// Returns the offset of the bracket that closes the one at `open`, or the end of the text.
pub fn closing(text: &str, open: usize) -> usize {
    let mut depth = 0;
    let closes = |byte: u8| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    };
    let end = text.bytes().skip(open).position(closes);
    end.map_or(text.len(), |end| open + end)
}

/// A source file, and the path of its module in the crate: `a::b`.
pub struct Module {
    /// The path of the file.
    pub file: PathBuf,
    /// `a::b`, or empty for the root.
    pub path: String,
    /// The text of the file.
    pub source: String,
    /// The result of [`code`] for the text.
    pub code: String,
}

/// Returns the modules of the library or program with this root file, except those that a `cfg`
/// leaves out.
pub fn modules(root: &Path, flag: &str) -> Result<Vec<Module>> {
    let folder = root.parent().context("a root file has a folder")?;
    let mut found = Vec::new();
    let mut rest = vec![(root.to_owned(), folder.to_owned(), String::new())];
    while let Some((file, folder, path)) = rest.pop() {
        let source = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let code = code(&source, flag);
        let mut named = None;
        for (line, written) in code.lines().zip(source.lines()) {
            if line.trim().starts_with("#[path") {
                named = written.split('"').nth(1).map(PathBuf::from);
                continue;
            }
            let Some((before, name)) = line
                .trim()
                .strip_suffix(';')
                .and_then(|line| line.rsplit_once("mod "))
            else {
                continue;
            };
            if !before.is_empty() && !before.starts_with("pub") {
                continue;
            }
            let below = if path.is_empty() {
                name.into()
            } else {
                format!("{path}::{name}")
            };
            let (file, folder) = match named.take() {
                Some(named) => {
                    let file = file.with_file_name(named);
                    let folder = file.parent().context("a file has a folder")?.to_owned();
                    (file, folder)
                }
                None => {
                    let flat = folder.join(format!("{name}.rs"));
                    let nested = folder.join(name).join("mod.rs");
                    (if flat.exists() { flat } else { nested }, folder.join(name))
                }
            };
            rest.push((file, folder, below));
        }
        found.push(Module {
            file,
            path,
            source,
            code,
        });
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}

/// Returns the arguments, separated by commas, in the brackets at `open`.
pub fn arguments(text: &str, open: usize) -> Vec<&str> {
    let (mut at, mut begin, end) = (open + 1, open + 1, closing(text, open));
    let mut found = Vec::new();
    while at < end {
        match text.as_bytes()[at] {
            b'(' | b'[' | b'{' => at = closing(text, at),
            b',' => {
                found.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    // Blank text is no argument: it stands behind a trailing comma, or in an empty list. A last
    // argument that is a literal, and that [`code`] has blanked, is left out, too.
    let last = &text[begin..end];
    found.extend((!last.trim().is_empty()).then_some(last));
    found
}

/// Returns whether a `cfg` holds. `flag` is the one cfg flag that counts as set.
pub fn holds(predicate: &str, flag: &str) -> bool {
    let predicate = predicate.trim();
    let Some((how, rest)) = predicate.split_once('(') else {
        let of_system = format!("target_os = {:?}", std::env::consts::OS);
        let of_processor = format!("target_arch = {:?}", std::env::consts::ARCH);
        return predicate == flag
            || [of_system, of_processor]
                .iter()
                .any(|ours| predicate == ours)
            || predicate.starts_with("feature")
            || (predicate == "unix" && cfg!(unix));
    };
    let list = arguments(predicate, predicate.len() - rest.len() - 1);
    let mut list = list.into_iter().map(|predicate| holds(predicate, flag));
    match how.trim() {
        "not" => !list.any(|holds| holds),
        "any" => list.any(|holds| holds),
        _ => list.all(|holds| holds),
    }
}

/// Returns the end of the item or statement that follows `at`. More of its attributes may stand
/// between `at` and the item.
fn end_of_item(text: &str, mut at: usize) -> usize {
    let is_over =
        |text: &str, at: usize| matches!(text.as_bytes().get(at), None | Some(b')' | b']' | b'}'));
    while !is_over(text, at) {
        match text.as_bytes()[at] {
            b';' => return at + 1,
            b'{' => return closing(text, at) + 1,
            b'(' | b'[' => at = closing(text, at),
            _ => {}
        }
        at += 1;
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_code_is_blanked_and_code_stays_in_place() {
        let source = r##"fn f<'a>(x: &'a str) -> char { '"' } // Acquire
/* Acquire */ const S: &str = "Acquire\" é"; const R: &str = r#"Acquire""#;
#[cfg(all(test, feature = "std"))]
#[doc(hidden)]
mod models { fn g() { Acquire } }
#[cfg(any(selvedge_loom, test))]
fn kept() { Release }
#[cfg(not(selvedge_loom))]
use Acquire;
"##;
        let text = code(source, "selvedge_loom");
        assert_eq!(text.len(), source.len());
        assert!(text.lines().count() == source.lines().count() && !text.contains("Acquire"));
        assert_eq!(text.find("Release"), source.rfind("Release"));
        assert!(text.contains("fn f<'a>(x: &'a str) -> char {"));
    }

    #[test]
    fn module_with_a_path_is_the_file_of_that_path() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write(
            "a/main.rs",
            "#[path = \"../b/c.rs\"]\nmod named;\nmod flat;\n",
        );
        write("a/flat.rs", "");
        write("b/c.rs", "mod below;\n");
        write("b/below.rs", "");
        let found = modules(&folder.path().join("a/main.rs"), "").unwrap();
        let mut paths: Vec<_> = found.into_iter().map(|module| module.path).collect();
        paths.sort();
        assert_eq!(paths, ["", "flat", "named", "named::below"]);
    }

    #[test]
    fn commas_in_brackets_do_not_separate_arguments() {
        let text = "f(a, g(b, c), [d, e],)";
        assert_eq!(arguments(text, 1), ["a", " g(b, c)", " [d, e]"]);
    }
}
