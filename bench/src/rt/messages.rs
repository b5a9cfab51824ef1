//! Servers of messages, for clients outside of the process: what the runtimes share.
use super::{Rt, Work};
use crate::work::work;
use futures::{
    StreamExt,
    channel::{mpsc, oneshot},
};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// The work, with the parts that all connections share.
#[derive(Clone)]
pub(super) enum Shared {
    Echo,
    Mixed(Hub),
    FanOut(Fan),
    Memory,
    File(PathBuf),
}

impl Shared {
    /// Starts what the connections share. A task calls this.
    pub(super) fn start<R: Rt>(work: Work) -> Self {
        match work {
            Work::Echo => Self::Echo,
            Work::Mixed => Self::Mixed(Hub::start::<R>()),
            Work::FanOut => Self::FanOut(Fan::default()),
            Work::Memory => Self::Memory,
            Work::File(fd) => Self::File(format!("/proc/self/fd/{fd}").into()),
        }
    }
}

/// The connections that get the news.
#[derive(Clone, Default)]
pub(super) struct Fan(Arc<Mutex<Vec<mpsc::UnboundedSender<()>>>>);

impl Fan {
    pub(super) fn subscribe(&self) -> mpsc::UnboundedReceiver<()> {
        let (sender, news) = mpsc::unbounded();
        self.0.lock().expect("no holder panics").push(sender);
        news
    }

    pub(super) fn publish(&self) {
        for connection in &*self.0.lock().expect("no holder panics") {
            // The connection may have ended.
            let _ = connection.unbounded_send(());
        }
    }
}

/// Sends to a task that answers requests of all connections.
#[derive(Clone)]
pub(super) struct Hub(mpsc::UnboundedSender<oneshot::Sender<()>>);

impl Hub {
    /// Starts the task.
    fn start<R: Rt>() -> Self {
        let (hub, mut requests) = mpsc::unbounded::<oneshot::Sender<()>>();
        R::spawn(async move {
            while let Some(back) = requests.next().await {
                // The connection may have ended.
                let _ = back.send(());
            }
        });
        Self(hub)
    }

    /// Does the work of a kind: 10 in 100 sleep, 5 block a thread, 30 ask the hub's task, and 5
    /// compute. The others do nothing.
    pub(super) async fn work<R: Rt>(&self, kind: u8) {
        /// 200 microseconds.
        const COMPUTE: u64 = 5_000;
        match kind {
            0..10 => R::sleep(Duration::from_millis(2)).await,
            10..15 => R::blocking(|| thread::sleep(Duration::from_millis(1))).await,
            15..45 => {
                let (back, answer) = oneshot::channel();
                self.0.unbounded_send(back).expect("the hub's task runs");
                answer.await.expect("the hub's task answers");
            }
            45..50 => work(COMPUTE),
            _ => {}
        }
    }
}
