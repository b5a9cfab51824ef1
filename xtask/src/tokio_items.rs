//! `cargo xtask tokio-items`: tokio's public items, and the table that compares them with ours.
//!
//! The items come from tokio's source, which cargo has fetched for the tests. The command reads the
//! modules [`MODULES`], follows each `pub mod` and `pub use`, and looks into tokio's macros
//! `cfg_…!` and `feature!`. [`MADE`] lists the items of tokio's other macros. An item is a
//! function, a type, a variant, an inherent method or a trait's method. Trait impls, fields and
//! `#[doc(hidden)]` are left out.
//!
//! The table is `docs/from-tokio.md`. A row is `` | `path` | same, differs or not there | why | ``.
//! The step checks that
//!
//! 1. each item has one row, and each row is an item;
//! 2. a row that is not `same` says why;
//! 3. at least 95 % of the stable items of `runtime` and `task` are `same`;
//! 4. a test that compiles against both crates names each stable item that is `same`, as
//!    `$rt::task::spawn`: [`TESTS`] says in which file.
//!
//! With `--facade` the command compares the façade with tokio instead: see [`facade`].
use crate::syntax::{Import, attributes, imports, is_public, member_parts, parts};
use anyhow::{Context, Result, ensure};
use proc_macro2::{TokenStream, TokenTree};
use project::{
    say,
    workspace::{self, Package},
};
use quote::ToTokens;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    slice,
};
use syn::{Attribute, ImplItem, Item, ItemImpl, ItemTrait, TraitItem, Type, Visibility};

mod facade;

/// The modules that the table compares.
const MODULES: &[&str] = &[
    "runtime", "task", "net", "time", "signal", "fs", "process", "io", "sync",
];

/// The attributes. Their arguments are items of the table, as `main(name)` and
/// `main(flavor = "local")`.
const ATTRIBUTES: &[&str] = &["main", "test"];

/// Methods that tokio makes by a macro that this command does not expand.
const MADE: &[&str] = &[
    "process::ChildStderr::into_owned_fd",
    "process::ChildStdin::into_owned_fd",
    "process::ChildStdout::into_owned_fd",
];

const TABLE: &str = "docs/from-tokio.md";

/// For each module, the files of the tests that name each stable item which is the same. The first
/// three are only compiled, and the others run on both runtimes.
const TESTS: &[(&str, &str)] = &[
    ("runtime", "guide/tests/same_as_tokio.rs"),
    ("task", "guide/tests/same_as_tokio.rs"),
    ("sync", "guide/tests/same_sync.rs"),
    ("net", "guide/tests/runs_the_same/net.rs"),
    ("time", "guide/tests/runs_the_same/time.rs"),
    ("signal", "guide/tests/runs_the_same/signal.rs"),
    ("fs", "guide/tests/runs_the_same/fs.rs"),
    ("process", "guide/tests/runs_the_same/process.rs"),
    ("io", "guide/tests/runs_the_same/io.rs"),
    ("io", "guide/tests/runs_the_same/utilities.rs"),
    ("main", "guide/tests/runs_the_same/attributes.rs"),
    ("test", "guide/tests/runs_the_same/attributes.rs"),
];

/// Options of `cargo xtask tokio-items`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Lists the items and compares nothing.
    #[arg(long)]
    list: bool,
    /// Compares the items and the features of `tokio-facade` with those of tokio, and writes the
    /// list of items, `tokio-facade/tests/items.rs`.
    #[arg(long, conflicts_with = "list")]
    facade: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    if options.list {
        for (path, marks) in items()? {
            say!("{path}{}", marks.show());
        }
        return Ok(true);
    }
    if options.facade {
        let packages = workspace::load_all()?;
        let items = all_items(&packages)?.into_iter();
        let stable = items.filter(|(_, marks)| !marks.unstable && !marks.windows);
        return facade::check(&packages, stable.map(|(path, _)| path).collect());
    }
    check()
}

/// The conditions under which an item exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Marks {
    unstable: bool,
    deprecated: bool,
    windows: bool,
}

