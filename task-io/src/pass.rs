//! The methods of wrappers that pass a call on to what they wrap.

/// Implements the methods of `AsyncWrite` by those of a pinned field.
macro_rules! pass_writes {
    ($field:ident) => {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.project().$field.poll_write(cx, buf)
        }

        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.project().$field.poll_flush(cx)
        }

        fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.project().$field.poll_shutdown(cx)
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.project().$field.poll_write_vectored(cx, bufs)
        }

        fn is_write_vectored(&self) -> bool {
            self.$field.is_write_vectored()
        }
    };
}
pub(crate) use pass_writes;
