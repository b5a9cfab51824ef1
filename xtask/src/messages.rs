//! The messages that cargo writes as JSON: diagnostics of the compiler, and built programs.
use serde::Deserialize;
use std::{iter, ops::Range, path::PathBuf};

/// The bytes that an error points at. If a macro makes the code in question, there are several such
/// places: those in the macro come before that of the macro's call. Of the places that lie in a
/// part, the last one counts.
pub(crate) type Places = Vec<Range<usize>>;

/// A message of cargo: a diagnostic of the compiler, or a target that is built.
#[derive(Deserialize)]
pub(crate) struct Message {
    pub(crate) target: Target,
    pub(crate) message: Option<Diagnostic>,
    pub(crate) executable: Option<PathBuf>,
    pub(crate) profile: Option<Profile>,
}

#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

/// How a target is built.
#[derive(Deserialize)]
pub(crate) struct Profile {
    /// Whether the target is a test program.
    pub(crate) test: bool,
}

#[derive(Deserialize)]
pub(crate) struct Diagnostic {
    pub(crate) level: String,
    pub(crate) message: String,
    spans: Vec<Span>,
    pub(crate) rendered: Option<String>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: Span,
}

impl Span {
    /// Returns the call of the macro that makes the code of the span.
    fn call(&self) -> Option<&Self> {
        Some(&self.expansion.as_ref()?.span)
    }
}

impl Diagnostic {
    /// Returns the places of the error in a file, for each of its primary spans.
    pub(crate) fn places(&self, file: &str) -> Vec<Places> {
        let primary = self.spans.iter().filter(|span| span.is_primary);
        let places = primary.map(|span| {
            let spans = iter::successors(Some(span), |span| span.call());
            let in_file = spans.filter(|span| span.file_name == file);
            in_file.map(|span| span.byte_start..span.byte_end).collect()
        });
        places
            .filter(|places: &Places| !places.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_an_error_in_a_macro_have_that_of_the_call() {
        let text = r#"{"level": "error", "message": "m", "rendered": null,
            "spans": [{"file_name": "b.rs", "byte_start": 1, "byte_end": 2, "is_primary": true,
                "expansion": {"span": {"file_name": "a.rs", "byte_start": 3, "byte_end": 4,
                    "is_primary": false, "expansion": null}}}]}"#;
        let error: Diagnostic = serde_json::from_str(text).unwrap();
        assert_eq!(error.places("a.rs").concat().first(), Some(&(3..4)));
        assert_eq!(error.places("b.rs").concat().first(), Some(&(1..2)));
        assert!(error.places("c.rs").is_empty());
    }
}
