//! Copies the programs, so that a simulated host can start them.
//!
//! A program's `main` is private, makes a runtime, and reads the arguments of the process. All
//! hosts share one process. So in the copy `main` is an async function for the runtime of the host,
//! and the arguments are those that the host passes. The rest of the copy is the program's text.
use std::{env, fs, path::Path};

const PROGRAMS: &[(&str, &str)] = &[
    ("greeter", "../src/bin/greeter.rs"),
    ("journal", "../src/bin/journal.rs"),
    ("kv", "../services/src/bin/kv.rs"),
];

const CHANGES: &[(&str, &str)] = &[
    ("#[tokio::main]\nasync fn main()", "pub async fn main()"),
    ("env::args()", "crate::process::args()"),
];

fn main() {
    let to = env::var("OUT_DIR").expect("cargo sets the folder");
    for (name, path) in PROGRAMS {
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        // The macro `include!` takes no documentation of a whole file.
        let mut text = text.replace("//!", "//");
        for (from, to) in CHANGES {
            assert_eq!(text.matches(from).count(), 1, "{path}: {from}");
            text = text.replace(from, to);
        }
        let copy = Path::new(&to).join(format!("{name}.rs"));
        fs::write(&copy, text).unwrap_or_else(|error| panic!("{}: {error}", copy.display()));
    }
}
