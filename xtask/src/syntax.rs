//! Reads the items of parsed sources: their names, attributes and imports.
use anyhow::{Context, Result};
use project::source;
use std::path::Path;
use syn::{Attribute, Ident, ImplItem, Item, UseTree, Visibility};

/// A module of a crate, with its path in the crate.
pub(crate) struct Module {
    pub(crate) path: Vec<String>,
    pub(crate) syntax: syn::File,
}

/// Parses the modules of the library or program with this root file, except those that a `cfg`
/// leaves out.
pub(crate) fn modules(root: &Path) -> Result<Vec<Module>> {
    let parsed = source::modules(root, "")?.into_iter().map(|module| {
        let names = module.path.split("::").filter(|name| !name.is_empty());
        let syntax = syn::parse_file(&module.source);
        Ok(Module {
            path: names.map(str::to_owned).collect(),
            syntax: syntax.with_context(|| module.file.display().to_string())?,
        })
    });
    parsed.collect()
}

/// Returns the visibility, the name and the attributes of an item that has all three.
pub(crate) fn parts(item: &Item) -> Option<(&Visibility, &Ident, &[Attribute])> {
    Some(match item {
        Item::Const(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Enum(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Fn(item) => (&item.vis, &item.sig.ident, &item.attrs),
        Item::Mod(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Static(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Struct(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Trait(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Type(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Union(item) => (&item.vis, &item.ident, &item.attrs),
        _ => return None,
    })
}

/// Returns the visibility, the name and the attributes of a function or constant of an impl.
pub(crate) fn member_parts(member: &ImplItem) -> Option<(&Visibility, &Ident, &[Attribute])> {
    match member {
        ImplItem::Fn(found) => Some((&found.vis, &found.sig.ident, &found.attrs)),
        ImplItem::Const(found) => Some((&found.vis, &found.ident, &found.attrs)),
        _ => None,
    }
}

/// Returns the attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        item => parts(item).map_or(&[], |(_, _, attributes)| attributes),
    }
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns whether an item has no `cfg` that leaves it out. All features are on, `test` is off.
pub(crate) fn is_built(item: &Item) -> bool {
    attributes(item).iter().all(|attribute| {
        let list = attribute.meta.require_list().ok();
        let list = list.filter(|list| list.path.is_ident("cfg"));
        list.is_none_or(|list| source::holds(&list.tokens.to_string(), ""))
    })
}

/// A name that a `use` brings into scope, or a glob.
pub(crate) struct Import {
    /// The path for which the name stands, without the `*` of a glob or a last `self`.
    pub(crate) path: Vec<String>,
    /// The name; `None` for a glob, which brings all names of the path.
    pub(crate) name: Option<String>,
}

/// Returns the names that a `use` brings into scope.
pub(crate) fn imports(tree: &UseTree) -> Vec<Import> {
    fn add(tree: &UseTree, before: &[String], all: &mut Vec<Import>) {
        let with = |name: &Ident| [before, &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(part) => return add(&part.tree, &with(&part.ident), all),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| add(tree, before, all));
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned())
            }
            UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(name) => (with(&name.ident), Some(name.rename.to_string())),
            UseTree::Glob(_) => (before.to_vec(), None),
        };
        all.push(Import { path, name });
    }
    let mut all = Vec::new();
    add(tree, &[], &mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn imports_have_their_paths_and_names() {
        let used: syn::ItemUse = parse_quote! { use a::{self, b::{c as d, e}, f::*}; };
        let shown = |import: Import| {
            let name = import.name.unwrap_or("*".into());
            format!("{} {name}", import.path.join("::"))
        };
        let found: Vec<_> = imports(&used.tree).into_iter().map(shown).collect();
        assert_eq!(found, ["a a", "a::b::c d", "a::b::e e", "a::f *"]);
    }

    #[test]
    fn an_import_for_a_build_without_a_feature_is_left_out() {
        assert!(is_built(&parse_quote! { pub use a::b; }));
        assert!(is_built(
            &parse_quote! { #[cfg(feature = "c")] pub use a::b; }
        ));
        assert!(!is_built(
            &parse_quote! { #[cfg(not(feature = "c"))] pub use a::b; }
        ));
        assert!(is_built(
            &parse_quote! { #[cfg(all(feature = "c", not(any(d, e))))] pub use a::b; }
        ));
    }
}