impl Marks {
    fn show(self) -> String {
        let words = [
            (self.unstable, " unstable"),
            (self.deprecated, " deprecated"),
            (self.windows, " windows"),
        ];
        words
            .iter()
            .filter(|word| word.0)
            .map(|word| word.1)
            .collect()
    }

    fn is_stable(self) -> bool {
        !self.unstable && !self.deprecated
    }

    /// Adds the conditions of an item to those of its module. `None` if the item is not built, or
    /// is hidden.
    fn with(mut self, attributes: &[Attribute]) -> Option<Self> {
        for attribute in attributes {
            let text = attribute.meta.to_token_stream().to_string();
            let is_cfg = attribute.path().is_ident("cfg");
            if is_cfg && (text.contains("test)") && !text.contains("not")) {
                return None;
            }
            let is_without_loom = text.contains("not (loom") || text.contains("not (all (loom");
            if is_cfg && text.contains("loom") && !is_without_loom {
                return None;
            }
            if is_hidden(attribute) {
                return None;
            }
            self.deprecated |= attribute.path().is_ident("deprecated");
            if is_cfg {
                self.unstable |=
                    text.contains("tokio_unstable") && !text.contains("not (tokio_unstable");
                self.windows |= text.contains("windows")
                    && !text.contains("not (windows")
                    && !text.contains("unix");
            }
        }
        Some(self)
    }

    /// Adds the condition that one of tokio's macros puts on the items in it. `None` if the macro
    /// leaves these items out.
    fn within(mut self, name: &str) -> Option<Self> {
        match name {
            "cfg_unstable"
            | "cfg_unstable_metrics"
            | "cfg_taskdump"
            | "cfg_trace"
            | "cfg_io_uring"
            | "cfg_schedule_latency" => self.unstable = true,
            "cfg_windows" | "cfg_net_windows" => self.windows = true,
            "cfg_not_wasip1" | "cfg_not_wasi" | "cfg_not_loom" => {}
            name if name.starts_with("cfg_not_") || name == "cfg_loom" => return None,
            name if is_condition(name) => {}
            _ => return None,
        }
        Some(self)
    }

    /// Adds the condition of tokio's macro `feature!`, which is its inner attribute.
    fn with_inner(mut self, attributes: &[Attribute]) -> Self {
        for attribute in attributes {
            let text = attribute.meta.to_token_stream().to_string();
            self.unstable |= text.contains("tokio_unstable");
            self.windows |= text == "windows";
        }
        self
    }
}

/// Returns whether a macro of tokio only puts a condition on the items in it.
fn is_condition(name: &str) -> bool {
    name.starts_with("cfg_") || name == "feature"
}

/// The path of a module in tokio.
type Place = Vec<String>;

/// An item, with its module's conditions and its own.
struct Sited {
    item: Item,
    marks: Marks,
}

/// tokio's source.
#[derive(Default)]
struct Tokio {
    modules: BTreeMap<Place, Vec<Sited>>,
}

impl Tokio {
    fn read(root: &Path) -> Result<Self> {
        let mut tokio = Self::default();
        let source = root.join("src");
        for module in MODULES.iter().chain(&["util", "future"]) {
            let place = vec![(*module).to_owned()];
            tokio.file(&source, &place, module, Marks::default())?;
        }
        ensure!(
            tokio.modules.len() > 50,
            "{} modules are not all",
            tokio.modules.len()
        );
        Ok(tokio)
    }

    /// Reads the module `name` from its file in `folder`, if there is such a file.
    fn file(&mut self, folder: &Path, place: &Place, name: &str, marks: Marks) -> Result<()> {
        let own = folder.join(name);
        let files = [
            own.join("mod.rs"),
            folder.join(format!("{name}.rs")),
            own.clone(),
        ];
        let Some(file) = files.iter().find(|file| file.is_file()) else {
            return Ok(());
        };
        let text = fs::read_to_string(file)?;
        let syntax = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        let inside = match file.file_name().is_some_and(|name| name == "mod.rs") {
            true => file.parent().unwrap_or(folder).to_owned(),
            false => file.with_extension(""),
        };
        self.items(&inside, place, syntax.items, marks)
    }

