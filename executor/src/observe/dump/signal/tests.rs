use super::*;
use crate::{Builder, Runtime};
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

/// Returns the texts of the dumps at SIGWINCH, which harms no other test.
fn dumps(runtime: &Runtime) -> Receiver<String> {
    let (send, texts) = channel();
    let print = move |text| send.send(text).unwrap_or_default();
    let kind = SignalKind::window_change();
    runtime.handle().on_signal(kind, print).unwrap();
    texts
}

fn raise() {
    // SAFETY: the call sends a signal whose handler is the one of the listener.
    assert_eq!(unsafe { libc::raise(libc::SIGWINCH) }, 0);
}

fn next(texts: &Receiver<String>) -> String {
    texts.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Its drop waits until the sender is dropped.
struct OnDrop(Receiver<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

/// The tests run in one process, and share the signal: so they are one test.
#[test]
fn each_signal_prints_a_dump_until_the_end() {
    let runtime = Builder::new().workers(1).list_tasks(true).build().unwrap();
    let plain = Builder::new().workers(1).build().unwrap();
    let (texts, refusals) = (dumps(&runtime), dumps(&plain));
    let task = runtime.spawn(std::future::pending::<()>());
    for _ in 0..3 {
        raise();
        let text = next(&texts);
        let title = runtime.handle().shared().title();
        assert!(
            text.starts_with(&format!("selvedge: dump of 1 task of {title}\n")),
            "{text}"
        );
        assert!(text.contains(&format!("task {}", task.id())), "{text}");
        assert!(next(&refusals).contains("does not list"));
    }
    // A signal during a dump leads to another one.
    raise();
    raise();
    next(&texts);
    let again = dumps(&runtime);
    assert!(again.recv().is_err(), "there is a listener for that signal");
    // The end of a runtime hangs in the drop of a future, and a signal shows that task.
    let (free, stuck) = channel::<()>();
    let drops = OnDrop(stuck);
    let hangs = runtime.spawn(async move {
        let _drops = drops;
        std::future::pending::<()>().await;
    });
    while runtime
        .handle()
        .tasks()
        .unwrap()
        .iter()
        .any(|task| task.polls == 0)
    {
        std::thread::yield_now();
    }
    let handle = runtime.handle().clone();
    let ends = std::thread::spawn(move || drop(runtime));
    while !handle.shared().is_closing() {
        std::thread::yield_now();
    }
    // A dump of an earlier signal may be under way.
    raise();
    next(&texts);
    raise();
    let text = next(&texts);
    assert!(text.contains(&format!("task {}", hangs.id())), "{text}");
    drop(free);
    ends.join().unwrap();
    // The end of the runtime ends the listeners, without another signal.
    drop(plain);
    loop {
        match texts.recv_timeout(Duration::from_secs(60)) {
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("the listener stays"),
        }
    }
}
