use super::{Found, rewrite};
use crate::orderings::{
    list::Listed,
    source::{Cfg, Module},
};

fn found(text: &str, listed: &[Listed]) -> Found {
    let module = Module {
        file: "a.rs".into(),
        path: vec!["a".into()],
        text: text.into(),
        syntax: syn::parse_file(text).unwrap(),
    };
    rewrite("c", &[module], &Cfg::with(&["model"]), listed).unwrap()
}

/// Key and mutants of each site that has some, and the new text, which must parse.
fn rewritten(text: &str) -> (Vec<(String, String)>, String) {
    let found = found(text, &[]);
    let new = found.files[0].1.clone();
    syn::parse_file(&new).unwrap_or_else(|error| panic!("{error}: {new}"));
    let mutated = found.sites.iter().filter(|site| !site.mutants.is_empty());
    (
        mutated
            .map(|site| (site.key.clone(), site.mutants.join(" ")))
            .collect(),
        new,
    )
}

fn keys(text: &str) -> Vec<(String, String)> {
    rewritten(text).0
}

fn pair(key: &str, mutants: &str) -> (String, String) {
    (format!("c/a.rs/{key}"), mutants.into())
}

#[test]
fn each_operation_is_weakened_a_step_to_what_it_allows() {
    let text = "use o::Ordering::*; impl A { fn f(&self) {
        self.x.load(SeqCst);
        self.x.swap(1, SeqCst);
        self.x.fetch_add(1, AcqRel);
        self.x.load(Relaxed);
        self.x.store(1, SeqCst);
    } }";
    let expected = [
        pair("A::f#1", "Acquire"),
        pair("A::f#2", "AcqRel"),
        pair("A::f#3", "Acquire Release"),
        pair("A::f#5", "Release"),
    ];
    assert_eq!(keys(text), expected);
}

#[test]
fn an_exchange_has_two_orderings_of_which_the_second_is_a_loads() {
    let text = "fn f() { x.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok(); }";
    let (keys, new) = rewritten(text);
    let expected = [
        pair("f#exchange1", "stored"),
        pair("f#1", "AcqRel"),
        pair("f#2", "Acquire"),
    ];
    assert_eq!(keys, expected);
    assert!(
        new.contains("x.store(1, crate::__orderings::RELEASE); Ok(0)"),
        "{new}"
    );
    assert!(
        new.contains("pick(1, Ordering::SeqCst), crate::__orderings::pick(2, Ordering::SeqCst))"),
        "{new}"
    );
}

#[test]
fn a_fence_is_also_dropped() {
    let (keys, new) =
        rewritten("use o::{Ordering::SeqCst, fence}; fn f() { fence(SeqCst); o::fence(SeqCst) }");
    assert_eq!(
        keys,
        [pair("f#1", "AcqRel dropped"), pair("f#2", "AcqRel dropped")]
    );
    assert!(new.contains("crate::__orderings::fenced(0, fence, SeqCst); crate::__orderings::fenced(1, o::fence, SeqCst)"), "{new}");
}

#[test]
fn an_ordering_handed_to_a_helper_is_weakened_for_what_the_helper_does() {
    let text = "use o::Ordering::{self, *};
        fn head(&self, order: Ordering) { self.x.load(order) }
        fn f(&self) { self.head(SeqCst); self.other(SeqCst); }";
    assert_eq!(keys(text), [pair("f#1", "Acquire"), pair("f#2", "Relaxed")]);
}

#[test]
fn an_ordering_named_by_a_constant_is_found() {
    let text =
        "use o::Ordering; const STRONG: Ordering = Ordering::AcqRel; fn f() { x.swap(1, STRONG); }";
    assert_eq!(keys(text), [pair("f#1", "Acquire Release")]);
}

#[test]
fn an_imported_name_is_followed() {
    let text = "use o::Ordering::{self as O, Acquire as A}; fn f() { x.load(A); x.load(O::Acquire); x.load(Release); }";
    assert_eq!(keys(text), [pair("f#1", "Relaxed"), pair("f#2", "Relaxed")]);
}

