//! Systems without a poller that this crate knows: timers only.
use super::{Fd, Sys};
use crate::Ready;
use std::{convert::Infallible, io, time::Duration};

/// Stands for a poller. It has no values, as `open` always fails.
#[derive(Debug)]
pub(crate) struct NoSys(Infallible);

impl Sys for NoSys {
    const CLOSE_DEREGISTERS: bool = false;
    const REPORTS_CLOSE: bool = false;

    fn open() -> io::Result<Self> {
        let why = "there are no sockets on this system";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    fn register(&self, _: Fd, _: u64) -> io::Result<()> {
        match self.0 {}
    }

    fn replace(&self, _: Fd, _: u64) -> io::Result<()> {
        match self.0 {}
    }

    fn deregister(&self, _: Fd, _: u64) -> io::Result<()> {
        match self.0 {}
    }

    fn wait(&self, _: Option<Duration>, _: usize, _: impl FnMut(u64, Ready)) -> io::Result<bool> {
        match self.0 {}
    }

    fn wake(&self) {
        match self.0 {}
    }
}
