//! Finds the calls of a crate that have mutants, and makes the listed changes of its source.
//!
//! A call is a method of an atomic, or a fence, whose arguments name its orderings. sync-shim gets
//! the place of a call from `std::panic::Location`. The key of a site contains no line: it is
//! `crate/file/function#operation`. A number follows from the function's second call of that
//! operation on. `.failure` follows for the ordering of a failed exchange. An ordering that is not
//! an argument of a call is reported.
use super::{
    list::Listed,
    mutants::{Mutant, Order, orderings_of, weaker},
    scope,
    tree::Edits,
};
use anyhow::{Context, Result};
use project::source::{self, Module, is_word};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    path::{Path, PathBuf},
};

/// The calls, orderings and files found in a crate.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) mutants: Vec<Mutant>,
    /// The places of all calls, including those without a mutant.
    places: HashSet<String>,
    /// Text that looks like an ordering, but is not an argument of a call.
    pub(crate) unreached: Vec<String>,
    files: Vec<File>,
}

pub(super) struct File {
    /// The path from the root of the workspace, as the compiler gets it.
    pub(super) path: PathBuf,
    /// The key of the file: `crate/file`.
    key: String,
    pub(super) module: Module,
}

/// Finds the calls in the crate whose library is `lib`, in the workspace at `root`.
pub(crate) fn find(package: &str, lib: &Path, root: &Path) -> Result<Found> {
    let base = lib.parent().context("a library has a folder")?;
    let mut found = Found::default();
    for mut module in source::modules(lib, "selvedge_loom")? {
        scope::blank_imports(&mut module.code);
        let file = File {
            path: module.file.strip_prefix(root)?.to_owned(),
            key: format!("{package}/{}", module.file.strip_prefix(base)?.display()),
            module,
        };
        file.calls(&mut found);
        found.files.push(file);
    }
    Ok(found)
}

impl Found {
    /// Makes the listed changes in the text of the crate, each as a choice at run time.
    pub(crate) fn change(&mut self, listed: &[&Listed], edits: &mut Edits) -> Result<()> {
        for Listed { site, find, with } in listed {
            let (place, _) = site.split_once('#').context("a site has a name")?;
            let mut there = self.files.iter().flat_map(|file| file.matches(place, find));
            let (Some((file, function, range)), None) = (there.next(), there.next()) else {
                anyhow::bail!(
                    "the mutant {site} names a function or a text that is not there once"
                );
            };
            // Removes `const`: a `const fn` can make no choice at run time, and no listed change
            // needs a `const fn`.
            let head = &file.module.source[function.start..range.start];
            if let Some(at) = head.find("const fn ") {
                let word = function.start + at..function.start + at + "const ".len();
                edits.replace(&file.path, word, "");
            }
            let is_statement = find.trim_end().ends_with([';', '}']);
            let (open, close) = if is_statement { ("", "") } else { ("(", ")") };
            let on = choice(site);
            // The old text stays in its place, as it may have a change of its own.
            let before = format!("{open}if {on} {{ {with} }} else {{ ");
            edits.replace(&file.path, range.start..range.start, &before);
            edits.replace(&file.path, range.end..range.end, &format!(" }}{close}"));
            self.mutants.push(Mutant {
                site: site.clone(),
                line: file.line(range.start),
                module: file.module.path.clone(),
                operation: "structure".into(),
                written: None,
                how: "changed".into(),
                place: None,
                is_change: true,
                name: site.clone(),
            });
        }
        Ok(())
    }

    /// Returns the complaint about a call that a model has reached, if the call should have mutants
    /// and has none. `passed` is sync-shim's record: the call's place, its name and its orderings.
    pub(crate) fn unlisted(&self, passed: &str) -> Option<String> {
        let (place, call) = passed.split_once(' ')?;
        if self.places.contains(place)
            || !Order::ALL[1..]
                .iter()
                .any(|o| call.contains(&o.to_string()))
        {
            return None;
        }
        let mut parts = place.rsplitn(3, ':').skip(1);
        let line: usize = parts.next()?.parse().ok()?;
        let path = Path::new(parts.next()?);
        let file = self.files.iter().find(|file| file.path == path)?;
        // A call in a test is no part of the crate: `code` is blank there.
        let is_code = file
            .module
            .code
            .lines()
            .nth(line - 1)
            .is_some_and(|line| !line.trim().is_empty());
        is_code.then(|| format!("{passed}, which no text names"))
    }

    pub(super) fn files(&self) -> &[File] {
        &self.files
    }
}

/// Returns the condition, in the text of a crate, that a change of the source is chosen.
pub(super) fn choice(name: &str) -> String {
    format!("::sync_shim::mutant::is_on({name:?})")
}

impl File {
    pub(super) fn line(&self, at: usize) -> usize {
        self.module.source[..at].matches('\n').count() + 1
    }

