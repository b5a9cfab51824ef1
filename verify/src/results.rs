//! Files of results. `cargo xtask report` writes the page of the verification from them.
use anyhow::{Context, Result};
use serde::{Serialize, de::DeserializeOwned};
use std::{fs, io, path::Path};

/// Returns the results that an earlier run has written to the file, if there was one.
pub(crate) fn earlier<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    let text = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("reading {}", file.display()))?,
    };
    // A run first checks that it can write the file, which makes an empty file. A run that then
    // failed has left the file empty.
    if text.is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_slice(&text);
    value.with_context(|| format!("reading {}", file.display()))
}

/// Writes results.
pub(crate) fn write_json(file: &Path, value: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string_pretty(value)? + "\n";
    fs::write(file, json).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::workspace::check_writable;

    #[test]
    fn missing_or_empty_file_of_an_earlier_run_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        assert_eq!(earlier::<u32>(&file).unwrap(), None);
        check_writable(Some(&file)).unwrap();
        assert_eq!(earlier::<u32>(&file).unwrap(), None);
        write_json(&file, &7).unwrap();
        assert_eq!(earlier::<u32>(&file).unwrap(), Some(7));
        fs::write(&file, "x").unwrap();
        assert!(earlier::<u32>(&file).is_err());
    }
}
