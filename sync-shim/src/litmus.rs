//! Litmus tests of the installed loom: small programs that pin what it sees and what it misses.
#[cfg(all(test, selvedge_loom))]
mod models;
