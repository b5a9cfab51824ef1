//! What the installed loom sees, and what it misses: small programs with known answers.
#[cfg(all(test, selvedge_loom))]
mod models;
