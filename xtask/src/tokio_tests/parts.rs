//! Finds the functions, calls of macros and imports of a test file, and turns those off that do not
//! compile.
//!
//! Tokens are enough for this: many of tokio's tests are arguments of a macro, which a parser of
//! items does not enter. A part that is turned off stays on its lines, behind `#[cfg(any())]`,
//! which never holds.
use crate::messages::Places;
use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::{collections::BTreeSet, ops::Range};

const OFF: &str = "#[cfg(any())] ";

/// A function that is not inside of another one, a call of a macro in parentheses that makes items,
/// or an import.
pub(super) struct Part {
    /// The bytes of the part, with its attributes.
    pub(super) range: Range<usize>,
    /// The name of the function, or the text of the call; `None` for an import.
    pub(super) name: Option<String>,
    pub(super) is_test: bool,
}

/// Returns the functions, calls and imports of a file.
pub(super) fn parts(source: &str) -> Result<Vec<Part>> {
    let tokens: TokenStream = source.parse().map_err(|error| anyhow!("{error}"))?;
    let mut found = Vec::new();
    walk(source, tokens, &mut found);
    Ok(found)
}

fn walk(source: &str, tokens: TokenStream, found: &mut Vec<Part>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    // The index of the first token of the current item.
    let mut begin = 0;
    let mut function = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if word == "fn" => {
                if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                    function = Some(name.to_string());
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                let name = call(&tokens[begin..at]).map(|call| one_line(&source[range(call)]));
                if name.is_some() || is_import(&tokens[begin..at]) {
                    found.push(Part {
                        range: range(&tokens[begin..=at]),
                        name,
                        is_test: false,
                    });
                }
                (begin, function) = (at + 1, None);
            }
            // An attribute of the file or module is no part of the next item.
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Bracket
                    && at == begin + 2
                    && is_punct(&tokens[begin + 1], '!') =>
            {
                begin = at + 1;
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                if is_import(&tokens[begin..at]) {
                    continue;
                }
                match function.take() {
                    Some(name) => found.push(Part {
                        range: range(&tokens[begin..=at]),
                        name: Some(name),
                        is_test: is_test(&tokens[begin..at]),
                    }),
                    None => walk(source, group.stream(), found),
                }
                begin = at + 1;
            }
            _ => (),
        }
    }
}

