//! Tests of the messages and lines of the errors of `select!`, and of the shapes of patterns.
use super::*;
use quote::ToTokens;

/// Returns the words of the error, and its line.
fn error(arguments: &str) -> (String, usize) {
    match Select::parse.parse_str(arguments) {
        Ok(_) => panic!("the parser accepts {arguments}"),
        Err(error) => (error.to_string(), error.span().start().line),
    }
}

#[test]
fn wrong_branch_is_an_error_at_its_line() {
    for (arguments, line, words) in [
        ("", 1, "needs a branch"),
        ("random;\na = b => c", 1, "expected `biased`"),
        ("a = b => c,\nd => e", 2, "expected `=` and a future"),
        ("a = b => c\nd = e => f", 2, "expected `,`"),
        ("a = b,\nc => d", 2, "expected `if`"),
        ("a = b => {}\nelse => {}\nc = d => {}", 3, "last branch"),
        ("a = b => {}\n2 + 3 = d => {}", 2, "expected `=`"),
    ] {
        let (said, at) = error(arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert_eq!(at, line, "{arguments:?}: {said}");
    }
    // The parser finds these errors at the end of its input, where there is no line to compare.
    assert!(error("biased;").0.contains("needs a branch"));
    assert!(error("a = b => c,\nd = e").0.contains("expected `=>`"));
}

#[test]
fn branch_65_is_an_error() {
    let branches = |count| "_ = a => {}\n".repeat(count);
    assert!(Select::parse.parse_str(&branches(64)).is_ok());
    let (said, line) = error(&branches(65));
    assert!(said.contains("at most 64"), "{said}");
    assert_eq!(line, 65);
}

#[test]
fn error_is_the_whole_expansion() {
    let expanded = expand("::selvedge; a = b".parse().unwrap()).to_string();
    assert!(expanded.contains("compile_error"), "{expanded}");
}

/// Returns the lines of the identifiers `name`.
fn lines_of(name: &str, tokens: TokenStream) -> Vec<usize> {
    let mut lines = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => lines.extend(lines_of(name, group.stream())),
            TokenTree::Ident(ident) if ident == name => lines.push(ident.span().start().line),
            _ => {}
        }
    }
    lines
}

#[test]
fn code_made_for_a_future_has_the_line_of_that_future() {
    let source = "::selvedge;\na = first => {}\nb = second(),\nif third => {}";
    let expanded = expand(source.parse().unwrap());
    // The last branch's future is pinned first.
    assert_eq!(lines_of("into_future", expanded.clone()), [3, 2]);
    assert_eq!(lines_of("all_disabled", expanded), [2]);
}

#[test]
fn path_is_that_of_the_caller() {
    let expanded = expand("::other::name; a = b => c".parse().unwrap()).to_string();
    assert!(expanded.contains(":: other :: name :: select :: first_of"));
}

#[test]
fn biased_select_draws_no_random_branch() {
    let expanded = expand("::selvedge; biased; a = b => c".parse().unwrap()).to_string();
    assert!(!expanded.contains("first_of"));
}

#[test]
fn shape_binds_nothing_by_value() {
    for (pattern, shape) in [
        ("Some(mut a)", "match & output { Some (a)"),
        ("ref a", "match & output { a =>"),
        ("None", "match & output { None =>"),
        (
            "(ref mut a, b @ 1..=3)",
            "match & output { (a , b @ 1 ..= 3)",
        ),
        ("A { mut b, .. }", "match & output { A { b , .. }"),
        ("Ok(1) | Err(_)", "match & output { Ok (1) | Err (_)"),
        // Edition 2024 does not allow the patterns below in a match by reference.
        ("Some(&a)", "match output { Some (& _)"),
        ("(&mut _, b, None)", "match output { (& mut _ , _ , None)"),
        ("A { b, c: &d }", "match output { A { b : _ , c : & _ }"),
        ("(a @ &Some(_), _)", "match output { (& Some (_) , _)"),
    ] {
        let branch = format!("{pattern} = future => {{}}");
        let branch: Branch = syn::parse_str(&branch).unwrap();
        let name = Ident::new("output", Span::call_site());
        let comparison = branch.comparison(&name).into_token_stream().to_string();
        assert!(comparison.contains(shape), "{pattern}: {comparison}");
    }
}
