//! The step `public`: checks that each public item of `selvedge`, of the executor and of the crates
//! of files and children has an example that runs.
//!
//! An item is public if a path from the crate's root leads to it by `pub mod` and `pub use`. A
//! `pub use` may name an item of a private module, or of another crate of the workspace. The type
//! to which a public type derefs is public, too. So are the public functions and constants of a
//! public type's inherent impls, and the functions and constants of a public trait. The public
//! items that a `macro_rules!` of the same crate makes count as well. Fields, variants, trait impls
//! and `#[doc(hidden)]` items are left out.
//!
//! An item has an example if its own docs have a block that a doctest runs. A function or constant
//! of an impl, or of a trait, may share the example of its type, its trait or its impl block. That
//! example must name the function or constant: as `.name(`, as `Type::name`, or as `fn name` where
//! the example implements a trait.
use crate::syntax::{self, Module, attributes, imports, is_built, is_public, member_parts, parts};
use anyhow::{Context, Result, ensure};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use project::{
    say,
    workspace::{self, Package},
};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, ImplItem, Item, TraitItem, Type, UseTree};

/// The packages whose public items are checked.
const CHECKED: [&str; 4] = [
    "selvedge",
    "selvedge-executor",
    "blocking-fs",
    "child-process",
];

pub(crate) fn run() -> Result<bool> {
    let (packages, _) = workspace::load()?;
    let crates = Crates::read(&packages)?;
    let without = crates.without_example()?;
    for item in &without {
        say!("no example: {item}");
    }
    Ok(without.is_empty())
}

/// Returns the path for which a name stands that a `use` brings into scope.
fn import(item: &Item, name: &str) -> Option<Vec<String>> {
    let Item::Use(used) = item else { return None };
    let mut all = imports(&used.tree).into_iter();
    let found = all.find(|used| used.name.as_deref() == Some(name))?;
    Some(found.path)
}

/// The modules of each crate, by the crate's name in paths.
struct Crates(BTreeMap<String, Vec<Module>>);

/// The attributes of an item, whose docs may have doctests.
#[derive(Clone, Copy)]
struct Docs<'a>(&'a [Attribute]);

/// The path of a module, and its crate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    krate: String,
    path: Vec<String>,
}

/// The items that were checked, and those without an example.
#[derive(Default)]
struct Survey {
    seen: BTreeSet<(Place, Option<String>)>,
    items: usize,
    without: BTreeSet<String>,
}

impl Crates {
    fn read(packages: &[Package]) -> Result<Self> {
        let mut crates = BTreeMap::new();
        for package in packages.iter().filter(|package| package.is_publishable()) {
            let root = package.lib().context("a package without a library")?;
            let mut modules = syntax::modules(root)?;
            for module in &mut modules {
                module.syntax.items.retain(is_built);
            }
            crates.insert(package.name.replace('-', "_"), modules);
        }
        Ok(Self(crates))
    }

    fn without_example(&self) -> Result<BTreeSet<String>> {
        let mut survey = Survey::default();
        for package in CHECKED {
            let before = survey.items;
            self.module(&Place::root(&package.replace('-', "_")), &mut survey)?;
            say!("{package}: {} public items", survey.items - before);
        }
        ensure!(survey.items > 100, "{} items are not all", survey.items);
        Ok(survey.without)
    }

    fn find(&self, place: &Place) -> Option<&Module> {
        let modules = self.0.get(&place.krate)?;
        modules.iter().find(|module| module.path == place.path)
    }

    /// Checks all public items of a public module.
    fn module(&self, place: &Place, survey: &mut Survey) -> Result<()> {
        if !survey.seen.insert((place.clone(), None)) {
            return Ok(());
        }
        let module = self.find(place).with_context(|| place.show())?;
        for item in &module.syntax.items {
            if let Some(name) = name_of_public(item) {
                self.named(place, &name, survey)?;
            } else if let Item::Use(used) = item
                && is_public(&used.vis)
            {
                self.used(place, &used.tree, survey)?;
            }
        }
        survey.check_item(&place.show(), &[Docs(&module.syntax.attrs)], None);
        Ok(())
    }

    /// Checks the items that a `pub use` in the module `here` makes public.
    fn used(&self, here: &Place, tree: &UseTree, survey: &mut Survey) -> Result<()> {
        // The examples of std's items are in std's own docs, and the types of libc are numbers.
        let ours = imports(tree)
            .into_iter()
            .filter(|used| !["std", "libc"].contains(&used.path[0].as_str()));
        for used in ours {
            match (used.name, used.path.split_last()) {
                // A path of one name is that of a crate.
                (Some(_), Some((name, path))) if !path.is_empty() => {
                    self.named(&self.follow(here, path), name, survey)?;
                }
                _ => self.module(&self.follow(here, &used.path), survey)?,
            }
        }
        Ok(())
    }

