//! The parts that the servers share: the listener, and the end by a signal.
use std::{io, pin::pin, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    select,
    signal::unix::{SignalKind, signal},
    time::sleep,
};

/// Listens, says so, and gives each connection to `serve` until SIGTERM or SIGINT.
pub async fn listen(address: &str, mut serve: impl FnMut(TcpStream)) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listens on {}", listener.local_addr()?);
    let mut ended = pin!(ended());
    loop {
        let accepted = select! {
            accepted = listener.accept() => accepted,
            ended = &mut ended => return ended,
        };
        match accepted.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream)) {
            Ok(stream) => serve(stream),
            Err(error) => {
                eprintln!("the listener: {error}");
                // On tokio, the next call fails at once while no descriptor is free.
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

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
