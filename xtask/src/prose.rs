//! The step `prose`: checks of comments, documents and names, as far as no reader is needed for
//! them.
//!
//! - A line of a comment or of Markdown has at most 100 columns, and a test's name has at most 60
//!   characters. A table, a line with a link or a web address, and a fenced block may be wider.
//! - A line of a comment begins with "Who", "What", "That" or "Which" only in a question. A
//!   statement begins with the thing that it is about.
//! - No item has a name that [`RIDDLES`] lists.
//!
//! Generated pages are left out: the commands that write them have tests of their own.
use crate::links::files;
use anyhow::Result;
use project::{say, workspace};
use std::{fs, path::Path};

const COLUMNS: usize = 100;
const NAME: usize = 60;

/// Names that say nothing to a reader who has not seen the code. The glossary has better ones.
const RIDDLES: &[&str] = &[
    "around",
    "at_hand",
    "calm",
    "crowd",
    "foreign",
    "hear",
    "heard",
    "hold",
    "lose",
    "overheard",
    "put_behind",
    "push_behind",
    "rob",
    "seated",
    "tell",
    "unask",
];

pub(crate) fn run() -> Result<bool> {
    let (_, root) = workspace::load()?;
    let mut short = true;
    for (end, find) in [("rs", in_source as Find), ("md", in_document)] {
        for file in files(&root, end)? {
            let file = file.strip_prefix(&root)?;
            if is_generated(file) {
                continue;
            }
            for (line, fault) in find(&fs::read_to_string(root.join(file))?) {
                short = false;
                say!("{}:{line}: {fault}", file.display());
            }
        }
    }
    Ok(short)
}

/// Finds the faults of a file: the number of each faulty line, from one, and what is wrong there.
type Find = fn(&str) -> Vec<(usize, &'static str)>;

fn is_generated(file: &Path) -> bool {
    let pages = ["docs/ecosystem.md", "docs/verification.md"];
    file.starts_with("docs/benchmarks") || pages.iter().any(|page| file == Path::new(page))
}

fn is_long(line: &str) -> bool {
    let may_be = ["](", "://", "|"];
    line.chars().count() > COLUMNS && !may_be.iter().any(|text| line.contains(text))
}

fn in_source(text: &str) -> Vec<(usize, &'static str)> {
    let mut faults = Vec::new();
    let (mut is_test, mut fenced) = (false, false);
    let lines: Vec<_> = text.lines().collect();
    for (at, &line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let comment = code.strip_prefix("//");
        let text = comment.map(|text| text.trim_start_matches(['/', '!', ' ']));
        fenced = comment.is_some() && (fenced ^ text.is_some_and(|text| text.starts_with("```")));
        if comment.is_some() && !fenced && is_long(line) {
            faults.push((at + 1, "a comment of more than 100 columns"));
        }
        if comment.is_some() && !fenced && has_no_subject(&lines[at..]) {
            faults.push((at + 1, "a comment without a subject: name the thing"));
        }
        if item_of(code).is_some_and(is_riddle) {
            faults.push((at + 1, "a name that only its author understands"));
        }
        if code.starts_with("#[test]") {
            is_test = true;
        } else if let Some((_, rest)) = code.split_once("fn ")
            && !code.starts_with("//")
        {
            let name = rest.split(['(', '<']).next().unwrap_or(rest);
            if is_test && name.len() > NAME {
                faults.push((at + 1, "a test with a name of more than 60 characters"));
            }
            is_test = false;
        }
    }
    faults
}

/// Returns whether the first of these lines of a comment begins a statement with a bare pronoun.
fn has_no_subject(lines: &[&str]) -> bool {
    let text = |line: &str| Some(line.trim_start().strip_prefix("//")?.to_owned());
    let comment = lines.iter().map_while(|line| text(line));
    let comment: Vec<_> = comment
        .map(|text| text.trim_matches(['/', '!', ' ']).to_owned())
        .take_while(|text| !text.is_empty())
        .collect();
    let comment = comment.join(" ");
    let first = comment.split(' ').next();
    let end = comment.find(['.', '?']).map(|at| &comment[at..]);
    matches!(first, Some("Who" | "What" | "That" | "Which"))
        && !end.is_some_and(|end| end.starts_with('?'))
}

/// Returns the name of the item that this line of code declares.
fn item_of(code: &str) -> Option<&str> {
    let mut words = code.split_whitespace();
    let kinds = [
        "fn", "struct", "enum", "trait", "mod", "const", "static", "type",
    ];
    let visible = |word: &&str| word.starts_with("pub") || ["async", "unsafe"].contains(word);
    let kind = words.find(|word| !visible(word))?;
    let rest = kinds.contains(&kind).then(|| words.next())??;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

fn is_riddle(name: &str) -> bool {
    RIDDLES.contains(&name.to_lowercase().as_str())
}

fn in_document(text: &str) -> Vec<(usize, &'static str)> {
    let mut fenced = false;
    let mut faults = Vec::new();
    for (at, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && is_long(line) {
            faults.push((at + 1, "a line of more than 100 columns"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_comment_is_found_but_no_table_and_no_link() {
        let long = "word ".repeat(21);
        assert_eq!(in_source(&format!("{long}\n/// {long}")).len(), 1);
        for line in [
            format!("// | {long}"),
            format!("// [a](b) {long}"),
            format!("/// ```\n/// {long}"),
        ] {
            assert!(in_source(&line).is_empty(), "{line}");
        }
    }

    #[test]
    fn long_name_is_a_fault_only_for_a_test() {
        let function = format!("fn {}() {{}}", "a".repeat(61));
        assert!(in_source(&function).is_empty());
        assert_eq!(in_source(&format!("#[test]\n{function}")).len(), 1);
        assert!(in_source(&format!("#[test]\nfn a() {{}}\n{function}")).is_empty());
    }

    #[test]
    fn comment_without_a_subject_is_found_but_no_question() {
        for fault in [
            "// Who comes first.",
            "    /// That of\n    /// the call?",
            "//! What is.",
        ] {
            let fault = fault.replace("of\n", "of it. Is\n");
            assert_eq!(in_source(&fault).len(), 1, "{fault}");
        }
        for fine in [
            "// Who is first?",
            "// What is\n// it?",
            "// Whose it is.",
            "let What = 1;",
        ] {
            assert!(in_source(fine).is_empty(), "{fine}");
        }
    }

    #[test]
    fn riddle_is_found_where_it_is_declared() {
        for fault in [
            "mod crowd {",
            "pub(crate) unsafe fn tell(&self)",
            "pub struct Calm;",
        ] {
            assert_eq!(in_source(fault).len(), 1, "{fault}");
        }
        for fine in ["self.tell();", "fn teller()", "// a crowd", "let calm = 1;"] {
            assert!(in_source(fine).is_empty(), "{fine}");
        }
    }

    #[test]
    fn long_line_of_a_document_is_found_but_no_output() {
        let long = "word ".repeat(21);
        assert_eq!(in_document(&long).len(), 1);
        assert!(in_document(&format!("```text\n{long}\n```")).is_empty());
        assert_eq!(in_document(&format!("```\n```\n{long}")).len(), 1);
    }
}
