//! The thread that serves a page.
use crate::{ServeError, routes, site::Site};
use hyper::service::service_fn;
use selvedge::{Runtime, sync::oneshot};
use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

/// The most connections. A browser opens up to six.
const CONNECTIONS: usize = 64;

/// The time for the head of a request, and for each write of an answer.
const LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of a head, and of the buffer for an answer.
const BUFFER: usize = 16 << 10;

/// A page that is being served. The drop ends it.
///
/// The drop closes the port and the connections, and waits for the page's thread. A value that is
/// forgotten serves until the process ends. In a child that `fork` makes, the drop does nothing.
///
/// ```
/// let runtime = selvedge::Runtime::new()?;
/// let builder = || selvedge_top::Builder::new().runtime(runtime.handle());
/// let page = builder().serve("127.0.0.1:0")?;
/// let address = page.local_addr();
/// drop(page);
/// let page = builder().serve(address)?; // The port is free again.
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "the drop ends the page"]
pub struct Page {
    address: SocketAddr,
    /// Dropped to stop the server.
    stop: Option<oneshot::Sender<()>>,
    /// The process that has the thread. A child that `fork` makes of it has a copy of this value.
    process: u32,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Returns the address on which the page is served.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // This is a copy in a child: its thread is not here, so nothing can be stopped.
            std::mem::forget((self.stop.take(), self.thread.take()));
            return;
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Serves a page on a thread of its own.
pub(crate) fn start(listener: TcpListener, site: Arc<Site>) -> Result<Page, ServeError> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let name = "selvedge-top";
    let runtime = selvedge::Builder::new_current_thread()
        .name(name)
        .thread_name(name)
        .monitor(false)
        .unobserved()
        .build()?;
    let (stop, stopped) = oneshot::channel();
    let thread = thread::Builder::new().name(name.into());
    let thread = thread.spawn(move || {
        // An error of the listener ends the page, and the program goes on.
        let _ = runtime.block_on(serve(listener, site, stopped));
        end(runtime);
    })?;
    Ok(Page {
        address,
        stop: Some(stop),
        process: std::process::id(),
        thread: Some(thread),
    })
}

async fn serve(
    listener: TcpListener,
    site: Arc<Site>,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = selvedge::net::TcpListener::from_std(listener)?;
    let service = service_fn(move |request| routes::answer(site.clone(), request));
    selvedge_hyper::serve(listener, service)
        .connection_limit(CONNECTIONS)
        .header_read_timeout(LIMIT)
        .write_timeout(LIMIT)
        .http1(|http1| http1.max_buf_size(BUFFER))
        .shutdown_timeout(Duration::ZERO)
        .shutdown_on(async {
            // An error: the sender is dropped, never used.
            let _ = stopped.await;
        })
        .await
}

/// Ends the page's runtime. A look-up of a stack may go on, on its own thread.
fn end(runtime: Runtime) {
    runtime.shutdown_background();
}
