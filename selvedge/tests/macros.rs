//! Tests of the attributes `main` and `test`, as a program uses them.
#![cfg(feature = "macros")]

use std::{
    cell::Cell,
    io,
    process::{ExitCode, Termination},
    rc::Rc,
};

#[selvedge::test]
async fn test_runs_tasks_on_its_own_thread() {
    let here = std::thread::current().id();
    let there = selvedge::spawn(async { std::thread::current().id() });
    assert_eq!(there.await.unwrap(), here);
}

#[selvedge::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_runs_tasks_on_workers() {
    let here = std::thread::current().id();
    let there = selvedge::spawn(async { std::thread::current().id() });
    assert_ne!(there.await.unwrap(), here);
    assert_eq!(selvedge::Handle::current().snapshot().workers, 2);
}

#[selvedge::test(observe = "list")]
async fn view_of_the_attribute_is_on() {
    let handle = selvedge::Handle::current();
    let task = selvedge::spawn(std::future::pending::<()>());
    assert_eq!(handle.tasks().map(|tasks| tasks.len()), Some(1));
    drop(task);
}

#[selvedge::test]
async fn body_may_hold_values_that_are_not_send() {
    let count = Rc::new(Cell::new(1));
    selvedge::yield_now().await;
    count.set(count.get() + 1);
    assert_eq!(count.get(), 2);
}

#[selvedge::test(flavor = "multi_thread")]
async fn question_mark_returns_from_the_test() -> io::Result<()> {
    let read = selvedge::spawn_blocking(|| std::fs::read("/dev/null"));
    assert_eq!(read.await.unwrap()?, []);
    Ok(())
}

#[selvedge::test]
#[should_panic(expected = "in the body")]
async fn attributes_of_the_test_stay() {
    panic!("in the body");
}

#[selvedge::test(flavor = "local", name = "near")]
async fn local_flavor_spawns_tasks_that_are_not_send() {
    assert_eq!(selvedge::Handle::current().name(), Some("near"));
    let count = Rc::new(Cell::new(1));
    let counted = count.clone();
    let task = selvedge::task::spawn_local(async move { counted.set(2) });
    task.await.unwrap();
    assert_eq!(count.get(), 2);
    let here = std::thread::current().id();
    let shared = selvedge::spawn(async { std::thread::current().id() });
    assert_eq!(shared.await.unwrap(), here);
}

#[selvedge::main(flavor = "local")]
async fn local_seven() -> u32 {
    let seven = Rc::new(7);
    selvedge::task::spawn_local(async move { *seven })
        .await
        .unwrap()
}

#[selvedge::test(name = "named", flavor = "multi_thread")]
async fn name_is_that_of_the_runtime() {
    assert_eq!(selvedge::Handle::current().name(), Some("named"));
}

#[selvedge::test(unhandled_panic = "shutdown_runtime")]
#[should_panic(expected = "a task")]
async fn unhandled_panic_ends_the_function() {
    selvedge::spawn_detached(async { panic!("of the task") });
    std::future::pending::<()>().await;
}

mod renamed {
    pub(crate) use selvedge as other;
}

#[selvedge::main(crate = "crate::renamed::other", flavor = "current_thread")]
async fn seven() -> u32 {
    selvedge::spawn(async { 7 }).await.unwrap()
}

#[selvedge::main]
async fn opaque() -> impl Termination {
    ExitCode::SUCCESS
}

#[selvedge::main(worker_threads = 1)]
async fn never() -> ! {
    std::panic::resume_unwind(Box::new("never returns"))
}

#[test]
fn function_with_the_attribute_is_called_without_await() {
    assert_eq!(seven(), 7);
    assert_eq!(local_seven(), 7);
    let _ = opaque();
    let unwound = std::panic::catch_unwind(|| never()).unwrap_err();
    assert_eq!(*unwound.downcast::<&str>().unwrap(), "never returns");
}

fn runtime() -> u32 {
    1
}

#[selvedge::main(flavor = "current_thread")]
async fn add(runtime: u32, future: u32) -> u32 {
    runtime + future
}

#[selvedge::test]
async fn names_of_the_expansion_are_hidden_from_the_body() {
    assert_eq!(runtime(), 1);
}

#[test]
fn arguments_may_have_any_names() {
    assert_eq!(add(1, 2), 3);
}
