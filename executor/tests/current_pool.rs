//! The blocking pool of a runtime, as other crates find it by `blocking_threads`.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use blocking_threads::{Boxed, CurrentPool, NoPool, Pool, Settings};
use futures::executor::block_on;
use selvedge_executor::{Builder, Handle, LocalSet, Runtime};
use std::{cell::RefCell, sync::mpsc, thread};

fn runtime(name: &str) -> Runtime {
    let builder = Builder::new().workers(1).thread_name(name);
    builder.build().unwrap()
}

/// The name of the thread that runs a closure of the current pool.
async fn thread_of(pool: CurrentPool) -> String {
    let name = || thread::current().name().unwrap_or_default().to_owned();
    pool.run(name).await.unwrap()
}

/// Fails if a pool that was taken out of its runtime is that of another one, or has no bound.
#[test]
fn pool_of_a_runtime_stays_its_own() {
    let (one, other) = (runtime("one"), runtime("other"));
    let pool = one.block_on(async { Pool::current().unwrap() });
    let (there, here) = (pool.clone(), pool.clone());
    assert_eq!(other.block_on(thread_of(there)), "one-blocking");
    let outside = thread::spawn(|| block_on(thread_of(here)));
    assert_eq!(outside.join().unwrap(), "one-blocking");
    drop(one);
    other.block_on(pool.run(|| ())).unwrap_err();
}

/// Fails if the innermost of what a thread has entered is not its current pool.
#[test]
fn innermost_of_runtimes_and_pools_is_current() {
    let (one, other) = (runtime("one"), runtime("other"));
    let mut settings = Settings::default();
    settings.name = "pool".into();
    let own: Pool<Boxed> = Pool::new(settings);
    let current = || Pool::current().unwrap();
    let _outer = own.enter();
    let name = || block_on(async { thread_of(current()).await });
    assert_eq!(name(), "pool");
    let first = one.enter();
    assert_eq!(name(), "one-blocking");
    let second = other.enter();
    drop(first);
    assert_eq!(name(), "other-blocking");
    let inner = own.enter();
    assert_eq!(name(), "pool");
    drop(second);
    assert_eq!(name(), "pool");
    drop(inner);
    assert_eq!(name(), "pool"); // The outer one.
    let in_task = one.spawn(async move { thread_of(Pool::current().unwrap()).await });
    assert_eq!(one.block_on(in_task).unwrap(), "one-blocking");
}

#[test]
fn thread_in_no_runtime_has_no_pool() {
    let is_none = || Pool::current().is_err_and(|error: NoPool| !error.to_string().is_empty());
    assert!(is_none());
    assert!(block_on(
        LocalSet::new().run_until(async move { is_none() })
    ));
    let runtime = runtime("one");
    drop(runtime.enter());
    assert!(is_none());
}

/// Fails if the list of pools has a destructor, which runs before that of the other thread-local.
#[test]
fn destructor_of_a_thread_local_has_the_pool_of_its_runtime() {
    struct Asks(Handle, mpsc::Sender<bool>);

    impl Drop for Asks {
        fn drop(&mut self) {
            let found = self.0.block_on(async { Pool::current().is_ok() });
            self.1.send(found).unwrap();
        }
    }

    thread_local! {
        static ASKS: RefCell<Option<Asks>> = const { RefCell::new(None) };
    }
    let runtime = runtime("one");
    let (sender, receiver) = mpsc::channel();
    let handle = runtime.handle().clone();
    let ends = move || {
        // Its destructor comes after those of the thread-locals that are used first below.
        ASKS.set(Some(Asks(handle.clone(), sender)));
        handle.block_on(async { drop(Pool::current()) });
    };
    thread::spawn(ends).join().unwrap();
    assert!(receiver.recv().unwrap());
}
