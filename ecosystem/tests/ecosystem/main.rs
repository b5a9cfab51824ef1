//! Each program of the package, started as a user starts it, and spoken to by a client.
//!
//! Rust clients speak to it always. `curl` and `wrk` do where they are installed; with
//! `SELVEDGE_TOOLS=1` a tool that is missing is an error.
mod axum_app;
mod grpc;
mod http;
mod program;
mod static_files;
mod tls;
mod tokio_bound;
mod tower;
mod websocket;
