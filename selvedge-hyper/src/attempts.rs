//! The attempts to connect to the addresses of a host, as RFC 8305 says ("Happy Eyeballs").
//!
//! 1. The addresses are tried in the order of the lookup, but the families alternate
//!    ([`alternate`]). So a network that drops the packets of one family costs one pause.
//! 2. The next attempt begins 250 ms after the last one began, or as soon as an attempt fails.
//!    Earlier attempts continue. While 8 attempts run, the next one waits until one of them fails.
//! 3. The first connection wins. The other attempts are dropped, which closes their sockets.
use selvedge::time::{self, Sleep};
use std::{
    collections::VecDeque,
    error::Error,
    fmt,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// The time from the start of one attempt to the start of the next: the value that the RFC
/// recommends.
pub(crate) const STAGGER: Duration = Duration::from_millis(250);

/// The most attempts that run at a time. Each of them has a descriptor.
const MOST: usize = 8;

/// Returns each address once, in an order in which the families alternate. Within a family the
/// order stays.
pub(crate) fn alternate(addresses: impl IntoIterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let (mut first, mut second) = (VecDeque::<SocketAddr>::new(), VecDeque::new());
    for address in addresses {
        let is_first = first
            .front()
            .is_none_or(|of| of.is_ipv4() == address.is_ipv4());
        let family = if is_first { &mut first } else { &mut second };
        if !family.contains(&address) {
            family.push_back(address);
        }
    }
    let mut alternating = VecDeque::with_capacity(first.len() + second.len());
    while !(first.is_empty() && second.is_empty()) {
        alternating.extend(first.pop_front());
        alternating.extend(second.pop_front());
    }
    alternating
}

/// The attempts to connect to one host. [`poll`](Self::poll) is ready with the first connection, or
/// when all attempts have failed.
pub(crate) struct Race<C, F> {
    connect: C,
    waiting: VecDeque<SocketAddr>,
    running: Vec<(SocketAddr, Pin<Box<F>>)>,
    failed: Vec<(SocketAddr, io::Error)>,
    /// The pause before the next attempt. `None` until the first attempt has begun.
    stagger: Option<Pin<Box<Sleep>>>,
}

impl<C, F, T> Race<C, F>
where
    C: Fn(SocketAddr) -> F,
    F: Future<Output = io::Result<T>>,
{
    /// Prepares attempts to these addresses, in this order.
    pub(crate) fn new(addresses: VecDeque<SocketAddr>, connect: C) -> Self {
        Self {
            connect,
            waiting: addresses,
            running: Vec::new(),
            failed: Vec::new(),
            stagger: None,
        }
    }

    /// Polls the attempts, and begins the next one if it is due. Returns the first connection, or
    /// `None` when all attempts have failed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        loop {
            let failures = self.failed.len();
            let mut at = 0;
            while let Some((address, attempt)) = self.running.get_mut(at) {
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(connection)) => return Poll::Ready(Some(connection)),
                    Poll::Ready(Err(error)) => {
                        self.failed.push((*address, error));
                        drop(self.running.remove(at));
                    }
                    Poll::Pending => at += 1,
                }
            }
            if self.waiting.is_empty() {
                return match self.running.is_empty() {
                    true => Poll::Ready(None),
                    false => Poll::Pending,
                };
            }
            let has_failed = self.failed.len() > failures;
            let is_full = self.running.len() >= MOST;
            if is_full || (!has_failed && self.poll_stagger(cx).is_pending()) {
                return Poll::Pending;
            }
            self.begin_next();
        }
    }

    fn poll_stagger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.stagger {
            None => Poll::Ready(()),
            Some(stagger) => stagger.as_mut().poll(cx),
        }
    }

    fn begin_next(&mut self) {
        let Some(address) = self.waiting.pop_front() else {
            return;
        };
        self.running
            .push((address, Box::pin((self.connect)(address))));
        if self.waiting.is_empty() {
            return;
        }
        match &mut self.stagger {
            None => self.stagger = Some(Box::pin(time::sleep(STAGGER))),
            Some(stagger) => stagger.as_mut().reset(time::Instant::now() + STAGGER),
        }
    }

    /// Ends all attempts. Returns the attempts that were begun.
    pub(crate) fn into_attempts(self) -> Attempts {
        let failed = self.failed.into_iter();
        let failed = failed.map(|(address, error)| (address, Some(error)));
        let running = self.running.into_iter().map(|(address, _)| (address, None));
        failed.chain(running).collect()
    }
}

/// The addresses that a [`Connector`](crate::Connector) tried without success. Each has an error,
/// except an address that had not answered when the time was up.
///
/// `Display` names all of them.
///
/// ```
/// use selvedge_hyper::{Attempts, ConnectError, Connector};
/// use std::{io::ErrorKind, net::TcpListener};
/// use tower_service::Service;
///
/// // A port where nobody listens any more.
/// let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let uri: hyper::Uri = format!("http://{address}/").parse().unwrap();
/// let error = selvedge::Runtime::new()?.block_on(Connector::new().call(uri)).unwrap_err();
/// let ConnectError::Connect(_, attempts) = &error else { panic!("{error}") };
/// let tried: Vec<_> = attempts.iter().map(|(address, _)| address).collect();
/// assert_eq!(tried, [address]);
/// assert_eq!(attempts.last_error().unwrap().kind(), ErrorKind::ConnectionRefused);
/// assert!(attempts.to_string().starts_with(&format!("{address}: ")));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Attempts(Vec<(SocketAddr, Option<io::Error>)>);

impl Attempts {
    /// Returns the addresses: first those that failed, in the order of their failures, and then
    /// those that had not answered when the time was up, without an error.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SocketAddr, Option<&io::Error>)> {
        self.0
            .iter()
            .map(|(address, error)| (*address, error.as_ref()))
    }

    /// Returns the error of the attempt that failed last.
    pub fn last_error(&self) -> Option<&io::Error> {
        self.0.iter().rev().find_map(|(_, error)| error.as_ref())
    }

    /// Returns whether no attempt was begun.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Makes attempts, for a connector that wraps other connectors and for tests.
impl FromIterator<(SocketAddr, Option<io::Error>)> for Attempts {
    fn from_iter<I: IntoIterator<Item = (SocketAddr, Option<io::Error>)>>(attempts: I) -> Self {
        Self(attempts.into_iter().collect())
    }
}

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no address was tried");
        }
        for (n, (address, error)) in self.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            match error {
                Some(error) => write!(f, "{separator}{address}: {error}")?,
                None => write!(f, "{separator}{address}: no answer")?,
            }
        }
        Ok(())
    }
}

/// There is no [`source`](Error::source): the message names all errors.
impl Error for Attempts {}

#[cfg(test)]
mod tests;
