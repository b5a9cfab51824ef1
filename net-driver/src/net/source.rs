//! A socket of std together with its registration.
use crate::{
    Driver, Interest, Ready, checks,
    registration::{Registration, Removal},
    slot::Direction,
    sys::{
        Os,
        handle::{self, AsRawHandle},
    },
};
use std::{
    fmt,
    future::poll_fn,
    io,
    task::{Context, Poll, ready},
};

/// A non-blocking socket that is registered.
///
/// The registration is dropped first, because its drop may need the open descriptor.
pub(crate) struct Source<T> {
    registration: Registration<Os>,
    io: T,
}

/// Returns the thread's current driver, which may have been made without sockets.
///
/// # Panics
/// If there is none.
#[track_caller]
pub(crate) fn any_current_driver() -> Driver {
    Driver::current().expect(
        "this thread has no driver of net-driver, which a socket, a pipe or a child process needs \
         (a runtime of another crate, such as tokio, has none): make it inside a runtime with such \
         a driver, as selvedge's, or enter one first (`Handle::enter`, or `Driver::enter`)",
    )
}

/// Returns the thread's current driver, for a socket.
///
/// # Panics
/// If there is none, or it was made without sockets.
#[track_caller]
pub(crate) fn current_driver() -> Driver {
    let driver = any_current_driver();
    checks::assert_has_sockets(driver.inner().left_out.sockets);
    driver
}

impl<T: AsRawHandle> Source<T> {
    /// Registers `io` with the thread's current driver. `ready` has the states in which the caller
    /// assumes `io` to be.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub(crate) fn new(io: T, ready: Ready, removal: Removal) -> io::Result<Self> {
        Self::new_in(&current_driver(), io, ready, removal)
    }

    #[cfg_attr(selvedge_sim, track_caller)]
    pub(crate) fn new_in(
        driver: &Driver,
        io: T,
        ready: Ready,
        removal: Removal,
    ) -> io::Result<Self> {
        let reactor = driver.inner().open_reactor()?;
        let registration = Registration::new(&reactor, handle::number(&io), ready, removal)?;
        Ok(Self { registration, io })
    }

    /// Registers `io`, which this source has accepted, with the driver of this source.
    pub(crate) fn adopt<U: AsRawHandle>(&self, io: U) -> io::Result<Source<U>> {
        let (reactor, fd) = (self.registration.reactor(), handle::number(&io));
        let ready = Ready::READABLE | Ready::WRITABLE;
        let registration = Registration::new(reactor, fd, ready, Removal::ByClose)?;
        Ok(Source { registration, io })
    }
}

impl<T> Source<T> {
    /// Makes a source of `io`, which is registered.
    pub(crate) fn registered(registration: Registration<Os>, io: T) -> Self {
        Self { registration, io }
    }

    pub(crate) fn io(&self) -> &T {
        &self.io
    }

    pub(crate) fn parts_mut(&mut self) -> (&Registration<Os>, &mut T) {
        (&self.registration, &mut self.io)
    }

    pub(crate) fn registration(&self) -> &Registration<Os> {
        &self.registration
    }

    /// Ends the registration, and returns the socket.
    pub(crate) fn into_inner(self) -> T {
        self.registration.detach();
        self.io
    }

    /// Performs `op` when the socket is readable.
    pub(crate) fn reading<R>(
        &self,
        op: impl FnMut() -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        self.registration.io(Interest::READABLE, op)
    }

    /// Performs `op` when the socket is writable.
    pub(crate) fn writing<R>(
        &self,
        op: impl FnMut() -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        self.registration.io(Interest::WRITABLE, op)
    }

    /// Polls for a [`reading`](Self::reading). Only the last task that polled is woken.
    pub(crate) fn poll_reading<R>(
        &self,
        cx: &mut Context<'_>,
        op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.registration.poll_io(cx, Direction::Read, op)
    }

    /// Polls for a [`writing`](Self::writing). Only the last task that polled is woken.
    pub(crate) fn poll_writing<R>(
        &self,
        cx: &mut Context<'_>,
        op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.registration.poll_io(cx, Direction::Write, op)
    }

    /// Performs `op`, which moves any number of datagrams, when the socket is ready. `datagrams`
    /// returns how many its count stands for.
    pub(crate) fn many(
        &self,
        interest: Interest,
        mut op: impl FnMut() -> io::Result<usize>,
        datagrams: impl Fn(usize) -> usize,
    ) -> impl Future<Output = io::Result<usize>> {
        let mut wait = self.registration.wait(interest);
        poll_fn(move |cx| {
            let poll_ready = |cx: &mut Context<'_>| wait.poll_ready(cx);
            self.registration
                .poll_many(cx, interest, poll_ready, &mut op, &datagrams)
        })
    }

    /// Polls for a [`many`](Self::many). Only the last task that polled is woken.
    pub(crate) fn poll_many(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        op: impl FnMut() -> io::Result<usize>,
        datagrams: impl Fn(usize) -> usize,
    ) -> Poll<io::Result<usize>> {
        let poll_ready = |cx: &mut Context<'_>| self.registration.poll_ready(cx, direction);
        let interest = direction.interest();
        self.registration
            .poll_many(cx, interest, poll_ready, op, datagrams)
    }

    /// Performs `op`, an operation of this crate, once if the socket is ready.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        op: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_io(interest, op)
    }

    /// Waits until the socket is ready for `interest`. Any number of tasks may wait.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let seen = self.registration.ready(interest).await?;
        Ok(seen.ready_for(interest))
    }

    /// Polls whether the socket is ready in one direction. Only the last task that polled is woken.
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        let progress = ready!(coop_budget::poll_proceed(cx));
        let Poll::Ready(seen) = self.registration.poll_ready(cx, direction) else {
            progress.waits_for(move || self.registration.awaits(direction.interest()));
            return Poll::Pending;
        };
        progress.made_progress();
        Poll::Ready(seen.map(drop))
    }
}

handle::impl_as_handle!([T] Source<T>, io);

impl<T: fmt::Debug> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.fmt(f)
    }
}
