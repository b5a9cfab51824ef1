//! Programs that are written for tokio, on the façade.
use std::{os::fd::AsRawFd, panic::AssertUnwindSafe, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, unix::AsyncFd},
    net::{TcpListener, TcpStream, UdpSocket},
    signal::unix::{SignalKind, signal},
    sync::mpsc::{self, error::SendTimeoutError},
    time,
};

#[tokio::main(worker_threads = 2)]
async fn thread_of_a_task() -> Option<String> {
    let name = || std::thread::current().name().map(str::to_owned);
    tokio::spawn(async move { name() }).await.unwrap()
}

#[test]
fn task_runs_on_a_worker_of_selvedge() {
    let name = thread_of_a_task().unwrap();
    assert!(name.starts_with("selvedge-"), "{name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socket_carries_bytes_by_the_traits_of_io() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await
    });
    client.write_all(b"hello").await?;
    client.shutdown().await?;
    let mut back = String::new();
    client.read_to_string(&mut back).await?;
    assert_eq!(back, "hello");
    assert_eq!(server.await.unwrap()?, 5);
    Ok(())
}

/// Fails if the clock never comes to the end of the longest sleep.
#[tokio::test(start_paused = true)]
async fn longest_sleep_ends_on_a_paused_clock() {
    let start = time::Instant::now();
    time::sleep(Duration::MAX).await;
    assert!(start.elapsed() > Duration::from_secs(20 * 365 * 24 * 60 * 60));
}

#[tokio::test]
async fn message_is_not_sent_after_its_time() {
    let (sender, _receiver) = mpsc::channel(1);
    let limit = Duration::from_millis(1);
    sender.send_timeout(1, limit).await.unwrap();
    let late = sender.send_timeout(2, limit).await;
    assert_eq!(late, Err(SendTimeoutError::Timeout(2)));
}

/// Fails if the call blocks the thread that runs the other tasks.
#[tokio::test]
async fn call_that_blocks_in_a_task_panics() {
    let (_sender, mut receiver) = mpsc::channel::<u8>(1);
    let call = AssertUnwindSafe(|| receiver.blocking_recv());
    std::panic::catch_unwind(call).unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn call_in_block_in_place_may_block() {
    let (sender, mut receiver) = mpsc::channel(1);
    tokio::spawn(async move { sender.send(7).await });
    let task =
        tokio::spawn(async move { tokio::task::block_in_place(|| receiver.blocking_recv()) });
    assert_eq!(task.await.unwrap(), Some(7));
}

#[tokio::test]
async fn bare_descriptor_is_registered() -> std::io::Result<()> {
    let (one, _other) = std::os::unix::net::UnixStream::pair()?;
    one.set_nonblocking(true)?;
    #[allow(deprecated)]
    let fd = AsyncFd::new(one.as_raw_fd())?;
    assert!(fd.writable().await?.ready().is_writable());
    Ok(())
}

tokio::task_local! {
    static USER: u32;
}

#[tokio::test]
async fn macros_find_their_crate() {
    let sum = USER.scope(1, async { USER.get() + 1 });
    let both = async { tokio::try_join!(async { Ok::<_, ()>(1) }, async { Ok(2) }) };
    let (sum, both) = tokio::join!(sum, both);
    assert_eq!((sum, both), (2, Ok((1, 2))));
    let last = async { 3 };
    tokio::pin!(last);
    let first = tokio::select! {
        biased;
        () = std::future::pending() => 0,
        n = &mut last => n,
    };
    assert_eq!(first, 3);
}

fn panics<T>(f: impl FnOnce() -> T) -> bool {
    std::panic::catch_unwind(AssertUnwindSafe(f)).is_err()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn sleep_made_outside_of_a_runtime_panics() {
    let now = time::Instant::now();
    assert!(panics(|| time::sleep(SECOND)));
    assert!(panics(|| time::sleep_until(now)));
    assert!(panics(|| time::interval(SECOND)));
    assert!(panics(|| time::timeout(SECOND, async {})));
    assert!(panics(|| time::timeout_at(now, async {})));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    assert!(!panics(|| time::timeout(SECOND, async {})));
}

/// Fails if one of the two flags counts for both, or if the builder loses them.
#[test]
fn part_that_is_not_enabled_panics() {
    let builder = tokio::runtime::Builder::new_current_thread;
    let works = |builder: &mut tokio::runtime::Builder| {
        builder.build().unwrap().block_on(async {
            let sleeps = !panics(|| time::sleep(SECOND));
            let listens = !panics(|| signal(SignalKind::hangup()));
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let binds = !panics(|| UdpSocket::from_std(socket));
            (sleeps, binds, listens)
        })
    };
    assert_eq!(works(&mut builder()), (false, false, false));
    assert_eq!(works(builder().enable_time()), (true, false, false));
    assert_eq!(works(builder().enable_io()), (false, true, true));
    assert_eq!(works(builder().enable_all()), (true, true, true));
    assert_eq!(
        works(&mut selvedge::Builder::new().into()),
        (true, true, true)
    );
}

/// Fails if the time counts from the first poll.
#[tokio::test(start_paused = true)]
async fn timeout_counts_from_its_call() {
    let limited = time::timeout(SECOND, std::future::pending::<()>());
    time::advance(2 * SECOND).await;
    let now = time::Instant::now();
    limited.await.unwrap_err();
    assert_eq!(now.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn longest_timeout_ends_on_a_paused_clock() {
    let limited = time::timeout(Duration::MAX, std::future::pending::<()>());
    limited.await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn clock_of_workers_is_not_paused() {
    assert!(panics(time::pause));
    assert!(panics(time::resume));
    let advance = tokio::spawn(time::advance(SECOND));
    assert!(advance.await.unwrap_err().is_panic());
}

#[tokio::test]
async fn block_in_place_on_the_only_thread_panics() {
    assert!(panics(|| tokio::task::block_in_place(|| ())));
}

#[test]
fn signal_outside_of_a_runtime_panics() {
    assert!(panics(|| signal(SignalKind::hangup())));
}
