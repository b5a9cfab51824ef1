//! `cargo xtask modules`: lists the import cycles between the files of a library or program.
//!
//! File A imports file B if A's code names an item of B by a path, in a `use` or elsewhere. The
//! path begins with `crate`, `self`, `super` or a child module. If the path leads through a
//! re-export, A imports the file that defines the item. The re-export itself is no import. Tests
//! are left out.
//!
//! Files that reach each other by imports form a cycle. A cycle of two files is allowed if
//! [`PAIRS`] gives a reason; a larger cycle is not allowed.
//!
//! Without `--crate` the command also checks that no dependencies between crates of the workspace
//! form a cycle, those of tests and examples included. [`BACK`] has the exception. The step
//! `modules` of `cargo xtask test` does so too.
use crate::syntax;
use anyhow::Result;
use project::{
    say,
    workspace::{self, Package},
};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Expr, Item, Token, Visibility, punctuated::Punctuated, visit::Visit};

/// The cycles that are allowed, all of them pairs: the crate, the two files, and the reason.
const PAIRS: &[(&str, [&str; 2], &str)] = &[
    (
        "blocking-fs",
        ["file", "open_options"],
        "options open a file, and `File::options` returns new ones",
    ),
    (
        "coop-budget",
        ["scope", "watch"],
        "a charge is recorded by the watch in force, which sets the slice of the scope",
    ),
    (
        "net-driver",
        ["time::entry", "time::wheels"],
        "a timer points to its wheel, which holds the timers that are armed",
    ),
    (
        "selvedge-executor",
        ["groups", "groups::turns"],
        "the groups hold each worker's turns, and the turns read the changes of the groups",
    ),
    (
        "selvedge-executor",
        ["observe::dump::request", "observe::task_list"],
        "a task's entry holds the request of a dump, and the poll for it marks the entry",
    ),
    (
        "selvedge-executor",
        ["worker::core", "worker::shared"],
        "a core points to the shared state, which holds the cores that are lent",
    ),
    (
        "task-header",
        ["notified", "owned"],
        "a run may put its task into an `Owned` list, and `Owned::run` runs a task",
    ),
    (
        "task-sync",
        ["notify", "notify::notified"],
        "a `Notify` makes futures, which use its queue",
    ),
];

/// Options of `cargo xtask modules`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Checks only these crates.
    #[arg(long = "crate", value_name = "CRATE", value_delimiter = ',')]
    crates: Vec<String>,
}

/// The one dependency that closes a cycle of crates: its two crates, and the reason.
const BACK: (&str, &str, &str) = (
    "selvedge-macros",
    "selvedge",
    "the examples of the macros run in a runtime",
);

/// Checks all crates, for the step of `cargo xtask test`.
pub(crate) fn check() -> Result<bool> {
    run(&Options { crates: Vec::new() })
}

/// Checks that the dependencies between packages form no cycle. All kinds of dependencies count.
fn has_order(packages: &[Package]) -> bool {
    let needed = |package: &Package| -> BTreeSet<String> {
        let names = package.dependencies.iter().map(|needed| &needed.name);
        let ours = names.filter(|name| packages.iter().any(|package| package.name == **name));
        let ours = ours.filter(|name| (&*package.name, &***name) != (BACK.0, BACK.1));
        ours.cloned().collect()
    };
    let mut left: BTreeMap<_, _> = packages
        .iter()
        .map(|package| (package.name.clone(), needed(package)))
        .collect();
    let is_back = |package: &Package| {
        package.name == BACK.0
            && package
                .dependencies
                .iter()
                .any(|needed| needed.name == BACK.1)
    };
    if !packages.iter().any(is_back) {
        say!("{} does not need {}: remove its reason", BACK.0, BACK.1);
        return false;
    }
    say!("{} -> {}: {}", BACK.0, BACK.1, BACK.2);
    loop {
        let free: Vec<_> = left
            .iter()
            .filter(|(_, needed)| needed.iter().all(|needed| !left.contains_key(needed)))
            .map(|(name, _)| name.clone())
            .collect();
        if free.is_empty() {
            break;
        }
        left.retain(|name, _| !free.contains(name));
    }
    for (name, needed) in &left {
        let back: Vec<_> = needed
            .iter()
            .filter(|name| left.contains_key(*name))
            .collect();
        say!("{name} needs {back:?}, in a cycle of crates or above one: not allowed");
    }
    left.is_empty()
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let (packages, _) = workspace::load()?;
    let mut passed = !options.crates.is_empty() || has_order(&packages);
    for package in workspace::chosen(packages.iter(), &options.crates, "sources")? {
        let mut pairs: Vec<_> = PAIRS.iter().filter(|pair| pair.0 == package.name).collect();
        for root in package.roots() {
            let edges = Imports::of(root)?.edges();
            for cycle in cycles(&edges) {
                let is_cycle = |pair: &&(_, [&str; 2], _)| cycle == pair.1.map(String::from).into();
                let reason = pairs.iter().position(is_cycle).map(|at| pairs.remove(at).2);
                passed &= reason.is_some();
                let files: Vec<_> = cycle.iter().map(String::as_str).collect();
                let verdict = reason.unwrap_or("not allowed");
                say!("{}: {}: {verdict}", package.name, files.join(" <-> "));
                for file in cycle.iter().filter(|_| reason.is_none()) {
                    let inside: Vec<_> = edges[file].intersection(&cycle).cloned().collect();
                    say!("  {file} imports {}", inside.join(", "));
                }
            }
        }
        for (name, pair, _) in pairs {
            passed = false;
            say!("{name}: {pair:?} is no cycle any more: remove its reason");
        }
    }
    Ok(passed)
}

