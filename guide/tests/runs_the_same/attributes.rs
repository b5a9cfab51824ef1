//! The attributes `main` and `test`, and their arguments.

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{rc::Rc, thread};

            fn here() -> String {
                let flavor = $rt::runtime::Handle::current().runtime_flavor();
                let name = $rt::runtime::Handle::current().name().map(str::to_owned);
                format!("{flavor:?} {name:?}")
            }

            mod renamed {
                pub use $rt as other;
            }

            #[$rt::main(crate = "renamed::other")]
            async fn with_crate() -> String {
                here()
            }

            #[$rt::main(flavor = "multi_thread", worker_threads = 2)]
            async fn many() -> String {
                let caller = thread::current().id();
                let task = $rt::task::spawn(async move { thread::current().id() != caller });
                format!("{} {:?}", here(), task.await)
            }

            #[$rt::main(flavor = "current_thread")]
            async fn one() -> String {
                let caller = thread::current().id();
                let task = $rt::task::spawn(async move { thread::current().id() == caller });
                format!("{} {:?}", here(), task.await)
            }

            #[$rt::main(flavor = "local")]
            async fn local() -> String {
                let text = Rc::new("not Send");
                let task = $rt::task::spawn_local(async move { text.len() });
                format!("{} {:?}", here(), task.await)
            }

            #[$rt::main(flavor = "current_thread", name = "near")]
            async fn named() -> String {
                here()
            }

            #[$rt::main(flavor = "current_thread", start_paused = true)]
            async fn paused() -> String {
                let day = std::time::Duration::from_secs(86_400);
                let begun = $rt::time::Instant::now();
                $rt::time::sleep(day).await;
                format!("{}", begun.elapsed() >= day)
            }

            pub fn log() -> Vec<String> {
                vec![with_crate(), many(), one(), local(), named(), paused()]
            }

            #[$rt::test]
            async fn test_has_one_thread() {
                assert_eq!(here(), "CurrentThread None");
            }

            #[$rt::test(crate = "renamed::other")]
            async fn test_with_crate() {
                assert_eq!(here(), "CurrentThread None");
            }

            #[$rt::test(flavor = "multi_thread", worker_threads = 2)]
            async fn test_with_workers() {
                assert_eq!(here(), "MultiThread None");
            }

            #[$rt::test(flavor = "current_thread", start_paused = true)]
            async fn test_with_a_paused_clock() {
                $rt::time::sleep(std::time::Duration::from_secs(86_400)).await;
            }

            #[$rt::test(flavor = "local", name = "near")]
            async fn test_on_a_local_runtime() {
                assert!(here().ends_with("Some(\"near\")"));
                let text = Rc::new("not Send");
                let task = $rt::task::spawn_local(async move { text.len() });
                assert_eq!(task.await.unwrap(), 8);
            }
        }
    };
}

program!(theirs, tokio);
program!(ours, selvedge);

#[test]
fn attributes_run_the_same() {
    super::assert_same(&theirs::log(), &ours::log());
}
