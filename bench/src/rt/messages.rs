//! Servers of messages, for clients outside of the process: what the runtimes share.
use super::Rt;
use crate::work::work;
use futures::{
    StreamExt,
    channel::{mpsc, oneshot},
};
use std::{
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixListener,
    thread,
    time::Duration,
};

/// A socket of a server, non-blocking.
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// Only for [`Work::Echo`].
    Udp(UdpSocket),
}

/// The work of a server before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Echo,
    /// By the message's kind, that of [`Hub::work`].
    Mixed,
}

/// Sends to a task that answers requests of all connections.
#[derive(Clone)]
pub(super) struct Hub(mpsc::UnboundedSender<oneshot::Sender<()>>);

impl Hub {
    /// Starts the task.
    pub(super) fn start<R: Rt>() -> Self {
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
