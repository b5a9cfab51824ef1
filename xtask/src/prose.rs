//! The step `prose`: checks that comments, documents and test names are short enough to read.
//!
//! A comment and a line of Markdown have at most 100 columns, a test's name has 60 characters. A
//! table, a line with a link or a web address, and the output of a program may be longer. Generated
//! pages are left out: their writers have tests of their own.
use crate::{links::files, workspace};
use anyhow::Result;
use std::{fs, path::Path};

const COLUMNS: usize = 100;
const NAME: usize = 60;

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

/// Finds the lines of a file, counted from one, that are too long, and says why.
type Find = fn(&str) -> Vec<(usize, &'static str)>;

fn is_generated(file: &Path) -> bool {
    file.starts_with("docs/benchmarks") || file == Path::new("docs/verification.md")
}

fn is_long(line: &str) -> bool {
    let may_be = ["](", "://", "|"];
    line.chars().count() > COLUMNS && !may_be.iter().any(|text| line.contains(text))
}

fn in_source(text: &str) -> Vec<(usize, &'static str)> {
    let mut faults = Vec::new();
    let (mut is_test, mut fenced) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let comment = code.strip_prefix("//");
        let text = comment.map(|text| text.trim_start_matches(['/', '!', ' ']));
        fenced = comment.is_some() && (fenced ^ text.is_some_and(|text| text.starts_with("```")));
        if comment.is_some() && !fenced && is_long(line) {
            faults.push((at + 1, "a comment of more than 100 columns"));
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
    fn long_name_is_found_of_a_test_alone() {
        let function = format!("fn {}() {{}}", "a".repeat(61));
        assert!(in_source(&function).is_empty());
        assert_eq!(in_source(&format!("#[test]\n{function}")).len(), 1);
        assert!(in_source(&format!("#[test]\nfn a() {{}}\n{function}")).is_empty());
    }

    #[test]
    fn long_line_of_a_document_is_found_but_no_output() {
        let long = "word ".repeat(21);
        assert_eq!(in_document(&long).len(), 1);
        assert!(in_document(&format!("```text\n{long}\n```")).is_empty());
        assert_eq!(in_document(&format!("```\n```\n{long}")).len(), 1);
    }
}
