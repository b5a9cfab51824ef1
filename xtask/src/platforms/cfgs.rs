//! The files with code that a platform has and x86-64 Linux has not, or the other way round.
use anyhow::{Context, Result};
use project::{
    source::closing,
    workspace::{Package, output_of},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};
use syn::{Lit, Meta, Token, parse::Parser, punctuated::Punctuated};
use walkdir::WalkDir;

/// The target of the machine that runs all tests.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The cfgs that the compiler sets for a target.
pub(super) struct Cfgs(BTreeSet<String>);

impl Cfgs {
    pub(super) fn of(target: &str) -> Result<Self> {
        let mut rustc = Command::new("rustc");
        let said = output_of(rustc.args(["--print", "cfg", "--target", target]))?;
        Ok(Self(said.lines().map(str::to_owned).collect()))
    }

    /// Returns whether a predicate holds, with all features. No test is built, nor a model.
    fn holds(&self, predicate: &Meta) -> Result<bool> {
        let name = |of: &Meta| of.path().get_ident().map(ToString::to_string);
        let name = name(predicate).context("a name")?;
        Ok(match predicate {
            Meta::Path(_) => self.0.contains(&name),
            Meta::NameValue(_) if name == "feature" => true,
            Meta::NameValue(pair) => {
                let syn::Expr::Lit(value) = &pair.value else {
                    return Ok(false);
                };
                matches!(&value.lit, Lit::Str(text) if {
                    self.0.contains(&format!("{name}={:?}", text.value()))
                })
            }
            Meta::List(list) => {
                let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
                let parts = parser.parse2(list.tokens.clone())?;
                let parts: Vec<_> = parts.iter().map(|part| self.holds(part)).collect();
                let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
                match &*name {
                    "not" => !parts.contains(&true),
                    "any" => parts.contains(&true),
                    _ => !parts.contains(&false),
                }
            }
        })
    }
}

/// Returns the files of the packages that have a `cfg` whose value on the targets is another one
/// than on x86-64 Linux: for each package, the paths in its folder.
pub(super) fn files<'a>(
    packages: &[&'a Package],
    targets: &[&str],
) -> Result<BTreeMap<&'a str, Vec<String>>> {
    let host = Cfgs::of(HOST)?;
    let targets = targets.iter().map(|target| Cfgs::of(target));
    let targets = targets.collect::<Result<Vec<_>>>()?;
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for package in packages {
        let folder = package.manifest_path.parent().context("a folder")?;
        for entry in WalkDir::new(folder.join("src")).sort_by_file_name() {
            let path = entry?.into_path();
            let file = path.strip_prefix(folder)?.display().to_string();
            let is_test = ["tests", "models"].iter().any(|word| file.contains(word));
            if is_test || path.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            for predicate in predicates(&fs::read_to_string(&path)?) {
                let meta = syn::parse_str::<Meta>(&predicate);
                let meta = meta.with_context(|| format!("{}: {predicate}", path.display()))?;
                let here = host.holds(&meta)?;
                let mut there = targets.iter().map(|target| target.holds(&meta));
                if there.any(|there| there.is_ok_and(|there| there != here)) {
                    found.entry(&*package.name).or_default().push(file);
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Returns the predicates of the `cfg`s in a source file. Lines of comments have none. A predicate
/// with a macro's parameter is left out.
fn predicates(source: &str) -> Vec<String> {
    let lines = source.lines().map(|line| match line.trim_start() {
        line if line.starts_with("//") => "",
        line => line,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for begin in ["#[cfg(", "#![cfg(", "cfg!(", "cfg_attr("] {
        for (at, _) in text.match_indices(begin) {
            let open = at + begin.len() - 1;
            let inner = &text[open + 1..closing(&text, open)];
            found.push(match begin {
                "cfg_attr(" => first(inner).to_owned(),
                _ => inner.trim().trim_end_matches(',').to_owned(),
            });
        }
    }
    found.retain(|predicate: &String| !predicate.contains('$'));
    found
}

/// Returns the text before the first comma that is in no parentheses.
fn first(list: &str) -> &str {
    let mut depth = 0;
    let end = list.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    list[..end.unwrap_or(list.len())].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if code that only another platform has lacks a comment that clippy demands here.
    #[test]
    fn each_unsafe_block_of_any_platform_has_its_comment() {
        let (packages, _) = project::workspace::load().unwrap();
        for package in packages.iter().filter(|package| package.is_publishable()) {
            let folder = package.manifest_path.parent().unwrap().join("src");
            for entry in WalkDir::new(folder) {
                let path = entry.unwrap().into_path();
                if path.extension().is_none_or(|end| end != "rs") {
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap();
                let lines: Vec<_> = text.lines().collect();
                for (at, line) in lines.iter().enumerate() {
                    let code = line.split("//").next().unwrap();
                    let is_unsafe = code.contains("unsafe {") || code.contains("unsafe impl");
                    // One block has its comment inside, in its first line.
                    let near = &lines[at.saturating_sub(12)..lines.len().min(at + 2)];
                    let has_comment = near.iter().any(|line| line.contains("SAFETY:"));
                    assert!(!is_unsafe || has_comment, "{}:{}", path.display(), at + 1);
                }
            }
        }
    }

    #[test]
    fn predicate_of_each_cfg_is_found_but_in_comments() {
        let source = "#[cfg(any(unix, windows))]\n// #[cfg(miri)]\nif cfg!(test) {}\n#[cfg($x)]\n\
                      #[cfg_attr(not(any(a, b)), path = \"x\")]\n";
        assert_eq!(
            predicates(source),
            ["any(unix, windows)", "test", "not(any(a, b))"]
        );
    }

    #[test]
    fn cfgs_of_a_target_are_those_of_its_system() {
        let windows = Cfgs::of("x86_64-pc-windows-gnu").unwrap();
        let holds = |text| windows.holds(&syn::parse_str(text).unwrap()).unwrap();
        assert!(holds(
            "all(windows, target_pointer_width = \"64\", feature = \"x\")"
        ));
        assert!(!holds(
            "any(unix, test, not(windows), target_os = \"linux\")"
        ));
    }
}
