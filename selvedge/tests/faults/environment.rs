//! Tests of the environment variables `SELVEDGE_WORKERS` and `SELVEDGE_OBSERVE`.
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

const OBSERVE_TEST: &str = "environment::environment_turns_the_list_and_dumps_on";

/// Fails if the variable does not reach the runtime, or if the process dies of the signal.
#[test]
fn environment_turns_the_list_and_dumps_on() {
    const NAME: &str = "SELVEDGE_OBSERVE";
    if process::role().is_some() {
        let runtime = Builder::new().workers(1).build().unwrap();
        let _task = runtime.spawn(std::future::pending::<()>());
        println!("lists {};", runtime.handle().tasks().is_some());
        if std::env::var(NAME).is_ok_and(|words| words.contains("dump")) {
            // SAFETY: the call sends a signal, for which there is a handler or the default action.
            unsafe { libc::raise(libc::SIGQUIT) };
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        return;
    }
    for (said, comes_of_it) in [
        ("", &["lists false;"][..]),
        ("list", &["lists true;"]),
        ("lists", &["lists false;", "knows no `lists`"]),
        ("dump", &["lists true;", "selvedge: dump of 1 task"]),
    ] {
        let ended = process::run_with(OBSERVE_TEST, "build", &[(NAME, said)]);
        let has = |text: &&str| ended.said.contains(text);
        assert!(
            ended.status.success() && comes_of_it.iter().all(has),
            "{said:?}: {ended:?}"
        );
    }
}