fn range(tokens: &[TokenTree]) -> Range<usize> {
    let of = |token: &TokenTree| token.span().byte_range();
    of(&tokens[0]).start..of(&tokens[tokens.len() - 1]).end
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// Returns the tokens of a call of a macro, without attributes: a name, `!` and parentheses.
fn call(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let call = tokens.last_chunk::<3>()?;
    let [TokenTree::Ident(_), mark, TokenTree::Group(group)] = call else {
        return None;
    };
    let is_call = is_punct(mark, '!') && group.delimiter() == Delimiter::Parenthesis;
    is_call.then_some(call)
}

fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

fn is_import(tokens: &[TokenTree]) -> bool {
    tokens
        .iter()
        .any(|token| matches!(token, TokenTree::Ident(word) if word == "use"))
}

/// Returns whether an attribute such as `#[test]` or `#[tokio::test(…)]` is among the tokens.
fn is_test(tokens: &[TokenTree]) -> bool {
    tokens.windows(2).any(|pair| {
        let (true, TokenTree::Group(attribute)) = (is_punct(&pair[0], '#'), &pair[1]) else {
            return false;
        };
        let mut words = attribute.stream().into_iter();
        if let Some("cfg_attr") = words.clone().next().map(|word| word.to_string()).as_deref() {
            return attribute.to_string().contains(":: test");
        }
        let path = words.by_ref();
        let path =
            path.take_while(|token| matches!(token, TokenTree::Ident(_)) || is_punct(token, ':'));
        // Some files rename the attribute: `use tokio::test as maybe_tokio_test`.
        path.last()
            .is_some_and(|last| last.to_string().ends_with("test"))
    })
}

/// Turns the parts off that have an error. Returns the new text, and the names of the parts that
/// are off now, except imports. `None` if an error is outside of all parts.
///
/// Of an import with braces, only the name in the braces is left out.
pub(super) fn turn_off(source: &str, errors: &[Places]) -> Result<Option<(String, Vec<String>)>> {
    let parts = parts(source)?;
    let (mut off, mut blank) = (BTreeSet::new(), Vec::new());
    for places in errors {
        let holds = |place: &Range<usize>| {
            let part = parts
                .iter()
                .find(|part| part.range.start <= place.start && place.end <= part.range.end);
            part.map(|part| (part, place.start))
        };
        let Some((part, start)) = places.iter().rev().find_map(holds) else {
            return Ok(None);
        };
        let before = &source[part.range.start..start];
        match part.name.is_none() && before.contains('{') {
            true => blank.push(start..end_of_name(source, start)),
            false => drop(off.insert((part.range.start, part.name.clone()))),
        }
    }
    let mut text = source.to_owned();
    for range in blank {
        project::source::blank(&mut text, range);
    }
    for (start, _) in off.iter().rev() {
        text.insert_str(*start, OFF);
    }
    let names = off.into_iter().filter_map(|(_, name)| name);
    Ok(Some((text, names.collect())))
}

/// Returns the end of a name in the braces of an import: behind its comma, or before the brace.
fn end_of_name(source: &str, start: usize) -> usize {
    let rest = &source[start..];
    match rest.find([',', '}']) {
        Some(end) if rest[end..].starts_with(',') => start + end + 1,
        end => start + end.unwrap_or(rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    const SOURCE: &str = r#"#![cfg(unix)]
use tokio::{a, b};
/// A comment.
#[tokio::test(flavor = "multi_thread")]
async fn first() { fn inner() {} x() }
rt_test! {
    #[test]
    #[cfg(unix)]
    fn second() { y() }
    fn helper() -> u32 { 3 }
}
#[cfg(unix)]
make!(u32,
    z);
"#;

    fn place(text: &str) -> Places {
        let start = SOURCE.find(text).unwrap();
        iter::once(start..start + text.len()).collect()
    }

    #[test]
    fn functions_are_found_with_attributes_and_in_macros() {
        let parts = parts(SOURCE).unwrap();
        let names: Vec<_> = parts.iter().map(|part| part.name.as_deref()).collect();
        let named = ["first", "second", "helper", "make!(u32, z)"].map(Some);
        assert_eq!(names[0], None);
        assert_eq!(names[1..], named);
        let tests: Vec<_> = parts.iter().map(|part| part.is_test).collect();
        assert_eq!(tests, [false, true, true, false, false]);
        assert!(SOURCE[parts[0].range.clone()].starts_with("use tokio"));
        assert!(SOURCE[parts[1].range.clone()].starts_with("/// A comment."));
        assert!(SOURCE[parts[2].range.clone()].starts_with("#[test]"));
    }

    #[test]
    fn functions_with_errors_are_turned_off_on_their_lines() {
        let places = ["x()", "y()", "z"].map(place);
        let (text, names) = turn_off(SOURCE, &places).unwrap().unwrap();
        assert_eq!(names, ["first", "second", "make!(u32, z)"]);
        assert_eq!(text.lines().count(), SOURCE.lines().count());
        assert!(text.contains("\n#[cfg(any())] /// A comment."));
        assert!(text.contains("    #[cfg(any())] #[test]"));
        assert!(text.contains("\n#[cfg(any())] #[cfg(unix)]\nmake!"));
    }

    #[test]
    fn call_of_a_macro_with_an_error_is_turned_off() {
        let places = [place("rt_test"), place("z")].concat();
        let (_, names) = turn_off(SOURCE, &[places]).unwrap().unwrap();
        assert_eq!(names, ["make!(u32, z)"]);
    }

    #[test]
    fn name_that_an_import_does_not_find_is_left_out() {
        let mut errors = [place("a, b")];
        errors[0][0].end -= ", b".len();
        let (text, names) = turn_off(SOURCE, &errors).unwrap().unwrap();
        assert!(names.is_empty());
        assert!(text.contains("use tokio::{   b};"), "{text}");
    }

    #[test]
    fn error_outside_of_all_parts_turns_nothing_off() {
        assert!(turn_off(SOURCE, &[place("rt_test")]).unwrap().is_none());
    }
}
