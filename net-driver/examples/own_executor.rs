//! An executor of 100 lines, without `selvedge`. Its tasks use sockets and sleeps, and serve
//! echoes.
//!
//! `cargo run -p net-driver --example own_executor -- 127.0.0.1:7000`, then `nc 127.0.0.1 7000`.
//! Without an address the example serves a client of its own, and ends.
mod cli;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use net_driver::{
    Driver,
    net::{TcpListener, TcpStream},
    time,
};
use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};
use worker_idle::park::Park;

/// One queue for all workers, and the workers' wakers.
struct Pool {
    queue: Mutex<VecDeque<Arc<Task>>>,
    sleepers: Mutex<Vec<(usize, Waker)>>,
    is_stopping: AtomicBool,
}

struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    is_queued: AtomicBool,
    pool: Arc<Pool>,
}

impl Pool {
    fn spawn(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) {
        let task = Task {
            future: Mutex::new(Some(Box::pin(future))),
            is_queued: AtomicBool::new(false),
            pool: self.clone(),
        };
        Arc::new(task).wake();
    }

    /// Unparks the sleeper that went to sleep last.
    fn notify(&self) {
        let sleeper = self.sleepers.lock().unwrap().pop();
        if let Some((_, waker)) = sleeper {
            waker.wake();
        }
    }

    fn stop(&self) {
        self.is_stopping.store(true, SeqCst);
        for (_, waker) in self.sleepers.lock().unwrap().drain(..) {
            waker.wake();
        }
    }

    /// Runs a worker. The worker runs tasks, polls the driver between the tasks, and parks in the
    /// driver.
    fn work(&self, driver: &Driver, worker: usize) {
        let mut park = driver.park(worker);
        driver.scope(Some(worker), || {
            while !self.is_stopping.load(SeqCst) {
                if driver.is_due() {
                    park.poll(64);
                    park.deliver();
                }
                let task = self.queue.lock().unwrap().pop_front();
                if let Some(task) = task {
                    task.run();
                    continue;
                }
                // Announces the sleep, and looks at the queue once more.
                let waker = park.waker();
                self.sleepers.lock().unwrap().push((worker, waker));
                let is_idle = self.queue.lock().unwrap().is_empty();
                if is_idle && !self.is_stopping.load(SeqCst) {
                    park.park();
                }
                self.sleepers
                    .lock()
                    .unwrap()
                    .retain(|(at, _)| *at != worker);
                park.deliver();
            }
        });
    }
}

impl Task {
    fn run(self: Arc<Self>) {
        let mut future = self.future.lock().unwrap();
        self.is_queued.store(false, SeqCst);
        let waker = Waker::from(self.clone());
        let mut cx = Context::from_waker(&waker);
        let poll = future.as_mut().map(|future| future.as_mut().poll(&mut cx));
        if poll.is_some_and(|poll| poll.is_ready()) {
            *future = None;
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, SeqCst) {
            let pool = self.pool.clone();
            pool.queue.lock().unwrap().push_back(self);
            pool.notify();
        }
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 1_024];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

/// Binds a listener, and serves its connections in tasks. Returns the listener's address.
async fn serve(pool: Arc<Pool>, at: String) -> io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind(at).await?;
    let at = listener.local_addr()?;
    pool.clone().spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => pool.spawn(async {
                    if let Err(error) = echo(stream).await {
                        eprintln!("a connection ended: {error}");
                    }
                }),
                Err(error) => eprintln!("accept: {error}"),
            }
        }
    });
    Ok(at)
}

const HELP: &str = "\
Serves echoes on an executor of its own.

Usage: own_executor [ADDRESS]

ADDRESS  where it listens, until Ctrl-C; without it, it talks to itself and ends";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        Ok(run(arguments.into_iter().next())?)
    })
}

fn run(address: Option<String>) -> io::Result<()> {
    const WORKERS: usize = 2;
    let pool = Arc::new(Pool {
        queue: Mutex::default(),
        sleepers: Mutex::default(),
        is_stopping: AtomicBool::new(false),
    });
    // The thread of `main` is one more worker, which only runs `block_on`.
    let driver = Driver::new(WORKERS + 1);
    let threads: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (pool, driver) = (pool.clone(), driver.clone());
            thread::spawn(move || pool.work(&driver, worker))
        })
        .collect();
    driver.park(WORKERS).block_on(async {
        let at = address.clone().unwrap_or_else(|| "127.0.0.1:0".into());
        let at = serve(pool.clone(), at).await?;
        println!("listens on {at}");
        if address.is_some() {
            return std::future::pending().await;
        }
        let mut client = TcpStream::connect(at).await?;
        for _ in 0..3 {
            time::sleep(Duration::from_millis(10)).await;
            client.write_all(b"hello").await?;
            let mut back = [0; 5];
            client.read_exact(&mut back).await?;
            println!("{}", String::from_utf8_lossy(&back));
        }
        io::Result::Ok(())
    })?;
    pool.stop();
    for thread in threads {
        thread.join().expect("a worker does not panic");
    }
    // Nothing drops the listener's task, which still waits: the process ends now.
    Ok(())
}
