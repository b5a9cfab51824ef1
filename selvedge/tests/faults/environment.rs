//! Tests of the environment variable `SELVEDGE_WORKERS`.
use crate::process;
use selvedge::Builder;

const TEST: &str = "environment::environment_sets_the_workers_if_the_builder_does_not";

#[test]
fn environment_sets_the_workers_if_the_builder_does_not() {
    const NAME: &str = "SELVEDGE_WORKERS";
    if process::role().is_some() {
        let named = Builder::new()
            .workers(2)
            .build()
            .map(|runtime| runtime.snapshot().workers);
        let unnamed = Builder::new()
            .build()
            .map(|runtime| runtime.snapshot().workers);
        println!("named {named:?}, unnamed {unnamed:?};");
        return;
    }
    for (said, comes_of_it) in [
        ("3", "named Ok(2), unnamed Ok(3);"),
        (" 1 ", "named Ok(2), unnamed Ok(1);"),
        ("0", "InvalidInput"),
        ("65536", "InvalidInput"),
        ("-1", "InvalidInput"),
        ("many", "InvalidInput"),
        ("", "InvalidInput"),
    ] {
        let ended = process::run_with(TEST, "build", &[(NAME, said)]);
        assert!(
            ended.status.success() && ended.said.contains(comes_of_it),
            "{said:?}: {ended:?}"
        );
    }
}
