//! The traits for reading and writing, of `futures-io`, of `task-io`, and of tokio.

/// Implements the traits for reading, for a type with a method `poll_take`. That method polls for
/// up to `room` bytes, and passes them to a closure.
macro_rules! impl_read {
    ($type:ty) => {
        impl futures_io::AsyncRead for $type {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                to: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.poll_take(cx, to.len(), |bytes| {
                    to[..bytes.len()].copy_from_slice(bytes)
                })
            }
        }

        crate::traits::impl_read_buf!($type, task_io);
        #[cfg(feature = "tokio")]
        crate::traits::impl_read_buf!($type, tokio::io);
    };
}

/// Implements `AsyncRead` of the module `$io`, whose reads take a `ReadBuf`.
macro_rules! impl_read_buf {
    ($type:ty, $($io:ident)::+) => {
        impl $($io)::+::AsyncRead for $type {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                to: &mut $($io)::+::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.poll_take(cx, to.remaining(), |bytes| to.put_slice(bytes)).map_ok(drop)
            }
        }
    };
}

/// Implements the traits for writing, for a type with a method `poll_put`, which queues bytes, and
/// a method `poll_done`, which waits until they are written.
macro_rules! impl_write {
    ($type:ty) => {
        crate::traits::impl_write_of!($type, poll_close, futures_io);
        crate::traits::impl_write_of!($type, poll_shutdown, task_io {
            fn is_write_vectored(&self) -> bool {
                true
            }
        });
        #[cfg(feature = "tokio")]
        crate::traits::impl_write_of!($type, poll_shutdown, tokio::io {
            fn is_write_vectored(&self) -> bool {
                true
            }
        });
    };
}

/// Implements `AsyncWrite` of the module `$io`. `$close` is the name of the method that closes,
/// which only flushes: a drop closes the descriptor.
macro_rules! impl_write_of {
    ($type:ty, $close:ident, $($io:ident)::+ $({ $($more:tt)* })?) => {
        impl $($io)::+::AsyncWrite for $type {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                from: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.get_mut().poll_put(cx, &[std::io::IoSlice::new(from)])
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                from: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.get_mut().poll_put(cx, from)
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.get_mut().poll_done(cx)
            }

            fn $close(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.get_mut().poll_done(cx)
            }

            $($($more)*)?
        }
    };
}

/// Implements the traits for seeking, for a type with a field `cursor`.
macro_rules! impl_seek {
    ($type:ty) => {
        impl futures_io::AsyncSeek for $type {
            fn poll_seek(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                to: std::io::SeekFrom,
            ) -> std::task::Poll<std::io::Result<u64>> {
                self.cursor.poll_seek(cx, to)
            }
        }

        crate::traits::impl_seek_in_steps!($type, task_io);
        #[cfg(feature = "tokio")]
        crate::traits::impl_seek_in_steps!($type, tokio::io);
    };
}

/// Implements `AsyncSeek` of the module `$io`, which starts a seek and then waits for it.
macro_rules! impl_seek_in_steps {
    ($type:ty, $($io:ident)::+) => {
        impl $($io)::+::AsyncSeek for $type {
            fn start_seek(
                self: std::pin::Pin<&mut Self>,
                to: std::io::SeekFrom,
            ) -> std::io::Result<()> {
                self.cursor.try_start_seek(to)
            }

            fn poll_complete(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<u64>> {
                self.cursor.poll_sought(cx)
            }
        }
    };
}

pub(crate) use {
    impl_read, impl_read_buf, impl_seek, impl_seek_in_steps, impl_write, impl_write_of,
};
