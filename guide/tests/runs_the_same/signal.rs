//! Signals of the process.

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{future::poll_fn, io, process::Command, task::Poll};

            fn kill(signal: &str) {
                let id = std::process::id().to_string();
                let killed = Command::new("kill").args([signal, &id]).status().unwrap();
                assert!(killed.success());
            }

            fn kinds(log: &mut Vec<String>) {
                type Kind = $rt::signal::unix::SignalKind;
                let kinds: [Kind; 11] = [
                    $rt::signal::unix::SignalKind::alarm(),
                    $rt::signal::unix::SignalKind::child(),
                    $rt::signal::unix::SignalKind::hangup(),
                    $rt::signal::unix::SignalKind::interrupt(),
                    $rt::signal::unix::SignalKind::io(),
                    $rt::signal::unix::SignalKind::pipe(),
                    $rt::signal::unix::SignalKind::quit(),
                    $rt::signal::unix::SignalKind::terminate(),
                    $rt::signal::unix::SignalKind::user_defined1(),
                    $rt::signal::unix::SignalKind::user_defined2(),
                    $rt::signal::unix::SignalKind::window_change(),
                ];
                for kind in kinds {
                    let number = $rt::signal::unix::SignalKind::as_raw_value(&kind);
                    let same = $rt::signal::unix::SignalKind::from_raw(number) == kind;
                    log!(log, number, same);
                }
            }

            async fn signals(log: &mut Vec<String>) -> io::Result<()> {
                let kind = $rt::signal::unix::SignalKind::user_defined1();
                let mut listener: $rt::signal::unix::Signal = $rt::signal::unix::signal(kind)?;
                let none = poll_fn(|cx| {
                    let polled = $rt::signal::unix::Signal::poll_recv(&mut listener, cx);
                    Poll::Ready(polled.is_pending())
                });
                log!(log, none.await);
                kill("-USR1");
                log!(log, $rt::signal::unix::Signal::recv(&mut listener).await);
                kill("-USR1");
                let polled = poll_fn(|cx| $rt::signal::unix::Signal::poll_recv(&mut listener, cx));
                log!(log, polled.await);

                let mut ctrl_c = std::pin::pin!($rt::signal::ctrl_c());
                let mut sent = false;
                let came = poll_fn(|cx| {
                    let polled = std::future::Future::poll(ctrl_c.as_mut(), cx);
                    if polled.is_pending() && !sent {
                        sent = true;
                        kill("-INT");
                    }
                    polled
                });
                log!(log, came.await.is_ok());
                let forbidden = $rt::signal::unix::SignalKind::from_raw(9);
                log!(log, $rt::signal::unix::signal(forbidden).is_err());
                Ok(())
            }

            pub fn run() -> Vec<String> {
                let mut builder = $rt::runtime::Builder::new_current_thread();
                let runtime = builder.enable_all().build().unwrap();
                let mut log = Vec::new();
                kinds(&mut log);
                runtime.block_on(signals(&mut log)).unwrap();
                log
            }
        }
    };
}

program!(theirs, tokio);
program!(ours, selvedge);

#[test]
fn signal_runs_the_same() {
    super::assert_same(&theirs::run(), &ours::run());
}
