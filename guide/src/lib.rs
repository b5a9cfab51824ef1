//! The guide: a book whose code is compiled and run.
//!
//! Each chapter is the documentation of a module here, so `cargo test --doc -p guide` runs the code
//! blocks of each chapter, and those of the repository's README. `cargo xtask guide` makes the
//! book.

/// Makes a module of each chapter. The modules are only for the tests of documentation: elsewhere
/// the links of a chapter would be broken, as they lead to other pages of the book.
macro_rules! chapters {
    ($($name:ident: $file:literal;)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($file)]
            pub mod $name {}
        )*

        #[cfg(test)]
        const CHAPTERS: &[&str] = &[$($file),*];
    };
}

chapters! {
    introduction: "introduction.md";
    ten_minutes: "ten-minutes.md";
    tasks: "tasks.md";
    sync: "sync.md";
    net: "net.md";
    time: "time.md";
    blocking: "blocking.md";
    budgets: "budgets.md";
    groups: "groups.md";
    processes: "processes.md";
    cluster: "cluster.md";
    monitor: "monitor.md";
    observing: "observing.md";
    top: "top.md";
    from_tokio: "from-tokio.md";
    assemble: "assemble.md";
    model_check: "model-check.md";
    simulate: "simulate.md";
    hosts: "hosts.md";
    how_it_works: "how-it-works.md";
}

/// The front page of the repository: its code runs, too.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub mod front_page {}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    #[test]
    fn summary_lists_each_chapter_and_each_is_tested() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let summary = fs::read_to_string(source.join("SUMMARY.md")).unwrap();
        let listed = summary.split("](").skip(1);
        let listed: BTreeSet<_> = listed.filter_map(|rest| rest.split(')').next()).collect();
        let tested: BTreeSet<_> = super::CHAPTERS.iter().copied().collect();
        assert_eq!(listed, tested);
        let files = fs::read_dir(&source).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let chapters = names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md");
        assert!(chapters.into_iter().all(|name| tested.contains(&*name)));
    }
}