type Path = Vec<String>;

/// The files that each file imports.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// The names that the files of a crate use.
#[derive(Default)]
struct Imports {
    files: BTreeSet<String>,
    modules: BTreeSet<Path>,
    /// The path of the module that is visited. It may be an inline module.
    at: Path,
    names: Vec<Named>,
}

/// A path, as it is written in the module `at`.
struct Named {
    at: Path,
    path: Path,
    /// The name that a `use` gives the path.
    alias: Option<String>,
    exports: bool,
}

impl Imports {
    /// Reads the files of the library or program with this root file.
    fn of(root: &std::path::Path) -> Result<Self> {
        let mut imports = Self::default();
        for module in syntax::modules(root)? {
            imports.files.insert(module.path.join("::"));
            imports.modules.insert(module.path.clone());
            imports.at = module.path;
            imports.visit_file(&module.syntax);
        }
        Ok(imports)
    }

    fn note(&mut self, path: Path, alias: Option<String>, exports: bool) {
        let at = self.at.clone();
        let named = Named {
            at,
            path,
            alias,
            exports,
        };
        self.names.push(named);
    }

    /// Resolves a path that is written in the module `at` to a path from the crate's root. `None`
    /// if the path begins with neither `crate`, `self`, `super` nor a child module of `at`.
    fn absolute(&self, at: &[String], path: &[String]) -> Option<Path> {
        let child = [at, &path[..1]].concat();
        match &*path[0] {
            "crate" => Some(path[1..].into()),
            "self" => Some([at, &path[1..]].concat()),
            "super" if path.len() == 1 => Some(at[..at.len() - 1].into()),
            "super" => {
                let outer = &at[..at.len() - 1];
                let is_above = path[1] == "super";
                if is_above {
                    self.absolute(outer, &path[1..])
                } else {
                    Some([outer, &path[1..]].concat())
                }
            }
            _ => self.modules.contains(&child).then(|| [at, path].concat()),
        }
    }

    /// Returns the edges between files. An edge leads from a file to another one that defines an
    /// item which the first file names.
    fn edges(&self) -> Edges {
        let stands_for = |named: &Named| {
            let name = [&*named.at, &[named.alias.clone()?]].concat();
            Some((name, self.absolute(&named.at, &named.path)))
        };
        let aliases: BTreeMap<_, _> = self.names.iter().filter_map(stands_for).collect();
        let mut edges = Edges::new();
        for named in &self.names {
            let Some(mut path) = self.absolute(&named.at, &named.path) else {
                continue;
            };
            if named.exports {
                continue;
            }
            // Each turn follows one re-export.
            let defined = loop {
                let is_module =
                    |length: &usize| *length == 0 || self.modules.contains(&path[..*length]);
                let length = (0..=path.len()).rev().find(is_module).unwrap_or_default();
                let item = path.get(..length + 1).and_then(|item| aliases.get(item));
                match item {
                    Some(None) => break None,
                    Some(Some(to)) if !path.starts_with(to) => {
                        path = [to, &path[length + 1..]].concat()
                    }
                    _ => break Some(path[..length].to_vec()),
                }
            };
            let (from, to) = (self.file(&named.at), defined.map(|to| self.file(&to)));
            if let Some(to) = to.filter(|to| *to != from && !to.is_empty() && !from.is_empty()) {
                edges.entry(from).or_default().insert(to);
            }
        }
        edges
    }

