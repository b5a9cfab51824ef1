//! Finds the function around a line of a source file.
//!
//! The sources are formatted (a step of `cargo xtask test` checks that), so indentation tells which
//! items contain a line.
use project::source::{blank, is_word};
use std::ops::Range;

/// Puts blanks in place of the imports.
pub(crate) fn blank_imports(text: &mut String) {
    let mut imports = Vec::new();
    for (begin, line) in lines(text) {
        if words(line).next() == Some("use") {
            let end = text[begin..]
                .find(';')
                .map_or(text.len(), |end| begin + end);
            imports.push(begin..end);
        }
    }
    imports.into_iter().for_each(|range| blank(text, range));
}

/// Returns the lines, each with the offset at which it begins.
fn lines(text: &str) -> impl DoubleEndedIterator<Item = (usize, &str)> {
    let begin = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    text.split('\n').map(move |line| (begin(line), line))
}

/// Returns the words of a line that begins an item, without `pub`, `const` and the like.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let before = |word: &&str| {
        word.starts_with("pub") || ["const", "unsafe", "async", "extern", "default"].contains(word)
    };
    line.split_whitespace().skip_while(before)
}

/// Returns the word at the end of a text.
pub(crate) fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(is_word).len()..]
}

/// Returns the word at the beginning of a text.
fn first_word(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(is_word).len()]
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the names of the items around a line, outermost first: modules, the type of an impl, a
/// trait, functions.
pub(crate) fn scope(text: &str, line: &str) -> String {
    let begin = line.as_ptr() as usize - text.as_ptr() as usize;
    let (mut names, mut limit) = (Vec::new(), indent(line));
    for (at, outer) in lines(&text[..begin]).rev() {
        let depth = indent(outer);
        if outer.trim().is_empty() || depth >= limit {
            continue;
        }
        // Such a line continues an item that begins above it.
        let goes_on = outer.trim_start().starts_with([')', ']', '}', '{', '>'])
            || outer.trim_start().starts_with("where");
        limit = depth + usize::from(goes_on);
        names.extend(named(&text[at..]).filter(|_| !goes_on));
    }
    names.reverse();
    names.join("::")
}

/// Returns the name of the item that begins here.
fn named(text: &str) -> Option<String> {
    let head = text.split_once('{').map_or(text, |(head, _)| head);
    let mut words = words(head);
    let word = words.next()?;
    if word.split('<').next() == Some("impl") {
        return Some(implementor(head));
    }
    let name = first_word(words.next()?).to_owned();
    match word {
        "fn" | "mod" | "trait" => Some(name),
        "macro_rules!" => Some(name + "!"),
        _ => None,
    }
}

/// Returns the name of the type whose impl begins with `head`.
fn implementor(head: &str) -> String {
    let (_, rest) = head.split_once("impl").unwrap_or_default();
    let mut depth = 0;
    let in_generics = |c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth > 0 || c == '>'
    };
    let name = rest.trim_start_matches(in_generics);
    let name = name.rsplit_once(" for ").map_or(name, |(_, name)| name);
    let name = name.trim_start().split(['<', ' ', '\n']).next();
    last_word(name.unwrap_or_default()).to_owned()
}

/// Returns the functions of this name, each from `fn` to its closing brace.
pub(crate) fn functions<'a>(
    text: &'a str,
    name: &'a str,
) -> impl Iterator<Item = Range<usize>> + 'a {
    lines(text).filter_map(move |(begin, line)| {
        let own = words(line).next() == Some("fn");
        let own = own.then(|| named(&text[begin..])).flatten()?;
        let outer = scope(text, line);
        let is_it = match name.rsplit_once("::") {
            None => outer.is_empty() && own == name,
            Some((outside, inside)) => outer == outside && own == inside,
        };
        let ends = |&(at, last): &(usize, &str)| {
            at > begin && indent(last) == indent(line) && last.trim_start().starts_with('}')
        };
        let end = is_it.then(|| lines(text).find(ends)).flatten()?;
        Some(begin..end.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanked_imports_leave_other_code_in_place() {
        let source = "use a::{Acquire,\n Release};\npub(crate) use b;\nfn used() {}\n";
        let mut text = source.to_owned();
        blank_imports(&mut text);
        let (before, after) = text.split_at(source.find("fn").unwrap());
        assert!(!before.contains(char::is_alphabetic), "{text}");
        assert_eq!(after, "fn used() {}\n");
    }

    const NESTED: &str = "
impl<T: Fn<u8>, S> Trait<T> for crate::Outer<T, S>
where
    T: Send,
{
    pub const fn first(
        &self,
    ) -> u8 {
        if self.x {
            fn inner() {
                1
            }
        } else {
            self.a
                .b()
        }
    }
}

fn first() {
    2
}
";

    #[test]
    fn scope_of_a_line_names_the_items_around_it() {
        let scope_of = |word: &str| {
            let (_, line) = lines(NESTED).find(|(_, line)| line.contains(word)).unwrap();
            scope(NESTED, line)
        };
        assert_eq!(scope_of(".b()"), "Outer::first");
        assert_eq!(scope_of("1"), "Outer::first::inner");
        assert_eq!(scope_of("2"), "first");
        assert_eq!(scope_of("pub"), "Outer");
    }

    #[test]
    fn a_function_is_found_by_its_name() {
        let found = |name: &str| {
            functions(NESTED, name)
                .map(|r| &NESTED[r])
                .collect::<Vec<_>>()
        };
        assert!(found("Outer::first")[0].contains("inner") && found("Outer::first").len() == 1);
        assert_eq!(found("first"), ["fn first() {\n    2\n"]);
        assert!(found("second").is_empty());
    }
}
