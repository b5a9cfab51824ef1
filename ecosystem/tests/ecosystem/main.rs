//! Tests of each program of the package, which is started as a user starts it and gets requests.
//!
//! Rust clients always send requests. `curl`, `wrk` and the browser `chromium` send some where they
//! are installed; with `SELVEDGE_TOOLS=1` a missing tool is an error.
mod axum_app;
mod browser;
mod grpc;
mod http;
mod program;
#[cfg(target_os = "linux")]
mod soak;
mod sqlx;
mod static_files;
mod tls;
mod tower;
mod websocket;
