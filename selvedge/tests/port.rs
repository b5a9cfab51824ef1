//! Runs one program for tokio and for this crate. The two differ only in the crate's name.
#[path = "port/program.rs"]
mod program;

program::program!(on_tokio, tokio);
program::program!(on_selvedge, selvedge);

#[test]
fn a_program_for_tokio_runs_the_same_with_the_crate_renamed() {
    let expected = on_tokio::run();
    assert!(expected.len() > 20, "{expected:#?}");
    assert_eq!(on_selvedge::run(), expected);
}
