//! The one place that names a backend: everything else in this crate goes through `imp`.
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
    } else if #[cfg(selvedge_tsan)] {
        #[allow(unused, reason = "only what this backend does not replace")]
        mod with_std;
        pub mod with_tsan;
        pub use with_tsan as imp;
    } else {
        pub mod with_std;
        pub use with_std as imp;
    }
}
