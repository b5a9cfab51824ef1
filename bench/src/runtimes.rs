//! The runtimes, as the command line finds them by name.
use crate::{
    rt::{self, Ask, Http, Rt},
    workload::{Sample, Settings, sample, serve_for_ever},
};
use std::{io, net::SocketAddr, time::Duration};

/// A runtime, as the command line finds it by its name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) parallel: bool,
    pub(crate) lacks: &'static [Ask],
    /// Measures the named row with a number of workers for at least a time. `None` if there is no
    /// such row, or if the runtime or the machine cannot run the row.
    pub(crate) sample: fn(&str, usize, Settings, Duration) -> io::Result<Option<Sample>>,
    /// Starts a server of HTTP on a number of workers. The server runs as long as the process.
    /// `None` if the runtime has no such server.
    pub(crate) serve: fn(usize, Http) -> io::Result<Option<SocketAddr>>,
}

impl Entry {
    const fn of<R: Rt>() -> Self {
        Self {
            name: R::NAME,
            package: R::PACKAGE,
            parallel: R::PARALLEL,
            lacks: R::LACKS,
            sample: sample::<R>,
            serve: serve_for_ever::<R>,
        }
    }
}

/// The runtime that the others are compared with.
pub(crate) type Ours = rt::selvedge::Selvedge;

/// All runtimes, ours first.
pub(crate) const ALL: &[Entry] = &[
    Entry::of::<Ours>(),
    Entry::of::<rt::selvedge_current::CurrentThread>(),
    Entry::of::<rt::selvedge::Unlimited>(),
    Entry::of::<rt::tokio::MultiThread>(),
    Entry::of::<rt::tokio_current::CurrentThread>(),
    Entry::of::<rt::async_executor::Plain>(),
    Entry::of::<rt::async_executor::Static>(),
    Entry::of::<rt::smol::Smol>(),
    Entry::of::<rt::futures::Pool>(),
    Entry::of::<rt::nexosim::NeXosim>(),
    #[cfg(target_os = "linux")]
    Entry::of::<rt::epoll::Epoll>(),
];