    /// Returns the place in the form of `std::panic::Location`.
    pub(super) fn place(&self, at: usize) -> String {
        let line = self.module.source[..at]
            .rfind('\n')
            .map_or(0, |end| end + 1);
        let column = self.module.source[line..at].chars().count() + 1;
        format!("{}:{}:{column}", self.path.display(), self.line(at))
    }

    /// Finds the text `find` in a function.
    fn matches<'a>(
        &'a self,
        function: &'a str,
        find: &'a str,
    ) -> impl Iterator<Item = (&'a Self, Range<usize>, Range<usize>)> {
        self.functions(function).flat_map(move |function| {
            let places = places(&self.module.code[function.clone()], find);
            places.into_iter().map(move |range| {
                let range = function.start + range.start..function.start + range.end;
                (self, function.clone(), range)
            })
        })
    }

    /// Returns the functions with this key, each from its line with `fn` to the line of its closing
    /// brace.
    pub(super) fn functions<'a>(&'a self, key: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let name = key
            .strip_prefix(&*self.key)
            .and_then(|name| name.strip_prefix('/'));
        name.into_iter()
            .flat_map(|name| scope::functions(&self.module.code, name))
    }

    /// Returns the key of the function around an offset in the text.
    pub(super) fn scope(&self, at: usize) -> String {
        let begin = self.module.code[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = self.module.code[begin..].lines().next().unwrap_or_default();
        format!("{}/{}", self.key, scope::scope(&self.module.code, line))
    }

    fn calls(&self, found: &mut Found) {
        let mut counts = HashMap::new();
        let mut read = HashSet::new();
        for (open, _) in self.module.code.match_indices('(') {
            let name = scope::last_word(&self.module.code[..open]);
            let positions = orderings_of(name);
            let mut begin = open - name.len();
            let is_method = self.module.code[..begin].ends_with('.');
            if positions.is_empty() || is_method == (name == "fence") {
                continue;
            }
            let arguments = source::arguments(&self.module.code, open);
            let orders = positions.iter().map(|&(index, kind)| {
                let argument = arguments.get(index)?.trim_end();
                let word = scope::last_word(argument);
                read.insert(argument.as_ptr() as usize + argument.len() - word.len());
                Some((kind, Order::named(word)?))
            });
            let orders: Option<Vec<_>> = orders.collect();
            let Some(orders) = orders else {
                if name.starts_with("compare_exchange") || name.starts_with("fetch_") {
                    found
                        .unreached
                        .push(format!("{}: {name}", self.place(begin)));
                }
                continue;
            };
            if !is_method {
                let path = |c: char| is_word(c) || c == ':';
                begin = self.module.code[..open].trim_end_matches(path).len();
            }
            let place = self.place(begin);
            found.places.insert(place.clone());
            let site = numbered(format!("{}#{name}", self.scope(begin)), &mut counts);
            let mut add = |index: usize, written: Option<Order>, how: &str| {
                let failure = if index > 0 { ".failure" } else { "" };
                found.mutants.push(Mutant {
                    site: format!("{site}{failure}"),
                    line: self.line(open),
                    module: self.module.path.clone(),
                    operation: name.into(),
                    written,
                    how: how.into(),
                    name: format!("{place} {index} {how}"),
                    place: Some(place.clone()),
                    is_change: false,
                });
            };
            for (index, (kind, written)) in orders.into_iter().enumerate() {
                for how in weaker(kind, written) {
                    add(index, Some(written), how);
                }
            }
            if name.starts_with("compare_exchange") {
                add(0, None, "stored");
            }
        }
        for order in &Order::ALL[1..] {
            let order = order.to_string();
            for (at, _) in self.module.code.match_indices(&order) {
                let (before, after) = (
                    &self.module.code[..at],
                    &self.module.code[at + order.len()..],
                );
                let is_other = before.ends_with(is_word) || after.starts_with(is_word);
                let of_other = before.ends_with("::") && !before.ends_with("Ordering::");
                if !is_other
                    && !of_other
                    && !read.contains(&(self.module.code[at..].as_ptr() as usize))
                {
                    found.unreached.push(format!("{}: {order}", self.place(at)));
                }
            }
        }
    }
}

/// Returns the key of a site: from the second site with this key on, with a number.
pub(super) fn numbered(key: String, counts: &mut HashMap<String, usize>) -> String {
    let count = counts.entry(key.clone()).or_default();
    *count += 1;
    match *count {
        1 => key,
        count => format!("{key}{count}"),
    }
}

