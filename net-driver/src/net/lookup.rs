//! Addresses, and the lookup of names.
//!
//! The system's lookup blocks its thread. So the driver runs the lookup where the runtime has
//! chosen ([`Driver::set_blocking`](crate::Driver::set_blocking)), or else on a new thread.
use super::source::any_current_driver;
use std::{
    future::{Future, poll_fn},
    io, mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    sync::Arc,
    task::{Poll, Waker},
};
use sync_shim::sync::Mutex;

/// Addresses, or names that a lookup turns into addresses.
///
/// This trait is sealed: no other crate can implement it.
///
/// ```
/// use net_driver::{Driver, net::{ToSocketAddrs, lookup_host}};
///
/// async fn count(of: impl ToSocketAddrs) -> std::io::Result<usize> {
///     Ok(lookup_host(of).await?.count())
/// }
/// Driver::new(1).park(0).block_on(async {
///     assert_eq!(count("127.0.0.1:80").await?, 1);
///     assert_eq!(count(("::1", 80)).await?, 1);
///     assert_eq!(count(std::net::SocketAddr::from(([127, 0, 0, 1], 80))).await?, 1);
///     assert_eq!(count(&[([127, 0, 0, 1], 80).into(), ([127, 0, 0, 2], 80).into()][..]).await?, 2);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
pub trait ToSocketAddrs: sealed::Host {}

impl<T: sealed::Host + ?Sized> ToSocketAddrs for T {}

mod sealed {
    use std::net::SocketAddr;

    /// Known addresses, or a name that has to be looked up.
    pub enum Addresses {
        /// The one address, without an allocation.
        One(SocketAddr),
        Known(Vec<SocketAddr>),
        /// The text `host:port`, or a host's name and a port.
        Named(String, Option<u16>),
    }

    pub trait Host {
        #[doc(hidden)]
        fn addresses(&self) -> Addresses;
    }
}

use sealed::{Addresses, Host};

macro_rules! known {
    ($($type:ty),*) => {$(
        impl Host for $type {
            fn addresses(&self) -> Addresses {
                Addresses::One(SocketAddr::from(*self))
            }
        }
    )*};
}

known! {
    SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16)
}

impl Host for [SocketAddr] {
    fn addresses(&self) -> Addresses {
        Addresses::Known(self.to_vec())
    }
}

impl Host for Vec<SocketAddr> {
    fn addresses(&self) -> Addresses {
        Addresses::Known(self.clone())
    }
}

impl<const N: usize> Host for [SocketAddr; N] {
    fn addresses(&self) -> Addresses {
        Addresses::Known(self.to_vec())
    }
}

impl Host for str {
    fn addresses(&self) -> Addresses {
        match self.parse() {
            Ok(address) => Addresses::One(address),
            Err(_) => Addresses::Named(self.to_owned(), None),
        }
    }
}

impl Host for String {
    fn addresses(&self) -> Addresses {
        self.as_str().addresses()
    }
}

impl Host for (&str, u16) {
    fn addresses(&self) -> Addresses {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(address) => Addresses::One((address, port).into()),
            Err(_) => Addresses::Named(host.to_owned(), Some(port)),
        }
    }
}

impl Host for (String, u16) {
    fn addresses(&self) -> Addresses {
        (self.0.as_str(), self.1).addresses()
    }
}

impl<T: Host + ?Sized> Host for &T {
    fn addresses(&self) -> Addresses {
        (**self).addresses()
    }
}

/// Returns the addresses of a host.
///
/// A name is looked up on a thread that may block; an address needs no lookup.
///
/// ```
/// use net_driver::{Driver, net::lookup_host};
///
/// Driver::new(1).park(0).block_on(async {
///     let found = lookup_host("localhost:80").await?;
///     assert!(found.into_iter().all(|address| address.port() == 80));
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
///
/// # Errors
/// If the lookup fails.
///
/// # Panics
/// Without a current driver, if there is a name to look up.
pub async fn lookup_host(host: impl ToSocketAddrs) -> io::Result<impl Iterator<Item = SocketAddr>> {
    let addresses = host.addresses();
    Ok(resolve(addresses).await?.into_iter())
}

/// Calls `attempt` with one address of the host after the other. Returns the first success, or the
/// last error.
pub(crate) async fn first_of<R, F: Future<Output = io::Result<R>>>(
    host: impl ToSocketAddrs,
    attempt: impl Fn(SocketAddr) -> F,
) -> io::Result<R> {
    let addresses = host.addresses();
    // The waits below may be long, and do not need the host.
    drop(host);
    let mut last = None;
    for address in resolve(addresses).await? {
        match attempt(address).await {
            Err(error) => last = Some(error),
            done => return done,
        }
    }
    Err(last.unwrap_or_else(no_address))
}

/// Returns the first address of the host. An address that is known costs no allocation.
pub(crate) async fn first(host: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let addresses = host.addresses();
    drop(host);
    if let Addresses::One(address) = addresses {
        return Ok(address);
    }
    let found = resolve(addresses).await?;
    found.first().copied().ok_or_else(no_address)
}

#[cold]
fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "there is no address")
}

async fn resolve(addresses: Addresses) -> io::Result<Vec<SocketAddr>> {
    use std::net::ToSocketAddrs as _;
    match addresses {
        Addresses::One(address) => Ok(vec![address]),
        Addresses::Known(known) => Ok(known),
        Addresses::Named(host, None) => {
            blocking(move || Ok(host.to_socket_addrs()?.collect())).await
        }
        Addresses::Named(host, Some(port)) => {
            blocking(move || Ok((host, port).to_socket_addrs()?.collect())).await
        }
    }
}

/// The result that a blocking closure leaves for the task that waits for it.
enum Outcome<R> {
    Running(Option<Waker>),
    Done(R),
    /// The closure was dropped without a result, or the task has taken the result.
    Gone,
}

/// The closure's side of an [`Outcome`]. The drop of this value ends the task's wait if the closure
/// never runs, or panics.
struct Promise<R>(Arc<Mutex<Outcome<R>>>);

impl<R> Promise<R> {
    fn settle(&self, outcome: Outcome<R>) {
        let old = mem::replace(&mut *self.0.lock(), outcome);
        if let Outcome::Running(Some(waker)) = old {
            waker.wake();
        }
    }
}

impl<R> Drop for Promise<R> {
    fn drop(&mut self) {
        if matches!(*self.0.lock(), Outcome::Running(_)) {
            self.settle(Outcome::Gone);
        }
    }
}

async fn blocking<R: Send + 'static>(
    job: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    let outcome = Arc::new(Mutex::new(Outcome::Running(None)));
    let promise = Promise(outcome.clone());
    let driver = any_current_driver();
    driver.inner().poller.run_blocking(Box::new(move || {
        let done = job();
        promise.settle(Outcome::Done(done));
    }))?;
    drop(driver);
    poll_fn(|cx| {
        let waker = cx.waker().clone();
        let mut outcome = outcome.lock();
        match mem::replace(&mut *outcome, Outcome::Gone) {
            Outcome::Running(old) => {
                *outcome = Outcome::Running(Some(waker));
                drop(outcome);
                drop(old);
                Poll::Pending
            }
            Outcome::Done(done) => Poll::Ready(done),
            Outcome::Gone => Poll::Ready(Err(io::Error::other(
                "the lookup's closure did not run, or panicked",
            ))),
        }
    })
    .await
}