    fn items(&mut self, folder: &Path, at: &Place, items: Vec<Item>, marks: Marks) -> Result<()> {
        self.modules.entry(at.clone()).or_default();
        for mut item in items {
            // A hidden module is no item, but others may lead to the items in it.
            if let Item::Mod(module) = &mut item
                && module.attrs.iter().any(is_hidden)
            {
                module.attrs.retain(|attribute| !is_hidden(attribute));
                module.vis = Visibility::Inherited;
            }
            let Some(marks) = marks.with(attributes(&item)) else {
                continue;
            };
            let kept = match item {
                Item::Macro(made) => {
                    let name = made.mac.path.to_token_stream().to_string();
                    if is_condition(&name) {
                        if let Some(marks) = marks.within(&name)
                            && let Ok(inner) = syn::parse2::<syn::File>(made.mac.tokens)
                        {
                            let marks = marks.with_inner(&inner.attrs);
                            self.items(folder, at, inner.items, marks)?;
                        }
                        continue;
                    }
                    Item::Macro(made)
                }
                Item::Mod(mut module) => {
                    let name = module.ident.to_string();
                    let place = [&**at, slice::from_ref(&name)].concat();
                    match module.content.take() {
                        Some((_, items)) => {
                            self.items(&folder.join(&name), &place, items, marks)?;
                        }
                        None => {
                            let file = path_attribute(&module.attrs).unwrap_or(name);
                            self.file(folder, &place, &file, marks)?;
                        }
                    }
                    Item::Mod(module)
                }
                item => item,
            };
            let items = self.modules.entry(at.clone()).or_default();
            items.push(Sited { item: kept, marks });
        }
        Ok(())
    }

