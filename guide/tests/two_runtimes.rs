//! Two runtimes in one process: futures of one that are polled in the other, and the messages that
//! say what is wrong, which runtime is current, and what to do.
#![cfg(unix)]
use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

fn ours() -> selvedge::Runtime {
    let builder = selvedge::Builder::new().workers(1).name("ours");
    builder.build().unwrap()
}

fn theirs() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

fn text(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| payload.downcast_ref::<&str>().unwrap().to_string())
}

/// Returns the message of the panic of a task of tokio.
fn said_on_tokio(future: impl Future<Output: Send + 'static> + Send + 'static) -> String {
    let runtime = theirs();
    let joined = runtime.block_on(async { runtime.spawn(future).await });
    text(joined.err().expect("it works").into_panic())
}

/// Returns the message of the panic of a task of ours.
fn said_on_ours(future: impl Future<Output: Send + 'static> + Send + 'static) -> String {
    let runtime = ours();
    let joined = runtime.block_on(runtime.spawn(future));
    text(joined.err().expect("it works").into_panic())
}

const SHORT: Duration = Duration::from_millis(1);

#[test]
fn our_future_on_tokio_panics_with_the_cure() {
    for said in [
        said_on_tokio(async { selvedge::time::sleep(SHORT).await }),
        said_on_tokio(async { drop(selvedge::net::UnixStream::pair()) }),
        said_on_tokio(async { drop(selvedge::spawn(async {})) }),
        said_on_tokio(async { drop(selvedge::spawn_blocking(|| ())) }),
    ] {
        for words in ["tokio", "selvedge", "Handle::enter"] {
            assert!(said.contains(words), "{said}");
        }
    }
}

#[test]
fn our_futures_run_on_tokio_after_enter() {
    let (runtime, other) = (ours(), theirs());
    let handle = runtime.handle().clone();
    let task = other.spawn(async move {
        let (mut sleep, spawned) = {
            let _entered = handle.enter();
            (
                Box::pin(selvedge::time::sleep(SHORT)),
                selvedge::spawn(async { 7 }),
            )
        };
        // A sleep takes the runtime that is current when it is first polled.
        std::future::poll_fn(|cx| {
            let _entered = handle.enter();
            sleep.as_mut().poll(cx)
        })
        .await;
        spawned.await.unwrap()
    });
    assert_eq!(other.block_on(task).unwrap(), 7);
}

#[test]
fn tokios_future_on_ours_panics_with_tokios_words() {
    let said = said_on_ours(async { tokio::time::sleep(SHORT).await });
    assert!(said.contains("Tokio 1.x runtime"), "{said}");
    let said = said_on_ours(async { drop(tokio::spawn(async {})) });
    assert!(said.contains("Tokio 1.x runtime"), "{said}");
}

#[test]
fn tokios_futures_run_on_ours_after_enter() {
    let (runtime, other) = (ours(), theirs());
    let handle = other.handle().clone();
    let task = runtime.spawn(async move {
        let sleep = {
            let _entered = handle.enter();
            tokio::time::sleep(SHORT)
        };
        sleep.await;
        handle.spawn(async { 7 }).await.unwrap()
    });
    assert_eq!(runtime.block_on(task).unwrap(), 7);
}

#[test]
fn nested_block_on_names_both_runtimes() {
    let (one, other) = (
        ours(),
        selvedge::Builder::new()
            .workers(1)
            .name("other")
            .build()
            .unwrap(),
    );
    let nested = || one.block_on(async { other.block_on(async {}) });
    let said = text(catch_unwind(AssertUnwindSafe(nested)).unwrap_err());
    for runtime in [&one, &other] {
        let handle = runtime.handle();
        let named = format!("runtime {} ({:?})", handle.id(), handle.name().unwrap());
        assert!(said.contains(&named), "{said}");
    }
    let (one, other) = (&one, other.handle().clone());
    let in_task = one.spawn(async move { other.block_on(async {}) });
    let said = text(one.block_on(in_task).unwrap_err().into_panic());
    assert!(
        said.contains("(\"ours\")") && said.contains("(\"other\")"),
        "{said}"
    );
}
