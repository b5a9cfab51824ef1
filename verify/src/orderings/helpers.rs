//! Mutants of the calls of fenced functions.
//!
//! A mutant that drops a fence drops it for all callers of the function around it. So one caller
//! for which a model fails would hide another caller that needs no fence, or that no model covers.
//! Here each call has a mutant of its own: that call goes to a copy of the function without the
//! fence. `orderings.toml` lists the functions and the texts of their calls, as no parser tells a
//! call of one function from that of another with the same name.
use super::{
    list::Helper,
    mutants::Mutant,
    scope,
    sites::{File, Found, choice, numbered},
    tree::Edits,
};
use anyhow::{Context, Result, bail, ensure};
use project::source::{closing, is_word};
use std::{collections::HashMap, ops::Range, path::PathBuf};

/// A fenced function, in the text of its crate.
pub(crate) struct Home<'a> {
    helper: &'a Helper,
    file: PathBuf,
    name: &'a str,
    /// The text from the line with `fn` to the closing brace.
    text: String,
    /// The place of the text's end in the file.
    end: usize,
    /// The calls of fences in the text.
    fences: Vec<Range<usize>>,
    /// `file:line:column` of the first fence.
    place: String,
    is_public: bool,
}

impl<'a> Home<'a> {
    /// Finds a listed function among the crates. Fails if the function is not there once, or if it
    /// has no fence.
    pub(crate) fn find(helper: &'a Helper, crates: &[(&str, Found)]) -> Result<Self> {
        let function = &helper.function;
        let files = crates.iter().flat_map(|(_, found)| found.files());
        let mut there = files.flat_map(|file| file.functions(function).map(move |at| (file, at)));
        let (Some((file, range)), None) = (there.next(), there.next()) else {
            bail!("the helper {function} is not there once");
        };
        let code = &file.module.code;
        let line = code[range.end..].find('\n');
        let end = line.map_or(code.len(), |line| range.end + line);
        let code = &code[range.start..end];
        let fences: Vec<_> = fences(code).collect();
        let first = fences.first();
        let first = first.with_context(|| format!("the helper {function} has no fence"))?;
        let name = function.rsplit(['/', ':']).next().unwrap_or_default();
        Ok(Self {
            helper,
            file: file.path.clone(),
            name,
            text: file.module.source[range.start..end].to_owned(),
            end,
            place: file.place(range.start + first.start),
            fences,
            is_public: code.trim_start().starts_with("pub fn"),
        })
    }

    /// Returns the function under another name, and with the choice of no fence.
    fn copy(&self, name: &str, site: &str) -> Result<String> {
        let mut text = self.text.clone();
        for fence in self.fences.iter().rev() {
            let old = &self.text[fence.clone()];
            text.replace_range(fence.clone(), &format!("if !{} {{ {old} }}", choice(site)));
        }
        let old = format!("fn {}", self.name);
        ensure!(text.contains(&old), "{} has no head", self.helper.function);
        Ok(text.replacen(&old, &format!("fn {name}"), 1))
    }
}

/// Returns the calls of fences in the text of a function.
fn fences(code: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    code.match_indices('(').filter_map(|(open, _)| {
        let path = |c: char| is_word(c) || c == ':';
        let begin = code[..open].trim_end_matches(path).len();
        let is_one = scope::last_word(&code[..open]) == "fence" && !code[..begin].ends_with('.');
        is_one.then(|| begin..closing(code, open) + 1)
    })
}