    /// Finds the module and the item to which a path leads from the module `at`.
    fn resolve(&self, at: &Place, path: &[String], depth: usize) -> Option<(Place, String)> {
        let (first, rest) = path.split_first()?;
        if depth > 16 {
            return None;
        }
        let mut place = at.clone();
        match first.as_str() {
            "crate" => return self.resolve(&Vec::new(), rest, depth + 1),
            "self" => return self.resolve(at, rest, depth + 1),
            "super" => {
                place.pop()?;
                return self.resolve(&place, rest, depth + 1);
            }
            _ => place.push(first.clone()),
        }
        if rest.is_empty() {
            let items = self.modules.get(at)?;
            let is_it = |sited: &Sited| {
                // A private module may have the name of a function that `pub use` exports from it.
                let is_private =
                    matches!(&sited.item, Item::Mod(module) if !is_public(&module.vis));
                !is_private && name_of(&sited.item).as_ref() == Some(first)
            };
            if items.iter().any(is_it) {
                return Some((at.clone(), first.clone()));
            }
        } else if self.modules.contains_key(&place) {
            return self.resolve(&place, rest, depth + 1);
        }
        // The module may import the name.
        for sited in self.modules.get(at)? {
            let Item::Use(used) = &sited.item else {
                continue;
            };
            for Import {
                path: mut target,
                name,
            } in imports(&used.tree)
            {
                match name {
                    None if target == ["super"] && at.is_empty() => continue,
                    None => target.push(first.clone()),
                    Some(name) if name != *first => continue,
                    Some(_) => {}
                }
                target.extend(rest.iter().cloned());
                if target != path
                    && let Some(found) = self.resolve(at, &target, depth + 1)
                {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Returns the inherent methods of each type.
    fn methods(&self) -> BTreeMap<(Place, String), Vec<(String, Marks)>> {
        let mut methods: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, items) in &self.modules {
            for sited in items {
                let Item::Impl(block) = &sited.item else {
                    continue;
                };
                let Type::Path(own) = &*block.self_ty else {
                    continue;
                };
                if block.trait_.is_some() {
                    continue;
                }
                let segments = own.path.segments.iter();
                let path: Vec<_> = segments.map(|segment| segment.ident.to_string()).collect();
                if let Some(of) = self.resolve(place, &path, 0) {
                    of_block(block, sited.marks, methods.entry(of).or_default());
                }
            }
        }
        methods
    }

    /// Adds the public items of the module `at` under the path `public`.
    fn walk(&self, at: &Place, public: &str, marks: Marks, found: &mut Found) {
        for sited in self.modules.get(at).into_iter().flatten() {
            let marks = marks.and(sited.marks);
            match &sited.item {
                Item::Use(used) if is_public(&used.vis) => {
                    for Import { path, name } in imports(&used.tree) {
                        let name = name.unwrap_or("*".into());
                        let Some((place, own)) = self.resolve(at, &path, 0) else {
                            found.add(format!("{public}::{name}"), marks);
                            continue;
                        };
                        self.emit(&place, &own, &format!("{public}::{name}"), marks, found);
                    }
                }
                Item::Mod(module) if is_public(&module.vis) => {
                    let mut place = at.clone();
                    place.push(module.ident.to_string());
                    let path = format!("{public}::{}", module.ident);
                    self.walk(&place, &path, marks, found);
                }
                item if is_exported(item) => {
                    if let Some(name) = name_of(item) {
                        self.emit(at, &name, &format!("{public}::{name}"), marks, found);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds one item, and the variants, methods or items in it.
    fn emit(&self, at: &Place, name: &str, path: &str, marks: Marks, found: &mut Found) {
        let mut place = at.clone();
        place.push(name.to_owned());
        for sited in self.modules.get(at).into_iter().flatten() {
            if name_of(&sited.item).as_deref() != Some(name) {
                continue;
            }
            let own = sited.marks;
            let marks = marks.and(own);
            match &sited.item {
                Item::Mod(module) if !is_public(&module.vis) => {}
                Item::Mod(_) => self.walk(&place, path, marks, found),
                Item::Enum(choice) => {
                    for variant in &choice.variants {
                        if let Some(marks) = marks.with(&variant.attrs) {
                            found.add(format!("{path}::{}", variant.ident), marks);
                        }
                    }
                    found.add(path.to_owned(), marks);
                }
                Item::Trait(of) => {
                    for method in trait_methods(of) {
                        found.add(format!("{path}::{method}"), marks);
                    }
                    found.add(path.to_owned(), marks);
                }
                Item::Use(_) => {}
                _ => found.add(path.to_owned(), marks),
            }
            let methods = found.methods.get(&(at.clone(), name.to_owned()));
            for (method, also) in methods.cloned().unwrap_or_default() {
                found.add(format!("{path}::{method}"), marks.and(also));
            }
        }
    }
}

impl Marks {
    fn and(self, other: Self) -> Self {
        Self {
            unstable: self.unstable | other.unstable,
            deprecated: self.deprecated | other.deprecated,
            windows: self.windows | other.windows,
        }
    }
}

/// The items that were found.
struct Found {
    methods: BTreeMap<(Place, String), Vec<(String, Marks)>>,
    items: BTreeMap<String, Marks>,
}

impl Found {
    /// Adds an item. If several items have that path, this keeps the smallest of their [`Marks`].
    /// So a path counts as stable if one of its items is stable.
    fn add(&mut self, path: String, marks: Marks) {
        let known = self.items.entry(path).or_insert(marks);
        *known = marks.min(*known);
    }
}

fn of_block(block: &ItemImpl, marks: Marks, methods: &mut Vec<(String, Marks)>) {
    let Some(marks) = marks.with(&block.attrs) else {
        return;
    };
    for item in &block.items {
        match item {
            ImplItem::Macro(made) => {
                let name = made.mac.path.to_token_stream().to_string();
                let tokens: &TokenStream = &made.mac.tokens;
                let inner = syn::parse2::<ItemImpl>(quote::quote! { impl A { #tokens } });
                if let (Some(marks), Ok(inner)) = (marks.within(&name), inner) {
                    of_block(&inner, marks.with_inner(&inner.attrs), methods);
                }
            }
            member => {
                if let Some((visibility, name, attributes)) = member_parts(member)
                    && is_public(visibility)
                    && let Some(marks) = marks.with(attributes)
                {
                    methods.push((name.to_string(), marks));
                }
            }
        }
    }
}

/// Returns the names of a trait's methods. tokio puts some of them into a macro, such as
/// `read_impl!`, as signatures.
fn trait_methods(of: &ItemTrait) -> Vec<String> {
    let mut names = Vec::new();
    for item in &of.items {
        match item {
            TraitItem::Fn(method) => names.push(method.sig.ident.to_string()),
            TraitItem::Macro(made) => {
                let tokens: &TokenStream = &made.mac.tokens;
                if let Ok(inner) = syn::parse2(quote::quote! { trait A { #tokens } }) {
                    names.extend(trait_methods(&inner));
                }
            }
            _ => {}
        }
    }
    names
}

/// Returns whether the attribute is `doc(hidden)`. A comment that has the word is `doc = "…"`.
fn is_hidden(attribute: &Attribute) -> bool {
    let text = attribute.meta.to_token_stream().to_string();
    let is_list = attribute.meta.require_list().is_ok();
    attribute.path().is_ident("doc") && is_list && text.contains("hidden")
}

/// Returns the name of an item, or of the struct in `pin_project! { pub struct A {..} }`.
fn name_of(item: &Item) -> Option<String> {
    match item {
        Item::Macro(item) => struct_in(&item.mac.tokens).map(|(name, _)| name),
        item => parts(item).map(|(_, name, _)| name.to_string()),
    }
}

/// Returns the name of the struct in a macro such as `pin_project!`, and whether the struct is
/// public.
fn struct_in(tokens: &TokenStream) -> Option<(String, bool)> {
    let names = tokens.clone().into_iter().filter_map(|token| match token {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    });
    let names: Vec<_> = names.collect();
    let at = names.iter().position(|name| name == "struct")?;
    let is_public = at > 0 && names[at - 1] == "pub";
    Some((names.get(at + 1)?.clone(), is_public))
}

fn is_exported(item: &Item) -> bool {
    match item {
        Item::Macro(item) => struct_in(&item.mac.tokens).is_some_and(|(_, is_public)| is_public),
        item => parts(item).is_some_and(|(visibility, ..)| is_public(visibility)),
    }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let named = attribute.meta.require_name_value().ok()?;
        let text = named.value.to_token_stream().to_string();
        named
            .path
            .is_ident("path")
            .then(|| text.trim_matches('"').to_owned())
    })
}

/// Returns the public items of all modules of tokio, by their paths.
fn all_items(packages: &[Package]) -> Result<BTreeMap<String, Marks>> {
    let tokio = Tokio::read(folder(packages, "tokio")?)?;
    let mut found = Found {
        methods: tokio.methods(),
        items: BTreeMap::new(),
    };
    for module in MODULES {
        let place = vec![(*module).to_owned()];
        tokio.walk(&place, module, Marks::default(), &mut found);
    }
    for path in MADE {
        found.add((*path).to_owned(), Marks::default());
    }
    Ok(found.items)
}

/// Returns the folder of a package.
fn folder<'a>(packages: &'a [Package], name: &str) -> Result<&'a Path> {
    let package = packages.iter().find(|package| package.name == name);
    let package = package.with_context(|| format!("no package {name}"))?;
    package.manifest_path.parent().context("a folder")
}

/// Returns the public items that the table compares, by their paths.
fn items() -> Result<BTreeMap<String, Marks>> {
    let packages = workspace::load_all()?;
    let mut items = all_items(&packages)?;
    let macros = folder(&packages, "tokio-macros")?.join("src/entry.rs");
    let macros = fs::read_to_string(macros)?;
    for argument in arguments(&macros)? {
        let unstable = argument == "unhandled_panic";
        for attribute in ATTRIBUTES {
            let marks = Marks {
                unstable,
                ..Marks::default()
            };
            items.insert(format!("{attribute}({argument})"), marks);
        }
    }
    Ok(items)
}

/// Returns the arguments of tokio's attributes, and the flavors. They come from two messages of
/// errors, which list them.
fn arguments(source: &str) -> Result<Vec<String>> {
    let listed = |before: &str| {
        let (_, rest) = source
            .split_once(before)
            .with_context(|| before.to_owned())?;
        let (list, _) = rest.split_once(".\"").context("the list ends a message")?;
        let quoted = list.split('`').skip(1).step_by(2);
        Ok::<_, anyhow::Error>(quoted.map(str::to_owned).collect::<Vec<_>>())
    };
    let mut all = listed("expected one of: ")?;
    let flavors = listed("The runtime flavors are ")?;
    all.extend(
        flavors
            .iter()
            .map(|flavor| format!("flavor = \"{flavor}\"")),
    );
    ensure!(all.len() > 6, "{all:?} are not all");
    Ok(all)
}

/// A row of the table.
struct Row {
    path: String,
    status: String,
    why: String,
}

fn rows(table: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let path = cells.next()?.trim_end_matches('`').to_owned();
        let status = cells.next()?.trim().to_owned();
        let why = cells.next().unwrap_or_default();
        let why = why.trim_end_matches('|').trim().to_owned();
        Some(Row { path, status, why })
    };
    table.lines().filter_map(row).collect()
}

/// Checks the table.
pub(crate) fn check() -> Result<bool> {
    let (_, root) = workspace::load()?;
    let items = items()?;
    let table = fs::read_to_string(root.join(TABLE)).context(TABLE)?;
    let mut tests = Vec::new();
    for (module, file) in TESTS {
        let text = fs::read_to_string(root.join(file)).context(*file)?;
        tests.push(Test { module, file, text });
    }
    let (complaints, summary) = compare(&items, &rows(&table), &tests);
    for line in &summary {
        say!("{line}");
    }
    for complaint in &complaints {
        say!("{TABLE}: {complaint}");
    }
    Ok(complaints.is_empty())
}

/// A test that names the items of a module.
struct Test {
    module: &'static str,
    file: &'static str,
    text: String,
}

impl Test {
    /// Returns whether the test names an item: by its path, or an argument in an attribute.
    fn names(&self, path: &str) -> bool {
        if let Some((attribute, argument)) = path.split_once('(') {
            let (attribute, argument) =
                (format!("$rt::{attribute}("), argument.trim_end_matches(')'));
            let mut lines = self.text.lines();
            return lines.any(|line| line.contains(&attribute) && line.contains(argument));
        }
        let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$';
        let mut words = self.text.split(|c| !is_of_path(c));
        let path = format!("$rt::{path}");
        words.any(|word| word.trim_end_matches(':') == path)
    }
}

/// Returns the module of an item. The module of an attribute's argument is the attribute.
fn module_of(path: &str) -> &str {
    path.split([':', '(']).next().unwrap_or_default()
}

/// Returns the faults of the table, and a line for each module that counts its stable items which
/// are the same.
fn compare(
    items: &BTreeMap<String, Marks>,
    rows: &[Row],
    tests: &[Test],
) -> (Vec<String>, Vec<String>) {
    let mut complaints = Vec::new();
    let mut seen = BTreeSet::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in rows {
        let Some(marks) = items.get(&row.path) else {
            complaints.push(format!("`{}` is no public item of tokio", row.path));
            continue;
        };
        if !seen.insert(&row.path) {
            complaints.push(format!("`{}` has two rows", row.path));
        }
        let is_same = row.status == "same";
        if !["same", "differs", "not there"].contains(&row.status.as_str()) {
            complaints.push(format!("`{}`: no status is {:?}", row.path, row.status));
        } else if !is_same && row.why.is_empty() {
            complaints.push(format!(
                "`{}` {}: the row does not say why",
                row.path, row.status
            ));
        }
        let module = module_of(&row.path);
        let tests: Vec<_> = tests.iter().filter(|test| test.module == module).collect();
        let is_named = tests.is_empty() || tests.iter().any(|test| test.names(&row.path));
        if !is_named && is_same && marks.is_stable() {
            let files: Vec<_> = tests.iter().map(|test| test.file).collect();
            let (path, files) = (&row.path, files.join(" or "));
            complaints.push(format!("`{path}` is the same, but is not in {files}"));
        }
        if marks.is_stable() {
            let (same, all) = counts.entry(module).or_default();
            *same += usize::from(is_same);
            *all += 1;
        }
    }
    for path in items.keys().filter(|path| !seen.contains(path)) {
        complaints.push(format!("`{path}` has no row"));
    }
    let mut both = (0, 0);
    let mut summary = Vec::new();
    for (module, (same, all)) in &counts {
        summary.push(format!(
            "{module}: {same} of {all} stable items are the same"
        ));
        if ["runtime", "task"].contains(module) {
            both = (both.0 + same, both.1 + all);
        }
    }
    if both.0 * 100 < both.1 * 95 {
        let (same, all) = both;
        complaints.push(format!(
            "only {same} of {all} items of runtime and task are the same"
        ));
    }
    (complaints, summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_tokio_are_found() {
        let items = items().unwrap();
        let marks = |path: &str| items.get(path).copied();
        let stable = Some(Marks::default());
        for path in [
            "runtime::Builder::build",
            "runtime::RuntimeFlavor::CurrentThread",
            "task::JoinSet::join_next",
            "task::LocalKey::scope",
            "task::spawn",
            "sync::Mutex::const_new",
            "sync::Semaphore::acquire",
            "net::TcpStream::connect",
            "net::tcp::OwnedReadHalf",
            "time::Sleep::reset",
            "fs::read_to_string",
            "process::Command::spawn",
            "net::UnixDatagram::recv_from",
            "fs::symlink",
            "fs::OpenOptions::mode",
            "process::ChildStdin::into_owned_fd",
            "io::unix::AsyncFd::readable",
            "io::Interest::remove",
            "io::AsyncReadExt::read_u16_le",
            "io::copy_bidirectional",
            "io::stdin",
            "main(flavor)",
            "test(flavor = \"local\")",
        ] {
            assert_eq!(marks(path), stable, "{path}");
        }
        assert!(marks("task::Builder::spawn").unwrap().unstable);
        assert!(marks("fs::symlink_dir").unwrap().windows);
        let counted = "runtime::RuntimeMetrics::spawned_tasks_count";
        assert!(marks(counted).unwrap().unstable);
        assert_eq!(marks("runtime::Builder::is_current_thread"), None);
        assert_eq!(marks("net::unix::datagram"), None);
        assert!(items.len() > 400, "{} items are not all", items.len());
    }

    #[test]
    fn wrong_table_is_refused() {
        let stable = Marks::default();
        let items = ["task::a", "task::b"]
            .map(|path| (path.to_owned(), stable))
            .into();
        let test = |module, text: &str| Test {
            module,
            file: "test.rs",
            text: text.to_owned(),
        };
        let tests = [
            test("task", "$rt::task::a;"),
            test("main", "#[$rt::main(name = 1)]"),
        ];
        let complaints = |table: &str| compare(&items, &rows(table), &tests).0;
        assert!(tests[1].names("main(name)") && !tests[1].names("main(flavor)"));
        assert!(!tests[0].names("task::aa") && !tests[0].names("task"));
        let right = "| `task::a` | same | |\n";
        let b = |rest: &str| complaints(&format!("{right}| `task::b` | {rest} |\n"));
        assert_eq!(
            b("differs | it is green").len(),
            1,
            "only the share is wrong"
        );
        assert!(b("differs | ")[0].contains("does not say why"));
        assert!(b("like it | ")[0].contains("no status"));
        assert!(b("same | ")[0].contains("is not in"));
        assert!(complaints(right)[0].contains("has no row"));
        assert!(complaints(&format!("{right}{right}"))[0].contains("two rows"));
        assert!(complaints("| `task::c` | same | |\n")[0].contains("no public item"));
    }
}
