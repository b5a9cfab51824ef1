//! The part that the servers share: the end by a signal.
use std::io;
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
};

/// Waits for SIGTERM or SIGINT.
pub async fn ended() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