/// Adds the mutants of the calls to the crates. `needs` says whether a crate depends on another
/// one. Returns the functions that are called.
///
/// A function that only one function of its own crate calls gets no mutants here: those of its
/// fence are those of that call.
pub(crate) fn add<'a>(
    crates: &mut [(&str, Found)],
    needs: impl Fn(&str, &str) -> bool,
    homes: &'a [Home<'a>],
    edits: &mut Edits,
) -> Result<Vec<&'a str>> {
    let mut called = Vec::new();
    for home in homes {
        let function = home.helper.function.as_str();
        let (own, _) = function.split_once('/').context("a key names a crate")?;
        let may_call = |name: &str| name == own || home.is_public && needs(name, own);
        let mut counts = HashMap::new();
        let mut sites = Vec::new();
        for (place, (package, found)) in crates.iter().enumerate() {
            let files = found.files().iter().filter(|_| may_call(package));
            for (file, at) in files.flat_map(|file| calls(file, home).map(move |at| (file, at))) {
                let key = format!("{}#{}", file.scope(at.start), home.name);
                sites.push((place, file, at, numbered(key, &mut counts)));
            }
        }
        called.extend((!sites.is_empty()).then_some(function));
        if matches!(&sites[..], [(place, ..)] if crates[*place].0 == own) {
            continue;
        }
        let mut mutants = Vec::new();
        for (number, (place, file, at, site)) in sites.into_iter().enumerate() {
            let name = format!("{}_of_call_{number}", home.name);
            let copy = home.copy(&name, &site)?;
            edits.replace(&home.file, home.end..home.end, &format!("\n\n{copy}"));
            mutants.push((
                place,
                Mutant {
                    line: file.line(at.start),
                    module: file.module.path.clone(),
                    operation: "call".into(),
                    written: None,
                    how: "unfenced".into(),
                    place: Some(home.place.clone()),
                    is_change: true,
                    name: site.clone(),
                    site,
                },
            ));
            edits.replace(&file.path, at, &name);
        }
        for (place, mutant) in mutants {
            crates[place].1.mutants.push(mutant);
        }
    }
    Ok(called)
}

/// Finds the name in each call of a helper, also where the helper is passed as a function.
fn calls<'a>(file: &'a File, home: &'a Home<'a>) -> impl Iterator<Item = Range<usize>> + 'a {
    let code = &file.module.code;
    code.match_indices(home.name).filter_map(move |(at, name)| {
        let end = at + name.len();
        let is_name = !code[..at].ends_with(is_word) && !code[end..].starts_with(is_word);
        let is_call = |call: &String| ends_with(&code[..end], call);
        (is_name && home.helper.calls.iter().any(is_call)).then_some(at..end)
    })
}

/// Returns whether a text ends with a call, where white space does not count. A declaration is no
/// call.
fn ends_with(text: &str, call: &str) -> bool {
    let mut rest = text;
    for c in call.chars().rev() {
        match rest.trim_end().strip_suffix(c) {
            Some(shorter) => rest = shorter,
            None => return false,
        }
    }
    let is_whole = !(call.starts_with(is_word) && rest.ends_with(is_word));
    is_whole && scope::last_word(rest.trim_end()) != "fn"
}