/// Finds `find` in `text`; all runs of white space are equal.
fn places(text: &str, find: &str) -> Vec<Range<usize>> {
    let words: Vec<_> = find.split_whitespace().collect();
    let begins = text.match_indices(words[0]);
    let places = begins.filter_map(|(begin, _)| {
        let mut at = begin;
        for word in &words {
            at += text[at..].len() - text[at..].trim_start().len();
            at += text[at..].starts_with(word).then_some(word.len())?;
        }
        Some(begin..at)
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn crate_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Found) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join("a/src").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let found = find("a", &folder.path().join("a/src/lib.rs"), folder.path()).unwrap();
        (folder, found)
    }

    const RING: &str = "
impl<T> Ring<T> {
    fn push(&self) {
        self.tail.store(f(1), Ordering::Release);
        self.head.load(Acquire);
        match self.head.load(Relaxed) {
            _ => self.inner.head.load(Acquire),
        }
    }

    const fn claim(&self) -> usize {
        self.line
            .compare_exchange(\"é\", 2, AcqRel, Acquire)
            .unwrap_or(3)
    }
}

#[cfg(test)]
mod tests {
    fn a() {
        x.load(Acquire);
    }
}
";

    #[test]
    fn each_call_has_its_mutants_by_place() {
        let lib =
            "mod ring;\n#[cfg(test)]\nmod models;\npub fn f() {\n    atomic::fence(SeqCst);\n}\n";
        let (_folder, found) = crate_of(&[("lib.rs", lib), ("ring.rs", RING)]);
        let rows: Vec<_> = found
            .mutants
            .iter()
            .map(|m| format!("{} = {}", m.site, m.name))
            .collect();
        assert_eq!(
            rows,
            [
                "a/lib.rs/f#fence = a/src/lib.rs:5:5 0 AcqRel",
                "a/lib.rs/f#fence = a/src/lib.rs:5:5 0 dropped",
                "a/ring.rs/Ring::push#store = a/src/ring.rs:4:19 0 Relaxed",
                "a/ring.rs/Ring::push#load = a/src/ring.rs:5:19 0 Relaxed",
                "a/ring.rs/Ring::push#load3 = a/src/ring.rs:7:34 0 Relaxed",
                "a/ring.rs/Ring::claim#compare_exchange = a/src/ring.rs:13:14 0 Acquire",
                "a/ring.rs/Ring::claim#compare_exchange = a/src/ring.rs:13:14 0 Release",
                "a/ring.rs/Ring::claim#compare_exchange.failure = a/src/ring.rs:13:14 1 Relaxed",
                "a/ring.rs/Ring::claim#compare_exchange = a/src/ring.rs:13:14 0 stored",
            ]
        );
        assert_eq!(found.unreached, [""; 0]);
        assert_eq!(found.mutants[2].module, "ring");
    }

    #[test]
    fn ordering_that_is_no_argument_is_reported() {
        let lib = "const A: Ordering = Acquire;\nfn f(o: Ordering) {\n    x.fetch_add(1, o);\n    Kind::Release;\n    g(Ordering::Release);\n}\n";
        let (_folder, found) = crate_of(&[("lib.rs", lib)]);
        assert_eq!(
            found.unreached,
            [
                "a/src/lib.rs:3:7: fetch_add",
                "a/src/lib.rs:1:21: Acquire",
                "a/src/lib.rs:5:17: Release"
            ]
        );
    }

    #[test]
    fn call_that_a_model_reaches_but_no_text_names_is_reported() {
        let (_folder, found) = crate_of(&[("lib.rs", RING)]);
        assert_eq!(found.unlisted("a/src/lib.rs:5:19 load [Acquire]"), None);
        assert_eq!(found.unlisted("a/src/lib.rs:7:1 load [Relaxed]"), None);
        assert_eq!(found.unlisted("a/src/lib.rs:21:11 load [Acquire]"), None);
        assert_eq!(found.unlisted("b/src/lib.rs:7:1 load [Acquire]"), None);
        assert!(found.unlisted("a/src/lib.rs:7:1 load [Acquire]").is_some());
    }

    #[test]
    fn change_applies_only_to_its_text_in_its_function() {
        let listed = |function: &str, find: &str| Listed {
            site: format!("a/lib.rs/{function}#x"),
            find: find.into(),
            with: "9".into(),
        };
        let (folder, mut found) = crate_of(&[("lib.rs", RING)]);
        let mut edits = Edits::default();
        found
            .change(&[&listed("Ring::claim", ".unwrap_or(3)")], &mut edits)
            .unwrap();
        for (function, find) in [("Ring::push", ".unwrap_or(3)"), ("Ring::push", "load")] {
            let listed = listed(function, find);
            assert!(found.change(&[&listed], &mut Edits::default()).is_err());
        }
        let files = edits.texts(folder.path()).unwrap();
        let (path, text) = &files[0];
        assert_eq!((path.to_str(), files.len()), (Some("a/src/lib.rs"), 1));
        let choice = "(if ::sync_shim::mutant::is_on(\"a/lib.rs/Ring::claim#x\") { 9 } else { .unwrap_or(3) })";
        assert!(
            text.contains(choice) && !text.contains("const fn"),
            "{text}"
        );
        assert_eq!(found.mutants.last().unwrap().line, 14);
    }
}
