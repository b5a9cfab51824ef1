//! `Builder`: the options of a page.
use crate::{Page, ServeError, Stalls, access::Access, server, site::Site};
use selvedge::Handle;
use std::{
    fmt,
    net::{TcpListener, ToSocketAddrs},
};

/// Serves the page of the current runtime, with the options of [`Builder::new`].
///
/// ```
/// let runtime = selvedge::Builder::new().list_tasks(true).build()?;
/// let _entered = runtime.enter();
/// let page = selvedge_top::serve("127.0.0.1:0")?;
/// println!("see http://{}/", page.local_addr());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`Builder::serve`] returns them.
pub fn serve(address: impl ToSocketAddrs) -> Result<Page, ServeError> {
    Builder::new().serve(address)
}

/// The options of a page.
///
/// ```
/// use selvedge_top::{Builder, Stalls};
///
/// let stalls = Stalls::new();
/// let runtime = selvedge::Builder::new()
///     .list_tasks(true)
///     .measure_busy(true)
///     .on_stall(stalls.hook())
///     .build()?;
/// let scheduler = process_scheduler::Scheduler::new();
///
/// let page = Builder::new()
///     .runtime(runtime.handle())
///     .stalls(&stalls)
///     .processes("accounts", &scheduler.handle())
///     .token("correct-horse-battery") // From a file or the environment, in earnest.
///     .host("metrics.example.com")
///     .serve("127.0.0.1:0")?;
/// # drop(page);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
#[must_use = "a builder does nothing until `serve`"]
pub struct Builder {
    runtime: Option<Handle>,
    token: Option<String>,
    hosts: Vec<String>,
    stalls: Option<Stalls>,
    #[cfg(feature = "processes")]
    schedulers: Vec<(String, process_scheduler::Handle)>,
}

impl Builder {
    /// Makes a builder of a page without a token, for the current runtime.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the runtime that the page shows: by default the one in which
    /// [`serve`](Self::serve) is called.
    pub fn runtime(mut self, runtime: &Handle) -> Self {
        self.runtime = Some(runtime.clone());
        self
    }

    /// Sets the token that each request for data must have: 16 to 128 letters, digits and
    /// characters of `-._~`.
    ///
    /// A browser opens `/?token=…` once. The page sets a cookie then, which is good until the page
    /// ends, and takes the token out of the address. A program sends the header
    /// `Authorization: Bearer …`.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Adds a name by which browsers may call the page, without a port.
    ///
    /// By default only `localhost` and addresses are allowed: a name that an attacker owns may lead
    /// to this machine, too. Add the name under which a proxy forwards requests: at
    /// whichever port, a page with this name may send requests that change something.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// Shows the stalls that [`Stalls::hook`] has received.
    pub fn stalls(mut self, stalls: &Stalls) -> Self {
        self.stalls = Some(stalls.clone());
        self
    }

    /// Shows the processes of a scheduler, under a name.
    #[cfg(feature = "processes")]
    pub fn processes(
        mut self,
        name: impl Into<String>,
        scheduler: &process_scheduler::Handle,
    ) -> Self {
        self.schedulers.push((name.into(), scheduler.clone()));
        self
    }

    /// Serves the page on an address, from a thread of its own, until the returned [`Page`] is
    /// dropped.
    ///
    /// The thread has a runtime of its own. So the page answers even if all workers of the
    /// program's runtime are stuck, and its tasks are not among those that it shows.
    ///
    /// # Errors
    /// [`NeedsToken`](ServeError::NeedsToken) if the address is not a loopback one and there is no
    /// token; [`BadToken`](ServeError::BadToken); [`NoRuntime`](ServeError::NoRuntime);
    /// [`Io`](ServeError::Io).
    pub fn serve(self, address: impl ToSocketAddrs) -> Result<Page, ServeError> {
        let runtime = match self.runtime {
            Some(runtime) => runtime,
            None => Handle::try_current()?,
        };
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        let open = addresses.iter().find(|address| !address.ip().is_loopback());
        if let (Some(open), None) = (open, &self.token) {
            return Err(ServeError::NeedsToken(*open));
        }
        let mut access = Access::new(self.token, self.hosts)?;
        let listener = TcpListener::bind(&*addresses)?;
        access.set_port(listener.local_addr()?.port());
        let site = Site::new(
            runtime,
            access,
            self.stalls,
            #[cfg(feature = "processes")]
            self.schedulers,
        );
        server::start(listener, site)
    }
}

/// Does not write the token.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("has_token", &self.token.is_some())
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}
