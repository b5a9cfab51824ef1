//! Our current-thread runtime, on a thread of its own beside the measuring thread. This runtime
//! runs only rows of sockets.
use super::{
    Ask, Http, Rt, Service, Socket, Work,
    selvedge::{Selvedge, serve_http_with, serve_messages_with, serve_with},
};
use ::selvedge::{Builder, Runtime};
use std::{
    future::{Future, pending},
    io,
    net::TcpListener,
    sync::Arc,
    thread,
};

/// The runtime. Its thread runs as long as the process, which takes one sample.
pub(crate) struct CurrentThread(Arc<Runtime>);

impl Rt for CurrentThread {
    const NAME: &'static str = "selvedge-current-thread";
    const PACKAGE: &'static str = Selvedge::PACKAGE;
    const PARALLEL: bool = false;
    const LACKS: &'static [Ask] = &[
        Ask::Tasks,
        Ask::Join,
        Ask::Fair,
        Ask::Background,
        Ask::Budget,
        Ask::Stop,
        Ask::Files,
    ];

    /// Starts one thread, whatever number of workers is requested.
    fn start(_: usize) -> io::Result<Self> {
        let runtime = Arc::new(Builder::new_current_thread().build()?);
        let driven = runtime.clone();
        thread::Builder::new().spawn(move || driven.block_on(pending::<()>()))?;
        Ok(Self(runtime))
    }

    fn serve(&self, listener: TcpListener, service: Service) -> io::Result<()> {
        self.spawn_outside(serve_with(listener, service));
        Ok(())
    }

    fn serve_messages(&self, socket: Socket, work: Work) -> io::Result<()> {
        self.spawn_outside(serve_messages_with(socket, work));
        Ok(())
    }

    fn serve_http(&self, listener: TcpListener, http: Http) -> io::Result<()> {
        self.spawn_outside(serve_http_with(listener, http));
        Ok(())
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(future));
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let task = self.0.spawn(future);
        async move { task.await.expect("it doesn't panic") }
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        Selvedge::spawn(future);
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        Selvedge::join(future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        Selvedge::yield_now()
    }
}
