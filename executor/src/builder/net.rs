//! The builder's settings of sockets. They exist where sockets do.
use crate::{Builder, Polling};

impl Builder {
    /// Sets how the sockets are polled: see [`Polling`](crate::Polling). This setting has no
    /// effect if workers wait in a [driver](Self::driver) of your own, or are driven. In both cases
    /// a thread waits for the sockets.
    ///
    /// ```
    /// use selvedge_executor::{Builder, Polling};
    ///
    /// let runtime = Builder::new().workers(2).poller(Polling::Thread).build()?;
    /// # drop(runtime);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn poller(mut self, polling: Polling) -> Self {
        self.polling = polling;
        self
    }

    /// Lets [`build`](Self::build) make the kernel objects that sockets need. If the kernel refuses
    /// them, `build` returns the error. Sockets also work without this setting: the first socket
    /// then makes these objects, and the call that makes the socket returns the error. This method
    /// exists where sockets exist: with the feature `net`, on Unix and Windows.
    ///
    /// ```
    /// use net_driver::net::TcpListener;
    ///
    /// let runtime = selvedge_executor::Builder::new().enable_io().build()?;
    /// let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_io(mut self) -> Self {
        self.enable_io = true;
        self
    }

    /// Leaves sleeps or sockets out, as tokio does without `enable_time` and `enable_io`. The
    /// package `tokio-facade` calls this. It has no effect on drivers from the builder, nor on
    /// driven workers.
    #[doc(hidden)]
    pub fn without(mut self, sleeps: bool, sockets: bool) -> Self {
        self.no_sleeps = sleeps;
        self.no_sockets = sockets;
        self
    }

    /// Sets how many events of sockets a worker takes from the kernel at once. 64 by default (1,024
    /// in tokio).
    ///
    /// Further events wait for the next look. The tasks of all events that a worker takes go to its
    /// own queue. So a small number keeps the queue short under load, and a large one saves system
    /// calls. A number above 65,536 counts as that number.
    ///
    /// ```
    /// use net_driver::net::UnixStream;
    /// use selvedge_executor::Builder;
    ///
    /// let runtime = Builder::new().workers(1).max_io_events_per_tick(1).build()?;
    /// runtime.block_on(async {
    ///     let (one, other) = UnixStream::pair()?;
    ///     one.try_write(b"a")?;
    ///     other.readable().await
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `events` is 0.
    #[track_caller]
    pub fn max_io_events_per_tick(mut self, events: usize) -> Self {
        assert!(events > 0, "a worker takes at least 1 event at once, not 0");
        self.max_io_events = Some(events);
        self
    }

    /// Sets how many events a worker that has tasks to run takes at once. The default is the number
    /// of [`max_io_events_per_tick`](Self::max_io_events_per_tick), which is also the largest
    /// number that has an effect.
    ///
    /// The number is also the largest argument of [`Park::poll`](crate::park::Park::poll) of a
    /// [driver](Self::driver) of your own. A worker takes fewer events if its ring has room for
    /// less than twice the number.
    ///
    /// ```
    /// use selvedge_executor::Builder;
    ///
    /// let runtime = Builder::new().workers(1).max_io_events_per_busy_tick(8).build()?;
    /// # drop(runtime);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `events` is 0.
    #[track_caller]
    pub fn max_io_events_per_busy_tick(mut self, events: usize) -> Self {
        assert!(events > 0, "a worker takes at least 1 event at once, not 0");
        self.max_busy_io_events = Some(events);
        self
    }
}