    /// Returns the module to which a path leads.
    fn follow(&self, here: &Place, path: &[String]) -> Place {
        let next = |at, name: &String| self.step(here, at, name);
        path.iter().fold(here.clone(), next)
    }

    fn step(&self, here: &Place, mut at: Place, name: &str) -> Place {
        let is_crate =
            || at == *here && self.find(&at.below(name)).is_none() && self.0.contains_key(name);
        match name {
            "crate" => Place::root(&at.krate),
            "self" => at,
            "super" => {
                at.path.pop();
                at
            }
            _ if is_crate() => Place::root(name),
            _ => at.below(name),
        }
    }

    /// Checks the item to which a public name in the module `at` refers, wherever the item is.
    fn named(&self, at: &Place, name: &str, survey: &mut Survey) -> Result<()> {
        // A `pub use` of a function does not make a private module of the same name public.
        let mut items = self.items(at);
        let is_module = |item: &Item| {
            matches!(item, Item::Mod(_)) && name_of_public(item).is_some_and(|found| found == name)
        };
        if items.any(is_module) {
            self.module(&at.below(name), survey)?;
        }
        let Some((at, name)) = self.resolve(at, name) else {
            if self.find(&at.below(name)).is_some() {
                return Ok(());
            }
            // A `pub use` of a module.
            let path = self.items(at).find_map(|item| import(item, name));
            let path = path.with_context(|| format!("{} leads nowhere", at.below(name).show()))?;
            let (name, path) = path.split_last().context("a path has a name")?;
            return self.named(&self.follow(at, path), name, survey);
        };
        if !survey.seen.insert((at.clone(), Some(name.clone()))) {
            return Ok(());
        }
        let shown = at.below(&name).show();
        let made: Vec<_> = self
            .items(&at)
            .filter_map(made_by_macro)
            .flatten()
            .collect();
        if let Some(item) = made.iter().find(|item| item.name == name) {
            survey.check_item(&shown, &[Docs(&item.attributes)], None);
        }
        if let Some(item) = self.items(&at).find(|item| is_named(item, &name)) {
            survey.check_item(&shown, &[Docs(attributes(item))], None);
            if let Item::Trait(of) = item {
                survey.members_of_trait(&shown, of);
            }
        }
        self.impls(&at, &name, &shown, survey)
    }

    /// Finds the item to which a name in the module `at` refers: its module, and its own name.
    fn resolve(&self, at: &Place, name: &str) -> Option<(Place, String)> {
        let here = |item: &Item| {
            is_named(item, name)
                || made_by_macro(item).is_some_and(|made| made.iter().any(|one| one.name == name))
        };
        if self.items(at).any(here) {
            return Some((at.clone(), name.into()));
        }
        self.items(at).find_map(|item| {
            let path = import(item, name)?;
            let (name, path) = path.split_last()?;
            self.resolve(&self.follow(at, path), name)
        })
    }

    /// Checks the inherent impls of a type, and the type to which that type derefs.
    fn impls(&self, at: &Place, name: &str, shown: &str, survey: &mut Survey) -> Result<()> {
        let of_type = self.items(at).find(|item| is_named(item, name));
        let of_type = Docs(of_type.map_or(&[], attributes));
        let everywhere = self.0[&at.krate].iter();
        for module in everywhere {
            let here = Place {
                path: module.path.clone(),
                ..at.clone()
            };
            for item in &module.syntax.items {
                let Item::Impl(found) = item else { continue };
                let is_type = is_type(&found.self_ty, name)
                    && self
                        .resolve(&here, name)
                        .is_some_and(|(place, _)| place == *at);
                if !is_type {
                    continue;
                }
                if let Some((_, of, _)) = &found.trait_ {
                    if of.is_ident("Deref") {
                        self.target(&here, found, survey)?;
                    }
                    continue;
                }
                for member in &found.items {
                    let around = [of_type, Docs(&found.attrs)];
                    self.member(&at.krate, shown, member, around, survey);
                }
            }
        }
        Ok(())
    }

