//! async-executor's two executors, each with the requested number of threads. The threads run as
//! long as the process, which takes one sample.
use super::{Ask, Http, Rt, http::serve_async_io};
use async_executor::{Executor, StaticExecutor};
use futures_lite::future;
use smol_hyper::rt::SmolTimer;
use std::{future::Future, io, net::TcpListener, thread};

/// Implements [`Rt`] for an executor in a static. Both kinds of executor have the same methods, but
/// no common trait.
macro_rules! runtime {
    ($(#[$doc:meta])* $runtime:ident, $name:literal, $executor:ty) => {
        $(#[$doc])*
        pub(crate) struct $runtime;

        impl $runtime {
            fn executor() -> &'static $executor {
                static EXECUTOR: $executor = <$executor>::new();
                &EXECUTOR
            }
        }

        impl Rt for $runtime {
            const NAME: &'static str = $name;
            const PACKAGE: &'static str = "async-executor";
            // It lacks sockets, timers and a server. `Foreign` is not listed: those rows bring
            // async-io's sockets, so they need only tasks.
            const LACKS: &'static [Ask] = &[
                Ask::Blocking,
                Ask::Budget,
                Ask::Http,
                Ask::Hyper,
                Ask::Net,
                Ask::Stop,
                Ask::Timers,
                Ask::Files,
            ];

            fn start(workers: usize) -> io::Result<Self> {
                for _ in 0..workers {
                    let run = || future::block_on(Self::executor().run(future::pending()));
                    thread::Builder::new().spawn::<_, ()>(run)?;
                }
                Ok(Self)
            }

            /// Only the rows that ask for `Foreign` call this.
            fn serve_http(&self, listener: TcpListener, http: Http) -> io::Result<()> {
                self.spawn_outside(serve_async_io::<Self, _>(listener, http, SmolTimer::new));
                Ok(())
            }

            fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
                Self::executor().spawn(future).detach();
            }

            fn join_outside<T: Send + 'static>(
                &self,
                future: impl Future<Output = T> + Send + 'static,
            ) -> impl Future<Output = T> + Send {
                Self::executor().spawn(future)
            }

            fn spawn(future: impl Future<Output = ()> + Send + 'static) {
                Self::executor().spawn(future).detach();
            }

            fn join<T: Send + 'static>(
                future: impl Future<Output = T> + Send + 'static,
            ) -> impl Future<Output = T> + Send {
                Self::executor().spawn(future)
            }

            fn yield_now() -> impl Future<Output = ()> + Send {
                future::yield_now()
            }
        }
    };
}

runtime!(
    /// The executor that can be dropped: it keeps a list of its tasks for this.
    Plain,
    "async-executor",
    Executor<'static>
);
runtime!(
    /// The executor that lives forever; its authors offer it for speed.
    Static,
    "async-executor-static",
    StaticExecutor
);
