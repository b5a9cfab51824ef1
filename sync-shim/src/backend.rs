//! The one place that names a backend: everything else in this crate goes through `imp`.
cfg_if::cfg_if! {
    if #[cfg(selvedge_loom)] {
        pub mod with_loom;
        pub use with_loom as imp;
    } else {
        pub mod with_std;
        pub use with_std as imp;
    }
}
