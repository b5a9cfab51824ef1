//! Parts of tokio that the façade refuses at compile time.
//!
//! `--cfg tokio_unstable` is not among them, because a program often sets it for the sake of
//! another crate. No stable item changes its meaning by it. An unstable item that `selvedge` has is
//! there with or without it, and the use of another one does not compile.

#[cfg(not(unix))]
compile_error!(
    "this package is tokio's API on selvedge, and it needs Unix: \
     remove `tokio` from `[patch.crates-io]` to build with tokio itself"
);

#[cfg(feature = "io-uring")]
compile_error!(
    "tokio's feature `io-uring` is not in this package, which is tokio's API on selvedge: turn the \
     feature off (`cargo tree -e features -i tokio` shows who turns it on), or remove `tokio` from \
     `[patch.crates-io]`"
);

#[cfg(any(feature = "taskdump", tokio_taskdump))]
compile_error!(
    "tokio's feature `taskdump` is not in this package, which is tokio's API on selvedge: turn the \
     feature off (`cargo tree -e features -i tokio` shows who turns it on), or remove `tokio` from \
     `[patch.crates-io]`. `selvedge::Handle::tasks` lists tasks instead"
);

#[cfg(feature = "schedule-latency")]
compile_error!(
    "tokio's feature `schedule-latency` is not in this package, which is tokio's API on selvedge: \
     turn the feature off (`cargo tree -e features -i tokio` shows who turns it on), or remove \
     `tokio` from `[patch.crates-io]`. `selvedge::Builder::measure_polls` measures instead"
);
