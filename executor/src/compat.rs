//! Names of other runtimes, so that a program ports by renaming the crate.
pub(crate) mod tokio;
