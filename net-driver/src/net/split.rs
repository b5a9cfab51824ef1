//! The halves of a stream, borrowed and owned.
//!
//! A read by `AsyncRead` waits in the slot's cell for one reader, and a write by `AsyncWrite` in
//! the cell for one writer (see `registration.rs`). So these take the half by `&mut`. The methods
//! that take `&self` use the slot's list, and any number of tasks may wait in them.

/// Defines the halves of a stream type in their module, and the methods that make them.
macro_rules! halves {
    ($stream:ident, $addr:ty, $(#[$read:meta])*; $(#[$write:meta])*; $(#[$owned_read:meta])*;
     $(#[$owned_write:meta])*; $(#[$error:meta])*) => {
        $(#[$read])*
        #[derive(Debug)]
        pub struct ReadHalf<'a>(&'a $stream);

        $(#[$write])*
        #[derive(Debug)]
        pub struct WriteHalf<'a>(&'a $stream);

        $(#[$owned_read])*
        #[derive(Debug)]
        pub struct OwnedReadHalf(Arc<$stream>);

        $(#[$owned_write])*
        #[derive(Debug)]
        pub struct OwnedWriteHalf {
            stream: Arc<$stream>,
            /// Whether the drop shuts the stream down for writing.
            shuts_down_on_drop: bool,
        }

        $(#[$error])*
        #[derive(Debug)]
        pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

        impl $stream {
            /// Borrows both halves, so that one task can read and write at the same time.
            pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
                (ReadHalf(self), WriteHalf(self))
            }

            /// Returns both halves, for two tasks. Costs an allocation.
            pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
                let stream = Arc::new(self);
                let write = OwnedWriteHalf {
                    stream: stream.clone(),
                    shuts_down_on_drop: true,
                };
                (OwnedReadHalf(stream), write)
            }
        }

        fn reunite(
            read: OwnedReadHalf,
            mut write: OwnedWriteHalf,
        ) -> Result<$stream, ReuniteError> {
            if !Arc::ptr_eq(&read.0, &write.stream) {
                return Err(ReuniteError(read, write));
            }
            write.shuts_down_on_drop = false;
            drop(write);
            Ok(Arc::into_inner(read.0).expect("a stream has two halves"))
        }

        impl ReadHalf<'_> {
            fn stream(&self) -> &$stream {
                self.0
            }
        }

        impl WriteHalf<'_> {
            fn stream(&self) -> &$stream {
                self.0
            }

            fn close_for_writing(&mut self) -> io::Result<()> {
                self.0.shut_down_write()
            }
        }

        impl OwnedReadHalf {
            fn stream(&self) -> &$stream {
                &self.0
            }

            /// Joins the halves of one stream again.
            ///
            /// # Errors
            /// Both halves, if they are halves of two different streams.
            pub fn reunite(self, write: OwnedWriteHalf) -> Result<$stream, ReuniteError> {
                reunite(self, write)
            }
        }

        impl OwnedWriteHalf {
            fn stream(&self) -> &$stream {
                &self.stream
            }

            fn close_for_writing(&mut self) -> io::Result<()> {
                let result = self.stream.shut_down_write();
                self.shuts_down_on_drop &= result.is_err();
                result
            }

            /// Joins the halves of one stream again.
            ///
            /// # Errors
            /// Both halves, if they are halves of two different streams.
            pub fn reunite(self, read: OwnedReadHalf) -> Result<$stream, ReuniteError> {
                reunite(read, self)
            }

            /// Drops this half without closing the stream for writing.
            pub fn forget(mut self) {
                self.shuts_down_on_drop = false;
            }
        }

        impl Drop for OwnedWriteHalf {
            fn drop(&mut self) {
                if self.shuts_down_on_drop {
                    // An error says that the stream is not connected any more.
                    let _ = self.stream.shut_down_write();
                }
            }
        }

        impl std::fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the halves are of two streams")
            }
        }

        impl std::error::Error for ReuniteError {}

        split::half_methods!(ReadHalf<'_>, $stream, $addr);
        split::half_methods!(WriteHalf<'_>, $stream, $addr);
        split::half_methods!(OwnedReadHalf, $stream, $addr);
        split::half_methods!(OwnedWriteHalf, $stream, $addr);
        split::read_methods!(ReadHalf<'_>);
        split::read_methods!(OwnedReadHalf);
        split::write_methods!(WriteHalf<'_>);
        split::write_methods!(OwnedWriteHalf);
        stream_io::impl_read!(ReadHalf<'_>);
        stream_io::impl_read!(OwnedReadHalf);
        stream_io::impl_write!(WriteHalf<'_>);
        stream_io::impl_write!(OwnedWriteHalf);
    };
}

macro_rules! half_methods {
    ($type:ty, $stream:ident, $addr:ty) => {
        impl $type {
            /// Waits until the stream is ready for any state of `interest`.
            ///
            /// # Errors
            /// If the driver has shut down.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.stream().ready(interest).await
            }

            /// Returns the address of the other side.
            ///
            /// # Errors
            /// If the stream is not connected any more.
            pub fn peer_addr(&self) -> io::Result<$addr> {
                self.stream().peer_addr()
            }

            /// Returns the address of this side.
            ///
            /// # Errors
            /// If the system call fails.
            pub fn local_addr(&self) -> io::Result<$addr> {
                self.stream().local_addr()
            }
        }

        impl AsRef<$stream> for $type {
            fn as_ref(&self) -> &$stream {
                self.stream()
            }
        }
    };
}

macro_rules! read_methods {
    ($type:ty) => {
        impl $type {
            /// Waits until the stream is readable.
            ///
            /// # Errors
            /// If the driver has shut down.
            pub async fn readable(&self) -> io::Result<()> {
                self.stream().readable().await
            }

            /// Reads without a wait.
            ///
            /// # Errors
            /// `WouldBlock` if there is nothing to read yet.
            pub fn try_read(&self, to: &mut [u8]) -> io::Result<usize> {
                self.stream().try_read(to)
            }

            /// Reads into the next free memory of a buffer without a wait, and advances the buffer.
            ///
            /// # Errors
            /// As [`try_read`](Self::try_read).
            pub fn try_read_buf<B: bytes::BufMut>(&self, to: &mut B) -> io::Result<usize> {
                self.stream().try_read_buf(to)
            }

            /// Reads into several buffers without a wait.
            ///
            /// # Errors
            /// As [`try_read`](Self::try_read).
            pub fn try_read_vectored(&self, to: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.stream().try_read_vectored(to)
            }
        }
    };
}

macro_rules! write_methods {
    ($type:ty) => {
        impl $type {
            /// Waits until the stream is writable.
            ///
            /// # Errors
            /// If the driver has shut down.
            pub async fn writable(&self) -> io::Result<()> {
                self.stream().writable().await
            }

            /// Writes without a wait.
            ///
            /// # Errors
            /// `WouldBlock` if there is no room yet.
            pub fn try_write(&self, from: &[u8]) -> io::Result<usize> {
                self.stream().try_write(from)
            }

            /// Writes from several buffers without a wait.
            ///
            /// # Errors
            /// As [`try_write`](Self::try_write).
            pub fn try_write_vectored(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
                self.stream().try_write_vectored(from)
            }
        }
    };
}

pub(crate) use {half_methods, halves, read_methods, write_methods};
