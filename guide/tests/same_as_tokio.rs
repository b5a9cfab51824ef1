//! The items of `runtime` and `task` that the table `docs/from-tokio.md` calls the same. The code
//! that uses them is compiled against tokio and against selvedge, and never runs.
//!
//! `cargo xtask tokio-items` checks that each of these items is here.
#![allow(
    unused_imports,
    deprecated,
    clippy::let_underscore_future,
    clippy::redundant_closure,
    clippy::unit_arg,
    clippy::let_unit_value
)]

use std::{
    future::{Ready, ready},
    pin::Pin,
};

/// Stands for a value of any type, in code that never runs.
fn any<T>() -> T {
    unreachable!("it is only compiled")
}

macro_rules! same {
    ($module:ident, $rt:ident, $progress:expr) => {
        mod $module {
            use super::*;

            mod names {
                use $rt::runtime::Builder as _;
                use $rt::runtime::EnterGuard as _;
                use $rt::runtime::Handle as _;
                use $rt::runtime::Id as _;
                use $rt::runtime::LocalOptions as _;
                use $rt::runtime::LocalRuntime as _;
                use $rt::runtime::Runtime as _;
                use $rt::runtime::RuntimeFlavor as _;
                use $rt::runtime::RuntimeFlavor::CurrentThread as _;
                use $rt::runtime::RuntimeFlavor::MultiThread as _;
                use $rt::runtime::RuntimeMetrics as _;
                use $rt::runtime::TryCurrentError as _;
                use $rt::runtime::is_rt_shutdown_err as _;
                use $rt::task::AbortHandle as _;
                use $rt::task::Id as _;
                use $rt::task::JoinError as _;
                use $rt::task::JoinHandle as _;
                use $rt::task::JoinSet as _;
                use $rt::task::LocalEnterGuard as _;
                use $rt::task::LocalKey as _;
                use $rt::task::LocalSet as _;
                use $rt::task::block_in_place as _;
                use $rt::task::coop::Coop as _;
                use $rt::task::coop::RestoreOnPending as _;
                use $rt::task::coop::Unconstrained as _;
                use $rt::task::coop::consume_budget as _;
                use $rt::task::coop::cooperative as _;
                use $rt::task::coop::has_budget_remaining as _;
                use $rt::task::coop::poll_proceed as _;
                use $rt::task::coop::unconstrained as _;
                use $rt::task::futures::TaskLocalFuture as _;
                use $rt::task::id as _;
                use $rt::task::spawn as _;
                use $rt::task::spawn_blocking as _;
                use $rt::task::spawn_local as _;
                use $rt::task::try_id as _;
                use $rt::task::yield_now as _;
            }

            pub(super) fn calls() {
                let _ = $rt::runtime::Builder::build(any());
                let _ = $rt::runtime::Builder::build_local(any(), any());
                let _ = $rt::runtime::Builder::enable_all(any());
                let _ = $rt::runtime::Builder::enable_io(any());
                let _ = $rt::runtime::Builder::enable_time(any());
                let _ = $rt::runtime::Builder::event_interval(any(), any());
                let _ = $rt::runtime::Builder::global_queue_interval(any(), any());
                let _ = $rt::runtime::Builder::max_blocking_threads(any(), any());
                let _ = $rt::runtime::Builder::max_io_events_per_busy_tick(any(), any());
                let _ = $rt::runtime::Builder::max_io_events_per_tick(any(), any());
                let _ = $rt::runtime::Builder::name(any(), "name");
                let _ = $rt::runtime::Builder::new_current_thread();
                let _ = $rt::runtime::Builder::new_multi_thread();
                let _ = $rt::runtime::Builder::on_thread_park(any(), || {});
                let _ = $rt::runtime::Builder::on_thread_start(any(), || {});
                let _ = $rt::runtime::Builder::on_thread_stop(any(), || {});
                let _ = $rt::runtime::Builder::on_thread_unpark(any(), || {});
                let _ = $rt::runtime::Builder::start_paused(any(), any());
                let _ = $rt::runtime::Builder::thread_keep_alive(any(), any());
                let _ = $rt::runtime::Builder::thread_name(any(), "name");
                let _ = $rt::runtime::Builder::thread_name_fn(any(), || String::new());
                let _ = $rt::runtime::Builder::thread_stack_size(any(), any());
                let _ = $rt::runtime::Builder::worker_threads(any(), any());
                let _ = $rt::runtime::Handle::block_on(any(), ready(1_u8));
                let _ = $rt::runtime::Handle::current();
                let _ = $rt::runtime::Handle::enter(any());
                let _ = $rt::runtime::Handle::id(any());
                let _ = $rt::runtime::Handle::metrics(any());
                let _ = $rt::runtime::Handle::name(any());
                let _ = $rt::runtime::Handle::runtime_flavor(any());
                let _ = $rt::runtime::Handle::spawn(any(), ready(1_u8));
                let _ = $rt::runtime::Handle::spawn_blocking(any(), || 1_u8);
                let _ = $rt::runtime::Handle::try_current();
                let _ = $rt::runtime::LocalRuntime::block_on(any(), ready(1_u8));
                let _ = $rt::runtime::LocalRuntime::enter(any());
                let _ = $rt::runtime::LocalRuntime::handle(any());
                let _ = $rt::runtime::LocalRuntime::metrics(any());
                let _ = $rt::runtime::LocalRuntime::new();
                let _ = $rt::runtime::LocalRuntime::shutdown_background(any());
                let _ = $rt::runtime::LocalRuntime::shutdown_timeout(any(), any());
                let _ = $rt::runtime::LocalRuntime::spawn_blocking(any(), || 1_u8);
                let _ = $rt::runtime::LocalRuntime::spawn_local(any(), ready(1_u8));
                let _ = $rt::runtime::Runtime::block_on(any(), ready(1_u8));
                let _ = $rt::runtime::Runtime::enter(any());
                let _ = $rt::runtime::Runtime::handle(any());
                let _ = $rt::runtime::Runtime::metrics(any());
                let _ = $rt::runtime::Runtime::new();
                let _ = $rt::runtime::Runtime::shutdown_background(any());
                let _ = $rt::runtime::Runtime::shutdown_timeout(any(), any());
                let _ = $rt::runtime::Runtime::spawn(any(), ready(1_u8));
                let _ = $rt::runtime::Runtime::spawn_blocking(any(), || 1_u8);
                let _ = $rt::runtime::RuntimeMetrics::global_queue_depth(any());
                let _ = $rt::runtime::RuntimeMetrics::num_alive_tasks(any());
                let _ = $rt::runtime::RuntimeMetrics::num_workers(any());
                let _ = $rt::runtime::RuntimeMetrics::worker_park_count(any(), any());
                let _ = $rt::runtime::RuntimeMetrics::worker_park_unpark_count(any(), any());
                let _ = $rt::runtime::RuntimeMetrics::worker_total_busy_duration(any(), any());
                let _ = $rt::runtime::TryCurrentError::is_missing_context(any());
                let _ = $rt::runtime::TryCurrentError::is_thread_local_destroyed(any());
                let _ = $rt::task::AbortHandle::abort(any());
                let _ = $rt::task::AbortHandle::id(any());
                let _ = $rt::task::AbortHandle::is_finished(any());
                let _ = $rt::task::JoinError::id(any());
                let _ = $rt::task::JoinError::into_panic(any());
                let _ = $rt::task::JoinError::is_cancelled(any());
                let _ = $rt::task::JoinError::is_panic(any());
                let _ = $rt::task::JoinError::try_into_panic(any());
                let _ = $rt::task::JoinHandle::abort(any::<&$rt::task::JoinHandle<u8>>());
                let _ = $rt::task::JoinHandle::abort_handle(any::<&$rt::task::JoinHandle<u8>>());
                let _ = $rt::task::JoinHandle::id(any::<&$rt::task::JoinHandle<u8>>());
                let _ = $rt::task::JoinHandle::is_finished(any::<&$rt::task::JoinHandle<u8>>());
                let _ = $rt::task::JoinSet::abort_all(any::<&mut $rt::task::JoinSet<u8>>());
                let _ = $rt::task::JoinSet::detach_all(any::<&mut $rt::task::JoinSet<u8>>());
                let _ = $rt::task::JoinSet::is_empty(any::<&$rt::task::JoinSet<u8>>());
                let _ = $rt::task::JoinSet::join_all(any::<$rt::task::JoinSet<u8>>());
                let _ = $rt::task::JoinSet::join_next(any::<&mut $rt::task::JoinSet<u8>>());
                let _ = $rt::task::JoinSet::join_next_with_id(any::<&mut $rt::task::JoinSet<u8>>());
                let _ = $rt::task::JoinSet::len(any::<&$rt::task::JoinSet<u8>>());
                let _: $rt::task::JoinSet<u8> = $rt::task::JoinSet::new();
                let _ =
                    $rt::task::JoinSet::poll_join_next(any::<&mut $rt::task::JoinSet<u8>>(), any());
                let _ = $rt::task::JoinSet::poll_join_next_with_id(
                    any::<&mut $rt::task::JoinSet<u8>>(),
                    any(),
                );
                let _ = $rt::task::JoinSet::shutdown(any::<&mut $rt::task::JoinSet<u8>>());
                let _ =
                    $rt::task::JoinSet::spawn(any::<&mut $rt::task::JoinSet<u8>>(), ready(1_u8));
                let _ = $rt::task::JoinSet::spawn_blocking(
                    any::<&mut $rt::task::JoinSet<u8>>(),
                    || 1_u8,
                );
                let _ = $rt::task::JoinSet::spawn_blocking_on(
                    any::<&mut $rt::task::JoinSet<u8>>(),
                    || 1_u8,
                    any(),
                );
                let _ = $rt::task::JoinSet::spawn_local(
                    any::<&mut $rt::task::JoinSet<u8>>(),
                    ready(1_u8),
                );
                let _ = $rt::task::JoinSet::spawn_local_on(
                    any::<&mut $rt::task::JoinSet<u8>>(),
                    ready(1_u8),
                    any(),
                );
                let _ = $rt::task::JoinSet::spawn_on(
                    any::<&mut $rt::task::JoinSet<u8>>(),
                    ready(1_u8),
                    any(),
                );
                let _ = $rt::task::JoinSet::try_join_next(any::<&mut $rt::task::JoinSet<u8>>());
                let _ =
                    $rt::task::JoinSet::try_join_next_with_id(any::<&mut $rt::task::JoinSet<u8>>());
                let _ = $rt::task::LocalKey::get(any::<&'static $rt::task::LocalKey<u8>>());
                let _ = $rt::task::LocalKey::scope(
                    any::<&'static $rt::task::LocalKey<u8>>(),
                    1,
                    ready(1_u8),
                );
                let _ = $rt::task::LocalKey::sync_scope(
                    any::<&'static $rt::task::LocalKey<u8>>(),
                    1,
                    || 1_u8,
                );
                let _ = $rt::task::LocalKey::try_get(any::<&'static $rt::task::LocalKey<u8>>());
                let _ = $rt::task::LocalKey::try_with(
                    any::<&'static $rt::task::LocalKey<u8>>(),
                    |value| *value,
                );
                let _ =
                    $rt::task::LocalKey::with(any::<&'static $rt::task::LocalKey<u8>>(), |value| {
                        *value
                    });
                let _ = $rt::task::LocalSet::block_on(any(), any(), ready(1_u8));
                let _ = $rt::task::LocalSet::enter(any());
                let _ = $rt::task::LocalSet::id(any());
                let _ = $rt::task::LocalSet::new();
                let _ = $rt::task::LocalSet::run_until(any(), ready(1_u8));
                let _ = $rt::task::LocalSet::spawn_local(any(), ready(1_u8));
                let _ = $rt::task::coop::RestoreOnPending::made_progress($progress);
                let _ = $rt::task::futures::TaskLocalFuture::take_value(any::<
                    Pin<&mut $rt::task::futures::TaskLocalFuture<u8, Ready<u8>>>,
                >());
            }
        }
    };
}

same!(theirs, tokio, &any::<tokio::task::coop::RestoreOnPending>());
same!(
    ours,
    selvedge,
    any::<selvedge::task::coop::RestoreOnPending>()
);

#[test]
fn same_items_compile_against_both_crates() {
    let both: [fn(); 2] = [theirs::calls, ours::calls];
    assert_ne!(both[0] as usize, both[1] as usize);
}
