//! The files with code that a platform has and x86-64 Linux has not, or the other way round.
use anyhow::{Context, Result};
use proc_macro2::TokenTree;
use project::{
    source::closing,
    workspace::{Package, output_of},
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use syn::{
    Attribute, Expr, Item, Lit, Meta, Token, parse::Parser, parse_quote, punctuated::Punctuated,
};

/// The target of the machine that runs all tests.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The cfgs that are set for a target.
struct Cfgs(BTreeSet<String>);

impl Cfgs {
    /// Returns the cfgs that the compiler sets, and those of `further`.
    fn of(target: &str, further: &[&str]) -> Result<Self> {
        let mut rustc = Command::new("rustc");
        let said = output_of(rustc.args(["--print", "cfg", "--target", target]))?;
        let all = said.lines().chain(further.iter().copied());
        Ok(Self(all.map(str::to_owned).collect()))
    }

    /// Returns whether a predicate holds. No test is built, nor a model. All features are on but
    /// `std`, which is on if `further` has it.
    fn holds(&self, predicate: &Meta) -> Result<bool> {
        let name = |of: &Meta| of.path().get_ident().map(ToString::to_string);
        let name = name(predicate).context("a name")?;
        Ok(match predicate {
            Meta::Path(_) => self.0.contains(&name),
            Meta::NameValue(pair) => text(&pair.value).is_some_and(|value| {
                let is_feature = name == "feature" && value != "std";
                is_feature || self.0.contains(&format!("{name}={value:?}"))
            }),
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

    /// Returns the values of predicates.
    fn values(&self, predicates: &[Meta]) -> Result<Vec<bool>> {
        let values = predicates.iter().map(|predicate| self.holds(predicate));
        values.collect()
    }

    /// Returns whether a file is compiled.
    fn compiles(&self, source: &Source) -> Result<bool> {
        Ok(!self.values(&source.when)?.contains(&false))
    }
}

/// A source file of a library.
pub(super) struct Source {
    package: String,
    /// The path in the package's folder.
    file: PathBuf,
    /// The file is compiled where all of these predicates hold. They are those of its `mod` item,
    /// and of the `mod` items of the modules around it.
    when: Vec<Meta>,
    /// The predicates in the file.
    inside: Vec<Meta>,
}

/// Returns the source files of the packages' libraries.
pub(super) fn sources(packages: &[&Package]) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for package in packages {
        let folder = package.manifest_path.parent().context("a folder")?;
        let mut reader = Reader {
            package: &package.name,
            folder,
            found: Vec::new(),
        };
        let root = package.lib().context("a library")?;
        reader.read(root, root.parent().context("a folder")?, &[])?;
        found.extend(reader.found);
    }
    Ok(found)
}

/// Returns the files that one of the targets compiles, and whose code differs there from that of
/// x86-64 Linux. Each file has its package's name before it. `further` has the cfgs that are set
/// for each target.
pub(super) fn files<'a>(
    sources: &'a [Source],
    targets: &[&str],
    further: &[&str],
) -> Result<BTreeSet<(&'a str, &'a Path)>> {
    let host = Cfgs::of(HOST, further)?;
    let mut found = BTreeSet::new();
    for target in targets {
        let there = Cfgs::of(target, further)?;
        for source in sources {
            let inside = &source.inside;
            if there.compiles(source)?
                && (!host.compiles(source)? || there.values(inside)? != host.values(inside)?)
            {
                found.insert((&*source.package, &*source.file));
            }
        }
    }
    Ok(found)
}

/// Reads the files of a library.
struct Reader<'a> {
    package: &'a str,
    /// The package's folder.
    folder: &'a Path,
    found: Vec<Source>,
}

impl Reader<'_> {
    /// Reads a file, and those of the modules in it. `below` is the folder of those modules.
    fn read(&mut self, file: &Path, below: &Path, when: &[Meta]) -> Result<()> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        let when = [when, &cfgs(&parsed.attrs)?].concat();
        self.read_modules(&parsed.items, file, below, &when)?;
        let inside = predicates(&text).into_iter().map(|predicate| {
            let meta = syn::parse_str(&predicate);
            meta.with_context(|| format!("{}: {predicate}", file.display()))
        });
        self.found.push(Source {
            package: self.package.to_owned(),
            file: file.strip_prefix(self.folder)?.to_owned(),
            when,
            inside: inside.collect::<Result<_>>()?,
        });
        Ok(())
    }

    fn read_modules(
        &mut self,
        items: &[Item],
        file: &Path,
        below: &Path,
        when: &[Meta],
    ) -> Result<()> {
        for item in items {
            match item {
                Item::Mod(module) => {
                    let mut when = [when, &cfgs(&module.attrs)?].concat();
                    let below = below.join(module.ident.to_string());
                    if let Some((_, items)) = &module.content {
                        self.read_modules(items, file, &below, &when)?;
                        continue;
                    }
                    for (predicate, path) in paths(&module.attrs)? {
                        let named = file.with_file_name(path);
                        let beside = named.parent().context("a folder")?;
                        let chosen = [&*when, std::slice::from_ref(&predicate)].concat();
                        self.read(&named, beside, &chosen)?;
                        when.push(parse_quote!(not(#predicate)));
                    }
                    // Neither file need exist if every build has one of the paths above.
                    let usual = [below.with_extension("rs"), below.join("mod.rs")];
                    if let Some(usual) = usual.iter().find(|usual| usual.exists()) {
                        self.read(usual, &below, &when)?;
                    }
                }
                // A branch of `cfg_if!`. Its predicate is not read, so its modules count as
                // compiled wherever the macro is.
                Item::Macro(call) => {
                    for tree in call.mac.tokens.clone() {
                        if let TokenTree::Group(branch) = tree
                            && let Ok(branch) = syn::parse2::<syn::File>(branch.stream())
                        {
                            self.read_modules(&branch.items, file, below, when)?;
                        }
                    }
                }
                _ => (),
            }
        }
        Ok(())
    }
}

/// Returns the predicates of the attributes `cfg`.
fn cfgs(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let cfgs = attributes.iter().filter(|one| one.path().is_ident("cfg"));
    cfgs.map(|cfg| Ok(cfg.parse_args()?)).collect()
}

/// Returns the paths that attributes give a module, each with the predicate of its `cfg_attr`.
fn paths(attributes: &[Attribute]) -> Result<Vec<(Meta, String)>> {
    let mut found = Vec::new();
    for attribute in attributes {
        let mut parts = vec![parse_quote!(all()), attribute.meta.clone()];
        if attribute.path().is_ident("cfg_attr") {
            let list = Punctuated::<Meta, Token![,]>::parse_terminated;
            parts = attribute.parse_args_with(list)?.into_iter().collect();
        }
        for part in &parts[1..] {
            if let Meta::NameValue(pair) = part
                && pair.path.is_ident("path")
            {
                let path = text(&pair.value).context("a path is a text")?;
                found.push((parts[0].clone(), path));
            }
        }
    }
    Ok(found)
}

/// Returns the text of a literal.
fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
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
    use walkdir::WalkDir;

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
    fn file_is_compiled_where_its_mod_item_and_those_above_say() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (file, text) in [
            (
                "lib.rs",
                "#[cfg(windows)] mod other;\n\
                 #[cfg_attr(not(target_os = \"linux\"), path = \"sys/none.rs\")] mod sys;\n\
                 cfg_if::cfg_if! { if #[cfg(unix)] { mod branch; } }\n\
                 mod inline { mod inner; }",
            ),
            ("other.rs", "mod below;"),
            ("other/below.rs", ""),
            ("sys.rs", "#[cfg(unix)] struct Sys;"),
            ("sys/none.rs", "#[cfg(windows)] mod further;"),
            ("sys/further.rs", ""),
            ("branch/mod.rs", "#[cfg(windows)] struct Branch;"),
            ("inline/inner.rs", "#[cfg(feature = \"std\")] struct Inner;"),
        ] {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let mut reader = Reader {
            package: "p",
            folder,
            found: Vec::new(),
        };
        reader.read(&folder.join("lib.rs"), folder, &[]).unwrap();
        let found = |target| {
            let files = files(&reader.found, &[target], &[]).unwrap().into_iter();
            files.map(|(_, file)| file.display().to_string())
        };
        let on_windows: Vec<_> = found("x86_64-pc-windows-gnu").collect();
        assert_eq!(
            on_windows,
            [
                "branch/mod.rs",
                "lib.rs",
                "other/below.rs",
                "other.rs",
                "sys/further.rs",
                "sys/none.rs"
            ]
        );
        let on_freebsd: Vec<_> = found("x86_64-unknown-freebsd").collect();
        assert_eq!(on_freebsd, ["lib.rs", "sys/none.rs"]);
    }

    #[test]
    fn cfgs_of_a_target_are_those_of_its_system() {
        let windows = Cfgs::of("x86_64-pc-windows-gnu", &[]).unwrap();
        let holds = |text| windows.holds(&syn::parse_str(text).unwrap()).unwrap();
        assert!(holds(
            "all(windows, target_pointer_width = \"64\", feature = \"x\")"
        ));
        assert!(!holds(
            "any(unix, test, not(windows), target_os = \"linux\")"
        ));
    }
}
