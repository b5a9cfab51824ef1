//! A copy of tokio that notes whether a process enters a runtime.
use super::scratch;
use anyhow::{Context, Result};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The variable that names the file which the first entry of a runtime creates.
pub(super) const VARIABLE: &str = "FACADE_ENTERED";

/// The file of tokio with the function that each entry of a runtime calls, in its own words.
const FILE: &str = "src/runtime/context/runtime.rs";
const FUNCTION: &str = "fn enter_runtime<";
const BODY: &str = "\n{\n";

const NOTE: &str = r#"    {
        static ENTERED: std::sync::Once = std::sync::Once::new();
        ENTERED.call_once(|| {
            if let Some(file) = std::env::var_os("FACADE_ENTERED") {
                drop(std::fs::File::create(file));
            }
        });
    }
"#;

/// Copies tokio's package to `copy`, with a note in the function that enters a runtime.
pub(super) fn write(tokio: &Path, copy: PathBuf) -> Result<PathBuf> {
    let source = fs::read_to_string(tokio.join(FILE)).with_context(|| FILE.to_owned())?;
    let marked = mark(&source).context("tokio enters a runtime in another way than before")?;
    scratch::copy(tokio, &copy, |path| {
        (path == Path::new(FILE)).then(|| marked.clone())
    })?;
    Ok(copy)
}

/// Inserts the note at the beginning of the function's body.
fn mark(source: &str) -> Option<String> {
    let function = source.find(FUNCTION)?;
    let body = function + source[function..].find(BODY)? + BODY.len();
    let (before, rest) = source.split_at(body);
    Some(format!("{before}{NOTE}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_is_at_the_beginning_of_the_body() {
        let marked = mark("fn a() {\n}\nfn enter_runtime<F>(f: F)\nwhere\n    F: A,\n{\n    x\n}");
        assert!(marked.unwrap().contains(&format!(",\n{{\n{NOTE}    x\n}}")));
        assert_eq!(mark("fn enter() {\n}"), None);
        assert!(NOTE.contains(VARIABLE));
    }
}