/// Returns the functions of a crate that have a fence and are not listed.
pub(crate) fn unlisted(found: &Found, helpers: &[Helper]) -> Vec<String> {
    let mut all = Vec::new();
    for file in found.files() {
        for fence in fences(&file.module.code) {
            let function = file.scope(fence.start);
            let is_listed = helpers.iter().any(|helper| helper.function == function);
            if !is_listed && !all.contains(&function) {
                all.push(function);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orderings::sites;
    use std::fs;

    const IDLE: &str = "
pub struct Idle;

impl Idle {
    pub fn notify(&self) {
        atomic::fence(SeqCst);
        fence(SeqCst);
        self.0.load(Relaxed);
    }

    fn twice(&self) {
        self.notify();
        self.notify();
    }
}

fn alone() {
    fence(SeqCst);
}

fn calls_alone() {
    alone();
}
";

    const USER: &str = "
fn f(s: &S) {
    s.idle
        .notify();
    s.other.notify();
    fn notify() {}
    my_idle.notify();
    alone();
}
";

    fn crates(root: &std::path::Path) -> Vec<(&'static str, Found)> {
        [("idle", IDLE), ("user", USER)]
            .map(|(name, text)| {
                let folder = root.join(name);
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("lib.rs"), text).unwrap();
                let found = sites::find(name, &folder.join("lib.rs"), root).unwrap();
                (name, found)
            })
            .into()
    }

    fn helper(function: &str, calls: &[&str]) -> Helper {
        Helper {
            function: function.into(),
            calls: calls.iter().map(|call| (*call).to_owned()).collect(),
        }
    }

    #[test]
    fn each_call_of_a_helper_goes_to_a_copy_without_the_fences() {
        let root = tempfile::tempdir().unwrap();
        let mut crates = crates(root.path());
        let helper = helper("idle/lib.rs/Idle::notify", &["self.notify", "idle.notify"]);
        let homes = [Home::find(&helper, &crates).unwrap()];
        let mut edits = Edits::default();
        crates
            .iter_mut()
            .for_each(|(_, found)| found.mutants.clear());
        let called = add(&mut crates, |_, _| true, &homes, &mut edits).unwrap();
        assert_eq!(called, ["idle/lib.rs/Idle::notify"]);
        let all = crates.iter().flat_map(|(_, found)| &found.mutants);
        let all: Vec<_> = all
            .map(|m| (&*m.site, m.line, m.place.as_deref().unwrap()))
            .collect();
        let fence = "idle/lib.rs:6:9";
        assert_eq!(
            all,
            [
                ("idle/lib.rs/Idle::twice#notify", 12, fence),
                ("idle/lib.rs/Idle::twice#notify2", 13, fence),
                ("user/lib.rs/f#notify", 4, fence),
            ]
        );
        let texts = edits.texts(root.path()).unwrap();
        let [(_, idle), (_, user)] = &texts[..] else {
            panic!("{} files", texts.len())
        };
        let choice = "if !::sync_shim::mutant::is_on(\"user/lib.rs/f#notify\")";
        let copy = format!(
            "    pub fn notify_of_call_2(&self) {{\n        {choice} {{ atomic::fence(SeqCst) }};\n        \
             {choice} {{ fence(SeqCst) }};\n        self.0.load(Relaxed);\n    }}"
        );
        assert!(idle.contains(&copy), "{idle}");
        assert!(idle.contains("self.notify_of_call_0();\n        self.notify_of_call_1();"));
        assert!(idle.contains("pub fn notify(&self) {\n        atomic::fence(SeqCst);"));
        assert!(user.contains("s.idle\n        .notify_of_call_2();\n    s.other.notify();"));
        assert!(
            user.contains("fn notify() {}\n    my_idle.notify();"),
            "{user}"
        );
    }

    /// Returns the sites of the mutants.
    fn sites_of(helper: &Helper, needs: bool) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let mut crates = crates(root.path());
        crates
            .iter_mut()
            .for_each(|(_, found)| found.mutants.clear());
        let homes = [Home::find(helper, &crates).unwrap()];
        let called = add(&mut crates, |_, _| needs, &homes, &mut Edits::default()).unwrap();
        assert_eq!(called.is_empty(), helper.calls.is_empty());
        let all = crates.into_iter().flat_map(|(_, found)| found.mutants);
        all.map(|mutant| mutant.site).collect()
    }

    /// Fails if a call is taken for that of a private function, or for that of a function in a
    /// crate that is no dependency.
    #[test]
    fn call_has_a_mutant_unless_it_is_the_only_one_of_its_crate() {
        let notify = "idle/lib.rs/Idle::notify";
        let everywhere = helper(notify, &["self.notify", "idle.notify"]);
        assert_eq!(sites_of(&everywhere, true).len(), 3);
        assert_eq!(sites_of(&everywhere, false).len(), 2);
        let elsewhere = helper(notify, &["idle.notify"]);
        assert_eq!(sites_of(&elsewhere, true), ["user/lib.rs/f#notify"]);
        let alone = helper("idle/lib.rs/alone", &["alone"]);
        assert_eq!(sites_of(&alone, true), [""; 0]);
    }

    #[test]
    fn helper_that_is_gone_or_has_no_fence_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let crates = crates(root.path());
        for function in ["idle/lib.rs/Idle::gone", "idle/lib.rs/Idle::twice"] {
            assert!(Home::find(&helper(function, &[]), &crates).is_err());
        }
    }

    #[test]
    fn fenced_function_that_is_not_listed_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let crates = crates(root.path());
        let listed = [helper("idle/lib.rs/Idle::notify", &[])];
        assert_eq!(unlisted(&crates[0].1, &listed), ["idle/lib.rs/alone"]);
        assert_eq!(unlisted(&crates[1].1, &listed), [""; 0]);
    }
}
