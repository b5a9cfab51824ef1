//! Tests of each program of the package, which is started as a user starts it and gets requests.
//!
//! Rust clients always send requests. `curl` and `wrk` send some where they are installed; with
//! `SELVEDGE_TOOLS=1` a missing tool is an error.
mod axum_app;
mod grpc;
mod http;
mod program;
mod static_files;
mod tls;
mod tokio_bound;
mod tower;
mod websocket;
