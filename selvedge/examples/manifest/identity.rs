//! The identity of a directory: two paths with one identity lead to the same one.
use selvedge::fs;
use std::{fs::Metadata, io, path::Path};

/// The number of the device and of the directory.
#[cfg(unix)]
pub type Identity = (u64, u64);
/// The path without links.
#[cfg(not(unix))]
pub type Identity = std::path::PathBuf;

/// Returns the metadata of `path`, and its identity if that is a directory.
pub async fn metadata(path: &Path) -> io::Result<(Metadata, Option<Identity>)> {
    let found = fs::metadata(path).await?;
    let identity = if !found.is_dir() {
        None
    } else {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some((found.dev(), found.ino()))
        }
        #[cfg(not(unix))]
        Some(fs::canonicalize(path).await?)
    };
    Ok((found, identity))
}
