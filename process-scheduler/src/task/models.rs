//! Models of an inbox that a step polls, and of one that is awaited outside of the steps.
use super::*;
use crate::{shared::models::without_threads, worker::models::run_ready};
use std::{
    future::{pending, poll_fn},
    pin::pin,
    task::Wake,
};
use sync_shim::{
    atomic::{AtomicBool, Ordering::AcqRel},
    model, thread,
};

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Ordering: AcqRel, as the state of a task has it. Pairs with the swap of the model.
        self.0.swap(true, AcqRel);
    }
}

/// A thread receives from an inbox outside of the process's steps, while a worker sends two
/// messages and runs the process. The thread polls the inbox until it is pending, and once more
/// whenever its waker was called: it gets both messages.
///
/// Fails if the process does not step when its inbox gets a new waker (rule 4 of `task.rs`).
#[test]
fn receive_outside_a_step_racing_steps_gets_each_message() {
    model(|| {
        let handle = without_threads();
        let given = Arc::new(std::sync::Mutex::new(None));
        let gives = given.clone();
        let process = handle.spawn_async(move |inbox: Inbox<u32>| {
            *gives.lock().unwrap() = Some(inbox);
            pending::<()>()
        });
        let process = process.unwrap();
        let mut inbox = given.lock().unwrap().take().unwrap();
        run_ready(&handle.shared);
        // The model leaves out the counts of an `Arc`. So this thread keeps the cell alive, and
        // frees it after the join.
        let cells = handle.registry().all();
        let worker = {
            let (handle, process) = (handle.clone(), process.clone());
            thread::spawn(move || {
                for n in 0..2 {
                    process.try_send(n).unwrap();
                    run_ready(&handle.shared);
                }
            })
        };
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(woken.clone());
        let mut cx = std::task::Context::from_waker(&waker);
        let mut got = Vec::new();
        let mut receive_all = || {
            while let Poll::Ready(next) = pin!(inbox.receive()).poll(&mut cx) {
                got.extend(next);
            }
        };
        receive_all();
        worker.join().unwrap();
        run_ready(&handle.shared);
        // Ordering: AcqRel. Pairs with the swap of the wake.
        while woken.0.swap(false, AcqRel) {
            receive_all();
            run_ready(&handle.shared);
        }
        assert_eq!(got, [0, 1]);
        handle.kill(process.pid());
        run_ready(&handle.shared);
        assert_eq!(handle.shared.live(), 0);
        drop(cells);
    });
}

/// A process has a message, and receives until the inbox is pending, while a thread sends one more.
/// The process gets both.
///
/// Fails if the inbox loses the messages that a step takes while it polls the inbox.
#[test]
fn receive_polled_in_a_step_racing_a_send_gets_both() {
    model(|| {
        let handle = without_threads();
        let got = Arc::new(std::sync::Mutex::new(Vec::new()));
        let written = got.clone();
        let process = handle.spawn_async(move |mut inbox: Inbox<u32>| async move {
            while written.lock().unwrap().len() < 2 {
                inbox.event().await;
                poll_fn(|cx| {
                    while let Poll::Ready(next) = pin!(inbox.receive()).poll(cx) {
                        written.lock().unwrap().extend(next);
                    }
                    Poll::Ready(())
                })
                .await;
            }
        });
        let process = process.unwrap();
        run_ready(&handle.shared);
        let cells = handle.registry().all();
        process.try_send(0).unwrap();
        let sender = thread::spawn(move || process.try_send(1).unwrap());
        run_ready(&handle.shared);
        sender.join().unwrap();
        run_ready(&handle.shared);
        assert_eq!(*got.lock().unwrap(), [0, 1]);
        assert_eq!(handle.shared.live(), 0);
        drop(cells);
    });
}