    fn target(&self, here: &Place, deref: &syn::ItemImpl, survey: &mut Survey) -> Result<()> {
        for item in &deref.items {
            if let ImplItem::Type(target) = item
                && let Type::Path(path) = &target.ty
            {
                let names = path.path.segments.iter().map(|name| name.ident.to_string());
                let names: Vec<_> = names.collect();
                let (last, path) = names.split_last().context("a path has a name")?;
                // A guard's target may be the type of the data that it guards.
                let mut parameters = deref.generics.type_params();
                if !parameters.any(|parameter| path.is_empty() && parameter.ident == last) {
                    self.named(&self.follow(here, path), last, survey)?;
                }
            }
        }
        Ok(())
    }

    fn member(
        &self,
        krate: &str,
        shown: &str,
        member: &ImplItem,
        [of_type, of_impl]: [Docs<'_>; 2],
        survey: &mut Survey,
    ) {
        if let ImplItem::Macro(called) = member {
            let named = called.mac.path.segments.last();
            let items = self.0[krate].iter().flat_map(|module| &module.syntax.items);
            let rules = items.filter(|item| match (item, &named) {
                (Item::Macro(rules), Some(named)) => rules.ident.as_ref() == Some(&named.ident),
                _ => false,
            });
            for made in rules.filter_map(made_by_macro).flatten() {
                let docs = [Docs(&made.attributes), of_type, of_impl];
                survey.check_item(&format!("{shown}::{}", made.name), &docs, Some(&made.name));
            }
        }
        let parts = member_parts(member).filter(|(vis, ..)| is_public(vis));
        if let Some((_, name, attributes)) = parts {
            let name = name.to_string();
            let docs = [Docs(attributes), of_type, of_impl];
            survey.check_item(&format!("{shown}::{name}"), &docs, Some(&name));
        }
    }

    fn items(&self, at: &Place) -> impl Iterator<Item = &Item> {
        self.find(at)
            .into_iter()
            .flat_map(|module| &module.syntax.items)
    }
}

impl Survey {
    /// Checks one item. In `docs` its own docs come first, and then the docs whose example the item
    /// may share.
    fn check_item(&mut self, shown: &str, docs: &[Docs<'_>], shares: Option<&str>) {
        let Some((own, others)) = docs.split_first() else {
            return;
        };
        if own.are_hidden() {
            return;
        }
        self.items += 1;
        let shared = |docs: &Docs<'_>| {
            shares.is_some_and(|name| docs.examples().iter().any(|code| names(code, name)))
        };
        if own.examples().is_empty() && !others.iter().any(shared) {
            self.without.insert(shown.into());
        }
    }

    fn members_of_trait(&mut self, shown: &str, of: &syn::ItemTrait) {
        for item in &of.items {
            let (name, attributes) = match item {
                TraitItem::Fn(found) => (&found.sig.ident, &found.attrs),
                TraitItem::Const(found) => (&found.ident, &found.attrs),
                _ => continue,
            };
            let docs = [Docs(attributes), Docs(&of.attrs)];
            let name = name.to_string();
            self.check_item(&format!("{shown}::{name}"), &docs, Some(&name));
        }
    }
}

impl Place {
    fn root(krate: &str) -> Self {
        let (krate, path) = (krate.to_owned(), Vec::new());
        Self { krate, path }
    }

    fn below(&self, name: &str) -> Self {
        let path = [self.path.clone(), vec![name.to_owned()]].concat();
        Self {
            path,
            krate: self.krate.clone(),
        }
    }

    fn show(&self) -> String {
        [vec![self.krate.clone()], self.path.clone()]
            .concat()
            .join("::")
    }
}

impl Docs<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        for attribute in self.0.iter().filter(|attribute| is_doc(attribute)) {
            let syn::Meta::NameValue(pair) = &attribute.meta else {
                continue;
            };
            match &pair.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(line),
                    ..
                }) => text += &line.value(),
                // An included README, whose examples run.
                _ => text += "```\n```",
            }
            text.push('\n');
        }
        text
    }

    fn are_hidden(&self) -> bool {
        self.0.iter().any(|attribute| {
            attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| is_doc(attribute) && word == "hidden")
        })
    }

    /// Returns the blocks that a doctest runs.
    fn examples(&self) -> Vec<String> {
        let (text, mut found, mut block) = (self.text(), Vec::new(), None::<(bool, String)>);
        for line in text.lines() {
            match (line.trim().strip_prefix("```"), &mut block) {
                (Some(info), None) => block = Some((runs(info), String::new())),
                (Some(_), Some(_)) => {
                    found.extend(block.take().filter(|(runs, _)| *runs).map(|(_, code)| code));
                }
                (None, Some((_, code))) => {
                    code.push_str(line);
                    code.push('\n');
                }
                (None, None) => {}
            }
        }
        found
    }
}

