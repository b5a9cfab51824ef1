//! A socket of std together with its registration.
use crate::{
    Driver, Interest, Ready,
    reactor::{Reactor, Removal},
    registration::Registration,
    slot::Direction,
    sys::Os,
};
use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    task::{Context, Poll, ready},
};

/// A non-blocking socket that is registered.
///
/// The fields drop in this order: the registration may need the open descriptor.
pub(crate) struct Source<T> {
    registration: Registration<Os>,
    io: T,
}

/// Returns the thread's driver.
///
/// # Panics
/// If there is none.
#[track_caller]
pub(crate) fn current_driver() -> Driver {
    Driver::current().expect(
        "this thread has no driver: make sockets inside a runtime, or enter one first \
         (`Handle::enter`, or `Driver::enter`)",
    )
}

impl<T: AsRawFd> Source<T> {
    /// Registers `io` with the thread's driver. `ready` has the states of `io`, as far as the
    /// caller knows.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub(crate) fn new(io: T, ready: Ready, removal: Removal) -> io::Result<Self> {
        Self::new_in(&current_driver(), io, ready, removal)
    }

    pub(crate) fn new_in(
        driver: &Driver,
        io: T,
        ready: Ready,
        removal: Removal,
    ) -> io::Result<Self> {
        let reactor = driver.inner().open_reactor()?;
        let registration = Reactor::register(&reactor, io.as_raw_fd(), ready, removal)?;
        Ok(Self { registration, io })
    }

    /// Registers `io`, whose descriptor may belong to another owner. Refuses a descriptor that is
    /// registered already.
    pub(crate) fn new_sole(driver: &Driver, io: T) -> io::Result<Self> {
        let reactor = driver.inner().open_reactor()?;
        let registration = Reactor::register_new(&reactor, io.as_raw_fd())?;
        Ok(Self { registration, io })
    }

    /// Registers `io`, which this source has accepted, with the same driver.
    pub(crate) fn adopt<U: AsRawFd>(&self, io: U) -> io::Result<Source<U>> {
        let (reactor, fd) = (self.registration.reactor(), io.as_raw_fd());
        let ready = Ready::READABLE | Ready::WRITABLE;
        let registration = Reactor::register(reactor, fd, ready, Removal::ByClose)?;
        Ok(Source { registration, io })
    }
}

impl<T> Source<T> {
    pub(crate) fn io(&self) -> &T {
        &self.io
    }

    pub(crate) fn parts_mut(&mut self) -> (&Registration<Os>, &mut T) {
        (&self.registration, &mut self.io)
    }

    pub(crate) fn registration(&self) -> &Registration<Os> {
        &self.registration
    }

    /// Ends the registration.
    pub(crate) fn into_inner(self) -> T {
        self.registration.detach();
        self.io
    }

    /// Waits for `interest`, among any number of tasks.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let seen = self.registration.ready(interest).await?;
        Ok(seen.ready_for(interest))
    }

    /// Waits for one direction, for the one task that polls it.
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        let progress = ready!(coop_budget::poll_proceed(cx));
        let seen = ready!(self.registration.poll_ready(cx, direction));
        progress.made_progress();
        Poll::Ready(seen.map(drop))
    }
}

impl<T: AsFd> AsFd for Source<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl<T: AsRawFd> AsRawFd for Source<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}

impl<T: fmt::Debug> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.fmt(f)
    }
}