#[test]
fn an_ordering_in_a_macros_tokens_is_found() {
    let text = "use o::Ordering::*; fn f() { assert_eq!(x.load(Acquire), y, \"{}\", x.swap(1, AcqRel)); m!(fence(SeqCst)); }
        macro_rules! look { ($x:expr) => { $x.load(Acquire) }; }";
    let (keys, new) = rewritten(text);
    let expected = [
        pair("f#1", "Relaxed"),
        pair("f#2", "Acquire Release"),
        pair("f#3", "AcqRel dropped"),
        pair("look!#1", "Relaxed"),
    ];
    assert_eq!(keys, expected);
    assert!(
        new.contains("m!(crate::__orderings::fenced(2, fence, SeqCst))"),
        "{new}"
    );
    assert!(
        new.contains("$x.load($crate::__orderings::pick(3, Acquire))"),
        "{new}"
    );
}

#[test]
fn what_is_not_compiled_for_the_model_has_no_site() {
    let text = "use o::Ordering::*;
        #[cfg(test)] mod tests { fn a() { x.load(Acquire); } }
        #[cfg(not(model))] fn b() { x.load(Acquire); }
        cfg_if! { if #[cfg(model)] { fn c() { x.load(Acquire); } } else { fn d() { x.load(Acquire); } } }
        impl A { #[cfg(other)] fn e() { x.load(Acquire); } }
        fn g() { #[cfg(other)] x.load(Acquire); #[cfg(other)] let a = x.load(Acquire); }";
    assert_eq!(keys(text), [pair("c#1", "Relaxed")]);
}

#[test]
fn other_uses_of_the_words_are_no_orderings() {
    let text = "use d::Duty::{self, Release}; use std::cmp::Ordering;
        fn f() { g(Ordering::Less); match x { Duty::Release => h(Duty::Acquire), } }";
    assert_eq!(rewritten(text), (Vec::new(), text.to_owned()));
}

#[test]
fn stores_that_follow_each_other_are_swapped_and_others_are_not() {
    let text = "use o::Ordering::*; fn f() { a.store(1, Relaxed); b.store(2, Relaxed); c.store(3, Relaxed); g(); d.store(4, Relaxed); }";
    let (keys, new) = rewritten(text);
    assert_eq!(
        keys,
        [pair("f#swap1", "swapped"), pair("f#swap2", "swapped")]
    );
    assert!(
        new.contains("{ b.store(2, Relaxed); a.store(1, Relaxed); c.store(3, Relaxed); }"),
        "{new}"
    );
    assert!(
        new.contains("{ a.store(1, Relaxed); c.store(3, Relaxed); b.store(2, Relaxed); }"),
        "{new}"
    );
}

#[test]
fn a_key_outlives_lines_above_and_other_functions() {
    let text = "use o::Ordering::*; impl A { fn f(&self) { self.x.load(Acquire); } }";
    let moved =
        format!("// New.\nuse o::Ordering::Release;\nfn e() {{ x.store(1, Release); }}\n\n{text}");
    assert_eq!(keys(&moved).last(), keys(text).last());
}

#[test]
fn a_listed_change_is_found_by_its_words_and_must_be_there_once() {
    let entry = |find: &str| Listed {
        site: "c/a.rs/f#recheck".into(),
        find: find.into(),
        with: "false".into(),
    };
    let text = "fn f() {\n    let a = x.is_empty()\n        && y;\n    y.is_empty();\n}";
    let found = found(text, &[entry("x.is_empty() && y")]);
    assert_eq!(found.sites[0].line, 2);
    assert!(
        found.files[0].1.contains(
            "(if crate::__orderings::on(0) { false } else { x.is_empty()\n        && y })"
        )
    );
    for gone in ["z", "is_empty()"] {
        let module = Module {
            file: "a.rs".into(),
            path: Vec::new(),
            text: text.into(),
            syntax: syn::parse_file(text).unwrap(),
        };
        assert!(rewrite("c", &[module], &Cfg::with(&[]), &[entry(gone)]).is_err());
    }
}

#[test]
fn a_function_with_a_listed_change_is_not_const() {
    let entry = Listed {
        site: "c/a.rs/f#off".into(),
        find: "x + 1".into(),
        with: "x".into(),
    };
    let text = "const fn f(x: u8) -> u8 { x + 1 } const fn g() {}";
    let found = found(text, &[entry]);
    assert_eq!(
        found.files[0].1,
        " fn f(x: u8) -> u8 { (if crate::__orderings::on(0) { x } else { x + 1 }) } const fn g() {}"
    );
}

#[test]
fn what_cannot_be_a_choice_is_said() {
    let text = "use o::Ordering::*; const fn f() { g(Acquire); } fn h() { x.fetch_add(1, if y { Acquire } else { Release }); }";
    let said = found(text, &[]).unreached;
    assert_eq!(said.len(), 2, "{said:?}");
}
