use super::*;

fn frame(function: &str, file: &str) -> Frame {
    // A frame has no constructor, but that of an address without a function is one.
    let stack = Stack::here().expect("the tests have the feature `backtrace`");
    let mut frame = stack.resolve().remove(0);
    frame.function = (!function.is_empty()).then(|| function.into());
    frame.file = (!file.is_empty()).then(|| file.into());
    frame
}

fn names(frames: &[(&str, &str)]) -> Vec<String> {
    let frames = frames.iter().map(|(function, file)| frame(function, file));
    let left = cut(frames.collect()).into_iter();
    left.map(|frame| frame.function.unwrap_or_default())
        .collect()
}

#[test]
fn package_of_a_frame_is_that_of_its_path_or_folder() {
    let is_header = |function, file| is_of(&frame(function, file), &[("task-header", "")], None);
    assert!(is_header("task_header::run::poll", ""));
    assert!(is_header(
        "<task_header::join::JoinHandle<T> as Future>::poll",
        ""
    ));
    assert!(is_header("poll", "task-header/src/run.rs"));
    assert!(is_header(
        "poll",
        "/registry/src/index/task-header-0.1.0/src/run/a.rs"
    ));
    assert!(!is_header(
        "mine::task_header::poll",
        "/home/me/task-header-tool/src/main.rs"
    ));
    assert!(!is_header(
        "task_headers::poll",
        "/task-header/tests/run.rs"
    ));
    assert!(!is_header("", ""));
    let own = Some("/a/executor/src/");
    let runs = |function, file| is_of(&frame(function, file), RUN, own);
    assert!(runs("run", "/a/executor/src/worker/a.rs"));
    assert!(!runs("run", "/b/executor/src/worker/a.rs"));
    assert!(runs("run", "/b/selvedge-executor-0.1.0/src/worker/a.rs"));
    assert!(runs("selvedge_executor::worker::a", ""));
    assert!(!runs(
        "selvedge_executor::time::a",
        "/a/executor/src/time.rs"
    ));
    assert!(is_of_std(&frame("__rust_try", "")));
    assert!(is_of_std(&frame("", "/rustc/5/library/core/src/a.rs")));
}

/// Fails if a frame is cut that is not at an end of the stack.
#[test]
fn cut_leaves_the_tasks_own_frames() {
    let all = [
        ("backtrace::trace", ""),
        ("sched_monitor::stack::Stack::here", ""),
        ("{closure#1}", "/a/executor/src/observe/dump/request.rs"),
        ("give_back", "coop-budget/src/scope.rs"),
        ("net_driver::time::Sleep::poll", ""),
        ("coop_budget::wrap::Cooperative::poll", ""),
        ("mine::inner", ""),
        ("selvedge_executor::timeout", ""),
        ("mine::outer", ""),
        ("task_header::run::poll", ""),
        ("std::panicking::catch_unwind", ""),
        ("run", "/a/executor/src/worker/run.rs"),
    ];
    assert_eq!(
        names(&all),
        all[4..9].iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
    let join = [all[2], ("task_header::join::poll", ""), all[9], all[11]];
    assert_eq!(names(&join), ["task_header::join::poll"]);
    assert!(names(&[]).is_empty());
    assert_eq!(names(&all[..1]), ["backtrace::trace"]);
}
