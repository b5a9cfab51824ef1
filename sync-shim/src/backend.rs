//! The module that chooses the backend. The rest of this crate reaches its types through `imp`.

macro_rules! backend_needs {
    ($cfg:ident, $feature:literal) => {
        #[cfg(all($cfg, not(feature = $feature)))]
        compile_error!(concat!(
            "cfg(",
            stringify!($cfg),
            ") needs the feature `",
            $feature,
            "` of sync-shim: add `sync-shim = { version = \"0.1\", features = [\"",
            $feature,
            "\"] }` to the dev-dependencies of the crate whose models you run"
        ));
    };
}
backend_needs!(selvedge_loom, "loom");
backend_needs!(selvedge_shuttle, "shuttle");
backend_needs!(selvedge_portable, "portable-atomic");

#[cfg(all(not(target_has_atomic = "64"), not(feature = "portable-atomic")))]
compile_error!(
    "this target has no 64-bit atomics: enable the feature `portable-atomic` of sync-shim, by a \
     dependency of your own on it"
);

cfg_if::cfg_if! {
    if #[cfg(selvedge_loom)] {
        pub mod with_loom;
        pub use with_loom as imp;
    } else if #[cfg(selvedge_shuttle)] {
        #[allow(unused, reason = "only what this backend does not replace")]
        mod with_std;
        pub mod with_shuttle;
        pub use with_shuttle as imp;
    } else if #[cfg(selvedge_count)] {
        #[allow(unused, reason = "only what this backend does not replace")]
        mod with_std;
        pub mod with_count;
        pub use with_count as imp;
    } else if #[cfg(all(selvedge_sim, feature = "std"))] {
        #[allow(unused, reason = "only what this backend does not replace")]
        mod with_std;
        pub mod with_sim;
        pub use with_sim as imp;
    } else {
        pub mod with_std;
        pub use with_std as imp;
    }
}
