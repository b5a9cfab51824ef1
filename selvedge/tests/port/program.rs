//! The program that runs on tokio and on `selvedge`. It logs its results in a list of lines, none
//! of which depends on timing.

/// Defines the program as the module `$module`, for the crate `$rt`. The program is a macro, so
/// that its paths begin with the crate's name, as they do in a user's program.
macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{
                collections::BTreeSet,
                future::pending,
                rc::Rc,
                sync::{
                    Arc, Mutex,
                    atomic::{AtomicUsize, Ordering::SeqCst},
                    mpsc,
                },
                thread,
                time::Duration,
            };
            use $rt::{
                runtime::{Builder, Handle, Runtime},
                task::{AbortHandle, JoinError, JoinHandle, JoinSet, LocalSet},
            };

            /// Lines that the program has logged.
            #[derive(Clone, Default)]
            struct Log(Arc<Mutex<Vec<String>>>);

            impl Log {
                fn line(&self, line: impl Into<String>) {
                    self.0.lock().unwrap().push(line.into());
                }
            }

            pub fn run() -> Vec<String> {
                let log = Log::default();
                let runtime: Runtime = Builder::new_multi_thread()
                    .worker_threads(2)
                    .max_blocking_threads(4)
                    .thread_name("port")
                    .thread_stack_size(1 << 20)
                    .thread_keep_alive(Duration::from_secs(1))
                    .global_queue_interval(31)
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(tasks(&log));
                runtime.block_on(failures(&log));
                runtime.block_on(current(&log));
                runtime.block_on(sets(&log));
                runtime.block_on(blocking(&log));
                local(&log, &runtime);
                handles(&log, &runtime);
                end(&log, runtime);
                let lines = log.0.lock().unwrap().clone();
                lines
            }

            async fn tasks(log: &Log) {
                let task: JoinHandle<u32> = $rt::spawn(async { 7 });
                log.line(format!("spawn: {}", task.await.unwrap()));

                let tasks: Vec<_> = (0..100u64)
                    .map(|n| {
                        $rt::spawn(async move {
                            for _ in 0..n % 5 {
                                $rt::task::yield_now().await;
                            }
                            $rt::task::spawn(async move { n * n }).await.unwrap()
                        })
                    })
                    .collect();
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.unwrap();
                }
                log.line(format!("a hundred tasks, and one by each: {sum}"));

                let detached = Arc::new(AtomicUsize::new(0));
                for _ in 0..10 {
                    let detached = detached.clone();
                    drop($rt::spawn(async move { detached.fetch_add(1, SeqCst) }));
                }
                while detached.load(SeqCst) < 10 {
                    $rt::task::yield_now().await;
                }
                log.line("ten tasks without a handle have run");

                let finished = $rt::spawn(async {});
                while !finished.is_finished() {
                    $rt::task::yield_now().await;
                }
                log.line(format!("finished: {:?}", finished.await.is_ok()));
                let unconstrained = $rt::task::unconstrained(async { 3 }).await;
                $rt::task::consume_budget().await;
                log.line(format!("unconstrained: {unconstrained}"));
            }

            async fn failures(log: &Log) {
                let panicked: JoinError = $rt::spawn(async { panic!("oh no") }).await.unwrap_err();
                log.line(format!(
                    "{} {}",
                    panicked.is_panic(),
                    panicked.is_cancelled()
                ));
                let payload = panicked.into_panic();
                log.line(format!("panic: {:?}", payload.downcast_ref::<&str>()));

                let task = $rt::spawn(pending::<()>());
                let abort: AbortHandle = task.abort_handle();
                log.line(format!("same id: {}", abort.id() == task.id()));
                abort.abort();
                let aborted = task.await.unwrap_err();
                log.line(format!("{} {}", aborted.is_panic(), aborted.is_cancelled()));
                log.line(format!("no panic: {}", aborted.try_into_panic().is_err()));

                struct Loud(Log);
                impl Drop for Loud {
                    fn drop(&mut self) {
                        self.0.line("dropped");
                    }
                }
                let loud = Loud(log.clone());
                let task = $rt::spawn(async move {
                    let _loud = loud;
                    pending::<()>().await;
                });
                $rt::task::yield_now().await;
                task.abort();
                log.line(format!(
                    "aborted: {}",
                    task.await.unwrap_err().is_cancelled()
                ));
            }

            $rt::task_local! {
                static NUMBER: u32;
            }

            async fn current(log: &Log) {
                let task = $rt::spawn(async { $rt::task::id() });
                let id = task.id();
                log.line(format!("own id: {}", task.await.unwrap() == id));
                log.line(format!("in block_on: {}", $rt::task::try_id().is_none()));

                let task = $rt::spawn(NUMBER.scope(7, async {
                    $rt::task::yield_now().await;
                    NUMBER.with(|number| *number)
                }));
                log.line(format!("task-local: {}", task.await.unwrap()));
                log.line(format!("no scope: {}", NUMBER.try_with(|_| {}).is_err()));
                log.line(format!("sync: {}", NUMBER.sync_scope(8, || NUMBER.get())));

                let future = async { 9 };
                $rt::pin!(future);
                log.line(format!("pinned: {}", (&mut future).await));

                let flavor = Handle::current().runtime_flavor();
                log.line(format!("{flavor:?}"));
                let task = $rt::spawn(pending::<()>());
                task.abort();
                let error: std::io::Error = task.await.unwrap_err().into();
                log.line(format!("{:?}", error.kind()));
                let mut set = JoinSet::new();
                set.extend((0..3).map(|n| async move { n }));
                log.line(format!("extended: {}", set.join_all().await.len()));
            }

            async fn sets(log: &Log) {
                let mut set = JoinSet::new();
                for n in 0..20 {
                    set.spawn(async move {
                        $rt::task::yield_now().await;
                        n
                    });
                }
                log.line(format!("a set of {}", set.len()));
                let mut seen = BTreeSet::new();
                while let Some(joined) = set.join_next().await {
                    seen.insert(joined.unwrap());
                }
                log.line(format!("{seen:?}, empty: {}", set.is_empty()));

                set.spawn_blocking(|| 5);
                log.line(format!(
                    "blocking: {:?}",
                    set.join_next().await.map(Result::unwrap)
                ));
                let abort: AbortHandle = set.spawn(pending());
                abort.abort();
                let aborted = set.join_next().await.unwrap().unwrap_err();
                log.line(format!("aborted: {}", aborted.is_cancelled()));
                log.line(format!("nothing left: {}", set.try_join_next().is_none()));

                for _ in 0..5 {
                    set.spawn(pending());
                }
                set.abort_all();
                let mut cancelled = 0;
                while let Some(joined) = set.join_next().await {
                    cancelled += usize::from(joined.unwrap_err().is_cancelled());
                }
                log.line(format!("aborted all: {cancelled}"));

                set.spawn(pending());
                set.shutdown().await;
                log.line(format!("shut down: {}", set.is_empty()));
                set.spawn_on(async { 9 }, &Handle::current());
                set.detach_all();
                let squares: JoinSet<u32> = (0..4).map(|n| async move { n * n }).collect();
                let mut squares = squares.join_all().await;
                squares.sort_unstable();
                log.line(format!("join_all: {squares:?}"));
            }

            async fn blocking(log: &Log) {
                let (sender, receiver) = mpsc::channel();
                let read = $rt::task::spawn_blocking(move || receiver.recv().unwrap());
                sender.send("read").unwrap();
                log.line(format!("spawn_blocking: {}", read.await.unwrap()));
                let panicked = $rt::task::spawn_blocking(|| panic!("in a closure"));
                log.line(format!("panic: {}", panicked.await.unwrap_err().is_panic()));
                let in_runtime = $rt::task::spawn_blocking(|| {
                    Handle::current().block_on(async { $rt::spawn(async { 8 }).await.unwrap() })
                });
                log.line(format!(
                    "block_on in a closure: {}",
                    in_runtime.await.unwrap()
                ));
                let task = $rt::spawn(async {
                    let (sender, receiver) = mpsc::channel();
                    $rt::spawn(async move { sender.send(6).unwrap() });
                    $rt::task::block_in_place(|| receiver.recv().unwrap())
                });
                log.line(format!("block_in_place: {}", task.await.unwrap()));
            }

            fn local(log: &Log, runtime: &Runtime) {
                let set = LocalSet::new();
                let shared = Rc::new(4);
                let ours = shared.clone();
                set.spawn_local(async move { drop(ours) });
                let four = set.block_on(runtime, async move {
                    $rt::task::spawn_local(async move { *shared })
                        .await
                        .unwrap()
                });
                log.line(format!("local: {four}"));
                let five = runtime.block_on(
                    set.run_until(async { $rt::task::spawn_local(async { 5 }).await.unwrap() }),
                );
                log.line(format!("local: {five}"));
            }

            fn handles(log: &Log, runtime: &Runtime) {
                log.line(format!("outside: {}", Handle::try_current().is_err()));
                let handle: Handle = runtime.handle().clone();
                let other = thread::spawn(move || {
                    let task = handle.spawn(async { Handle::try_current().is_ok() });
                    handle.block_on(task).unwrap()
                });
                log.line(format!("from another thread: {}", other.join().unwrap()));
                let entered = runtime.enter();
                let task = $rt::spawn(async { 1 });
                drop(entered);
                log.line(format!("entered: {}", runtime.block_on(task).unwrap()));
                let nested = runtime.block_on(async {
                    std::panic::catch_unwind(|| Handle::current().block_on(async {})).is_err()
                });
                log.line(format!("a nested block_on panics: {nested}"));
            }

            fn end(log: &Log, runtime: Runtime) {
                let handle = runtime.handle().clone();
                let waits = handle.spawn(pending::<()>());
                runtime.shutdown_timeout(Duration::from_secs(20));
                let other = Runtime::new().unwrap();
                let ended = other.block_on(waits).unwrap_err();
                log.line(format!("ended with its runtime: {}", ended.is_cancelled()));
                let late = other.block_on(handle.spawn(async {})).unwrap_err();
                log.line(format!("too late: {}", late.is_cancelled()));
                other.shutdown_background();
            }
        }
    };
}
pub(crate) use program;