    /// Returns the file of a module, which may be an inline one.
    fn file(&self, module: &[String]) -> String {
        let lengths = (0..=module.len()).rev();
        let mut paths = lengths.map(|length| module[..length].join("::"));
        paths
            .find(|path| self.files.contains(path))
            .unwrap_or_default()
    }
}

impl Visit<'_> for Imports {
    fn visit_item(&mut self, item: &Item) {
        if syntax::is_built(item) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &syn::ItemMod) {
        self.at.push(module.ident.to_string());
        self.modules.insert(self.at.clone());
        syn::visit::visit_item_mod(self, module);
        self.at.pop();
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        let exports = !matches!(item.vis, Visibility::Inherited);
        for import in syntax::imports(&item.tree) {
            self.note(import.path, import.name, exports);
        }
    }

    fn visit_visibility(&mut self, _: &Visibility) {}

    fn visit_path(&mut self, path: &syn::Path) {
        // A path of one name may be a variable.
        if path.segments.len() > 1 {
            let names = path.segments.iter().map(|part| part.ident.to_string());
            self.note(names.collect(), None, false);
        }
        syn::visit::visit_path(self, path);
    }

    /// Reads the arguments of a macro such as `vec!`. In the tokens of other macros it looks only
    /// for paths from the crate's root.
    fn visit_macro(&mut self, of: &syn::Macro) {
        if let Ok(arguments) = of.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            arguments
                .iter()
                .for_each(|argument| self.visit_expr(argument));
            return;
        }
        for text in of.tokens.to_string().split("crate ::").skip(1) {
            let mut path = vec!["crate".to_owned()];
            for part in text.split("::") {
                let name = part
                    .trim_start()
                    .split(|c: char| !c.is_alphanumeric() && c != '_');
                path.extend(name.map(String::from).next());
                if part
                    .trim()
                    .contains(|c: char| !c.is_alphanumeric() && c != '_')
                {
                    break;
                }
            }
            path.retain(|name| !name.is_empty());
            self.note(path, None, false);
        }
    }
}

/// Returns the sets of files that reach each other by imports.
fn cycles(edges: &Edges) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut all, mut rest) = (BTreeSet::new(), vec![from]);
        while let Some(file) = rest.pop() {
            let new = edges.get(file).into_iter().flatten();
            rest.extend(new.filter(|to| all.insert((*to).clone())));
        }
        all
    };
    let reach: BTreeMap<_, _> = edges.keys().map(|file| (file, reached(file))).collect();
    let cycle = |file: &String| {
        let back = |to: &&String| reach.get(to).is_some_and(|all| all.contains(file));
        reach[file]
            .iter()
            .filter(back)
            .cloned()
            .collect::<BTreeSet<_>>()
    };
    edges
        .keys()
        .map(cycle)
        .filter(|cycle| cycle.len() > 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cycles between these files. Each file is given by its path and its text.
    fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut imports = Imports::default();
        let path = |file: &str| -> Path {
            let names = file.split("::").filter(|name| !name.is_empty());
            names.map(String::from).collect()
        };
        for (file, _) in files {
            imports.files.insert((*file).to_owned());
            imports.modules.insert(path(file));
        }
        for (file, text) in files {
            imports.at = path(file);
            imports.visit_file(&syn::parse_str(text).unwrap());
        }
        let found = cycles(&imports.edges()).into_iter();
        found.map(|cycle| cycle.into_iter().collect()).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_cycle() {
        let files = [
            ("a", "use crate::b::B;"),
            ("b", "use super::c::C;"),
            ("c", "fn f() -> usize { crate::a::A }"),
            ("d", "use crate::a::A;"),
        ];
        assert_eq!(cycles_of(&files), [["a", "b", "c"]]);
    }

    #[test]
    fn name_in_the_arguments_of_a_macro_is_an_import() {
        let files = [
            ("a", "use super::b::B;"),
            ("b", "fn f() { vec![1, super::a::A]; }"),
        ];
        assert_eq!(cycles_of(&files), [["a", "b"]]);
    }

    #[test]
    fn re_export_is_no_import_and_leads_to_the_definition() {
        let files = [("a", "pub use b::B;"), ("a::b", "use crate::c::C;")];
        let c = |text| cycles_of(&[files[0], files[1], ("c", text)]);
        assert_eq!(c("use crate::a::B;"), [["a::b", "c"]]);
        assert!(c("use crate::a::A;").is_empty());
    }
}
