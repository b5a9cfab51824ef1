//! `cargo xtask trace-view`: turns a saved trace into a page of HTML that needs no network.
use anyhow::{Context, Result, ensure};
use project::say;
use serde_json::Value;
use std::{fs, path::PathBuf};

/// Options of `cargo xtask trace-view`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The trace: JSON in Chrome's trace-event format, as `Tracer::save` writes it.
    file: PathBuf,
    /// The path of the page. By default, the path of the trace with the ending `.html`.
    #[arg(long, value_name = "PAGE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let Options { file, output } = options;
    let json = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    check(&json).with_context(|| format!("{} is no trace", file.display()))?;
    let output = output
        .clone()
        .unwrap_or_else(|| file.with_extension("html"));
    ensure!(
        output != *file,
        "the page would replace the trace: say --output"
    );
    let page = task_trace::recorder::page_of(&json);
    fs::write(&output, page).with_context(|| format!("writing {}", output.display()))?;
    say!("{}", output.display());
    Ok(true)
}

/// Checks that the text is a list of events, or has one under `traceEvents`.
fn check(json: &str) -> Result<()> {
    let value: Value = serde_json::from_str(json)?;
    let events = value.get("traceEvents").unwrap_or(&value);
    events.as_array().context("no list of events")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_becomes_a_page_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        let json = r#"{"traceEvents":[{"ph":"X","name":"</script>","tid":0,"ts":1,"dur":2}]}"#;
        fs::write(&file, json).unwrap();
        let options = |output| Options {
            file: file.clone(),
            output,
        };
        assert!(run(&options(None)).unwrap());
        let page = fs::read_to_string(folder.path().join("a.html")).unwrap();
        assert!(page.contains(r#""name":"\u003c/script>""#));
        assert!(run(&options(Some(file.clone()))).is_err());
    }

    #[test]
    fn file_that_is_no_trace_is_refused() {
        for text in ["", "7", "{}", "{\"traceEvents\":7}"] {
            assert!(check(text).is_err(), "{text:?}");
        }
        check("[]").unwrap();
    }
}
