//! The server-sent events of an open page: the state of the runtime each second, and its stalls
//! when there is a new one.
use crate::site::Site;
use hyper::body::Bytes;
use selvedge::{
    sync::{OwnedSemaphorePermit, mpsc},
    time,
};
use std::{sync::Arc, time::Duration};

/// The time between two ticks.
const TICK: Duration = Duration::from_secs(1);

/// The shortest time between two lists of stalls.
const STALLS: Duration = Duration::from_millis(100);

/// Starts the events of a page. They end when the receiver is dropped.
pub(crate) fn start(site: Arc<Site>, permit: OwnedSemaphorePermit) -> mpsc::Receiver<Bytes> {
    let (to, events) = mpsc::channel(2);
    selvedge::spawn_detached(async move {
        // The receiver is gone.
        let _ = send(&site, &to).await;
        drop(permit);
    });
    events
}

async fn send(site: &Site, to: &mpsc::Sender<Bytes>) -> Result<(), mpsc::error::SendError<Bytes>> {
    let mut seen = None;
    loop {
        to.send(event("tick", &site.tick())).await?;
        let next = time::Instant::now() + TICK;
        let Some(stalls) = site.stalls() else {
            time::sleep_until(next).await;
            continue;
        };
        loop {
            let count = stalls.count();
            if seen.replace(count) != Some(count) {
                to.send(event("stalls", &stalls.json())).await?;
                time::sleep(STALLS).await;
            }
            if time::timeout_at(next, stalls.changed()).await.is_err() {
                break;
            }
        }
    }
}

/// `data` has no line breaks.
fn event(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