fn runs(info: &str) -> bool {
    info.split(',').all(|word| {
        matches!(
            word.trim(),
            "" | "rust" | "should_panic" | "standalone_crate"
        )
    })
}

/// Returns whether an example names a member.
fn names(code: &str, name: &str) -> bool {
    let ends = |at: usize| {
        !code[at + name.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
    };
    code.match_indices(name).any(|(at, _)| {
        let before = &code[..at];
        let calls = before.ends_with('.') && code[at + name.len()..].starts_with(['(', ':']);
        ends(at) && (calls || before.ends_with("::") || before.ends_with("fn "))
    })
}

fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

fn is_type(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == name),
        _ => false,
    }
}

fn name_of_public(item: &Item) -> Option<String> {
    let (vis, name, _) = parts(item)?;
    is_public(vis).then(|| name.to_string())
}

/// Returns whether the item has this name and is no module. A module is found by its path instead.
fn is_named(item: &Item, name: &str) -> bool {
    !matches!(item, Item::Mod(_)) && parts(item).is_some_and(|(_, ident, _)| ident == name)
}

/// A public item in the text of a macro.
struct Made {
    name: String,
    attributes: Vec<Attribute>,
}

fn made_by_macro(item: &Item) -> Option<Vec<Made>> {
    let Item::Macro(rules) = item else {
        return None;
    };
    let mut found = Vec::new();
    scan(rules.mac.tokens.clone(), &mut found);
    Some(found)
}

fn scan(tokens: TokenStream, found: &mut Vec<Made>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let (mut docs, mut public, mut kind) = (TokenStream::new(), false, false);
    for (i, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                if let Some(TokenTree::Group(group)) = tokens.get(i + 1)
                    && group.delimiter() == Delimiter::Bracket
                {
                    docs.extend([token.clone(), tokens[i + 1].clone()]);
                }
            }
            TokenTree::Ident(word) if kind => {
                let attributes = syn::parse::Parser::parse2(Attribute::parse_outer, docs);
                found.push(Made {
                    name: word.to_string(),
                    attributes: attributes.unwrap_or_default(),
                });
                (docs, public, kind) = (TokenStream::new(), false, false);
            }
            TokenTree::Ident(word) => match word.to_string().as_str() {
                "pub" => public = true,
                "fn" | "struct" | "enum" | "trait" => kind = public,
                _ => {}
            },
            TokenTree::Group(group) => match group.delimiter() {
                Delimiter::Bracket => {}
                // The brackets of `pub(crate)`.
                Delimiter::Parenthesis if public && !kind => public = false,
                _ => {
                    scan(group.stream(), found);
                    (docs, public, kind) = (TokenStream::new(), false, false);
                }
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Docs, made_by_macro, names};
    use syn::parse_quote;

    #[test]
    fn an_example_is_a_block_that_is_run() {
        let count = |item: syn::ItemFn| Docs(&item.attrs).examples().len();
        let text = "Docs.\n\n```\na();\n```\n```text\nb\n```\n```compile_fail\nc()\n```\n```rust,should_panic\nd()\n```";
        assert_eq!(count(parse_quote! { #[doc = #text] fn f() {} }), 2);
        assert_eq!(
            count(parse_quote! { #[doc = "```no_run\na()\n```"] fn f() {} }),
            0
        );
        assert_eq!(count(parse_quote! { #[inline] fn f() {} }), 0);
    }

    #[test]
    fn an_example_names_what_it_calls() {
        for code in [
            "a.park()",
            "Worker::park",
            "fn park(&mut self)",
            "a.park::<u8>()",
        ] {
            assert!(names(code, "park"), "{code}");
        }
        for code in [
            "a.park_timeout()",
            "a.unpark()",
            "a.park",
            "park()",
            "// park",
        ] {
            assert!(!names(code, "park"), "{code}");
        }
    }

    #[test]
    fn public_items_that_a_macro_makes_are_found_with_docs() {
        let item = parse_quote! {
            macro_rules! make {
                ($($name:ident),*) => {
                    /// ```
                    /// a();
                    /// ```
                    #[derive(Clone)]
                    pub struct Made { $(pub $name: u64,)* }
                    pub(crate) struct Inner;
                    impl Made { pub fn bare(&self) {} }
                };
            }
        };
        let made = made_by_macro(&item).unwrap();
        let found: Vec<_> = made
            .iter()
            .map(|made| (made.name.as_str(), Docs(&made.attributes).examples().len()))
            .collect();
        assert_eq!(found, [("Made", 1), ("bare", 0)]);
    }
}
