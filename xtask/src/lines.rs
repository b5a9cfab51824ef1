//! The step `lines`: the executor stays a thin assembly. What outgrows it belongs in a part.
//!
//! A line of code is one of its modules that is not empty and no comment. Modules that only tests or models have don't count, nor does what else a `cfg`
//! keeps for tests: from the attribute to the end of its item, as rustfmt sets it.
use crate::{
    orderings::source::{self, Cfg},
    workspace,
};
use anyhow::{Context, Result};

const PACKAGE: &str = "selvedge";

/// The most that it may have.
const MOST: usize = 2500;

pub(crate) fn run() -> Result<bool> {
    let (packages, _) = workspace::load()?;
    let package = packages.iter().find(|package| package.name == PACKAGE);
    let package = package.context("no executor")?;
    let cfg = Cfg::of("", &package.features())?;
    let modules = source::modules(package.lib().context("no library")?, &cfg)?;
    let lines: usize = modules
        .iter()
        .map(|module| lines_of_code(&module.text))
        .sum();
    say!("{PACKAGE}: {lines} lines of code; the limit is {MOST}");
    Ok((1..=MOST).contains(&lines))
}

fn lines_of_code(text: &str) -> usize {
    let mut code = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let begins = line.trim_start();
        if begins.starts_with("#[cfg(") && begins.contains("test") {
            let indent = &line[..line.len() - begins.len()];
            let ends = |line: &&str| {
                line.strip_prefix(indent).is_some_and(|rest| {
                    !rest.starts_with([' ', '#', '/']) && rest.ends_with([';', '}', ','])
                })
            };
            lines.find(ends);
        } else if !begins.is_empty() && !begins.starts_with("//") {
            code += 1;
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::lines_of_code;

    #[test]
    fn comments_and_what_tests_see_are_no_code() {
        let text = "//! Docs.\n\nuse a::b;\n/// Docs.\nfn f() {\n    // Why.\n    g();\n    #[cfg(test)]\n    h();\n}\n";
        assert_eq!(lines_of_code(text), 4);
        let text = "#[cfg(all(test, not(x)))]\n#[expect(a)]\nfn f() {\n    if g() {}\n\n    h();\n}\nmod c;\n";
        assert_eq!(lines_of_code(text), 1);
        assert_eq!(
            lines_of_code("#[cfg(test)]\nmod tests;\n#[cfg(feature = \"a\")]\nmod c;"),
            2
        );
    }
}
