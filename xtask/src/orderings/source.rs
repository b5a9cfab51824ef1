//! The files of a crate as the compiler sees them: its module tree from the root, without what a `cfg` turns off.
use anyhow::{Context, Result, anyhow, ensure};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use syn::{Attribute, Item, Meta};

/// One file of the crate.
pub(crate) struct Module {
    /// Below the folder of the crate's root.
    pub(crate) file: String,
    /// Its place among the crate's modules.
    pub(crate) path: Vec<String>,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
}

/// What is set when the crate is built for its models. Never `test`: what only tests see is no part of the protocol.
pub(crate) struct Cfg(HashSet<String>);

impl Cfg {
    /// What rustc sets under these flags, and the features.
    pub(crate) fn of(flags: &str, features: &[String]) -> Result<Self> {
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--print", "cfg"])
            .args(flags.split_whitespace())
            .output()
            .context("rustc --print cfg")?;
        ensure!(output.status.success(), "rustc refuses the flags {flags}");
        let said = String::from_utf8_lossy(&output.stdout);
        let own = features.iter().map(|name| format!("feature=\"{name}\""));
        Ok(Self(said.lines().map(str::to_owned).chain(own).collect()))
    }

    #[cfg(test)]
    pub(crate) fn with(set: &[&str]) -> Self {
        Self(set.iter().map(|&name| name.to_owned()).collect())
    }

    fn holds(&self, meta: &Meta) -> bool {
        match meta {
            Meta::Path(path) => path
                .get_ident()
                .is_some_and(|name| name == "true" || self.0.contains(&name.to_string())),
            Meta::NameValue(pair) => match (pair.path.get_ident(), &pair.value) {
                (Some(name), syn::Expr::Lit(value)) => match &value.lit {
                    syn::Lit::Str(value) => self.0.contains(&format!("{name}={:?}", value.value())),
                    _ => false,
                },
                _ => false,
            },
            Meta::List(list) => {
                let inner = list.parse_args_with(
                    syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated,
                );
                let Ok(inner) = inner else { return false };
                let mut inner = inner.iter();
                if list.path.is_ident("all") {
                    inner.all(|meta| self.holds(meta))
                } else if list.path.is_ident("any") {
                    inner.any(|meta| self.holds(meta))
                } else if list.path.is_ident("not") {
                    inner.next().is_some_and(|meta| !self.holds(meta))
                } else {
                    false
                }
            }
        }
    }

    /// Whether what carries these attributes is compiled.
    pub(crate) fn keeps(&self, attributes: &[Attribute]) -> bool {
        attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("cfg"))
            .all(|attribute| attribute.parse_args().is_ok_and(|meta| self.holds(&meta)))
    }

    /// The items of the branch of a `cfg_if!` that is compiled; `None` when it is not one that holds items.
    pub(crate) fn branch(&self, cfg_if: &syn::Macro) -> Option<Vec<Item>> {
        use proc_macro2::TokenTree;
        if cfg_if.path.segments.last()?.ident != "cfg_if" {
            return None;
        }
        let mut taken = true;
        for token in cfg_if.tokens.clone() {
            let TokenTree::Group(group) = token else {
                continue;
            };
            match group.delimiter() {
                proc_macro2::Delimiter::Bracket => {
                    let attribute: Meta = syn::parse2(group.stream()).ok()?;
                    let list = attribute.require_list().ok()?;
                    taken = self.holds(&list.parse_args().ok()?);
                }
                proc_macro2::Delimiter::Brace if taken => {
                    return Some(syn::parse2::<syn::File>(group.stream()).ok()?.items);
                }
                // What comes next is another `if`, or the `else` that is taken.
                proc_macro2::Delimiter::Brace => taken = true,
                _ => return None,
            }
        }
        Some(Vec::new())
    }
}

/// Every file of the crate whose root is `root`.
pub(crate) fn modules(root: &Path, cfg: &Cfg) -> Result<Vec<Module>> {
    let base = root.parent().context("a root has a folder")?;
    let mut found = Vec::new();
    read(root, base, base, Vec::new(), cfg, &mut found)?;
    Ok(found)
}

/// Reads `file`, whose modules are in `folder`.
fn read(
    file: &Path,
    folder: &Path,
    base: &Path,
    path: Vec<String>,
    cfg: &Cfg,
    found: &mut Vec<Module>,
) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let syntax = syn::parse_file(&text).map_err(|error| {
        let line = error.span().start().line;
        anyhow!("{}:{line}: {error}", file.display())
    })?;
    let mut below = Vec::new();
    if cfg.keeps(&syntax.attrs) {
        files_below(&syntax.items, folder, &path, cfg, &mut below);
        let shown = file.strip_prefix(base).unwrap_or(file);
        found.push(Module {
            file: shown.to_string_lossy().replace('\\', "/"),
            path,
            text,
            syntax,
        });
    }
    for (file, folder, path) in below {
        read(&file, &folder, base, path, cfg, found)?;
    }
    Ok(())
}

fn files_below(
    items: &[Item],
    folder: &Path,
    path: &[String],
    cfg: &Cfg,
    below: &mut Vec<(PathBuf, PathBuf, Vec<String>)>,
) {
    for item in items {
        match item {
            Item::Mod(module) if cfg.keeps(&module.attrs) => {
                let name = module.ident.to_string();
                let path = [path, std::slice::from_ref(&name)].concat();
                let own = folder.join(&name);
                if let Some((_, items)) = &module.content {
                    files_below(items, &own, &path, cfg, below);
                } else if let Some(named) = module.attrs.iter().find_map(path_of) {
                    let file = folder.join(named);
                    let folder = file.parent().unwrap_or(folder).to_owned();
                    below.push((file, folder, path));
                } else {
                    let flat = folder.join(format!("{name}.rs"));
                    let file = if flat.exists() {
                        flat
                    } else {
                        own.join("mod.rs")
                    };
                    below.push((file, own, path));
                }
            }
            Item::Macro(found) if cfg.keeps(&found.attrs) => {
                if let Some(items) = cfg.branch(&found.mac) {
                    files_below(&items, folder, path, cfg, below);
                }
            }
            _ => {}
        }
    }
}

/// The file of a `#[path = "..."]`.
fn path_of(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Cfg;
    use syn::parse_quote;

    #[test]
    fn a_cfg_is_judged_as_the_compiler_does() {
        let cfg = Cfg::with(&["selvedge_loom", "feature=\"std\""]);
        assert!(cfg.keeps(&[parse_quote!(#[cfg(all(selvedge_loom, feature = "std"))])]));
        assert!(cfg.keeps(&[parse_quote!(#[cfg(any(test, not(windows)))])]));
        assert!(!cfg.keeps(&[parse_quote!(#[cfg(not(selvedge_loom))])]));
        assert!(!cfg.keeps(&[parse_quote!(#[cfg(all(test, selvedge_loom))])]));
        assert!(cfg.keeps(&[parse_quote!(#[inline])]));
    }

    #[test]
    fn of_a_cfg_if_the_branch_that_holds_is_taken() {
        let mac = parse_quote!(cfg_if::cfg_if! {
            if #[cfg(windows)] { fn a() {} } else if #[cfg(selvedge_loom)] { fn b() {} fn c() {} } else { }
        });
        assert_eq!(Cfg::with(&["selvedge_loom"]).branch(&mac).unwrap().len(), 2);
        assert_eq!(Cfg::with(&["windows"]).branch(&mac).unwrap().len(), 1);
        assert_eq!(Cfg::with(&[]).branch(&mac).unwrap().len(), 0);
    }
}
