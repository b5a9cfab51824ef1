//! Sockets, under tokio's names, from [`net_driver::net`]. On Unix and Windows.
//!
//! A socket is made in a task, in a runtime's `block_on`, or where a runtime's
//! [`Handle`](crate::Handle) was entered. The socket belongs to that runtime. One idle worker of
//! the runtime waits for all of its sockets, in the kernel's poller. A busy worker looks at the
//! sockets between its tasks. Each operation is charged to the task's budget.
//!
//! The streams have `AsyncRead` and `AsyncWrite` of [`io`](crate::io), of `futures-io` and, with
//! the feature `tokio`, of tokio.
//!
//! Names of hosts are looked up on the threads of [`spawn_blocking`](crate::spawn_blocking).
//!
//! ```
//! use futures::{AsyncReadExt, AsyncWriteExt};
//! use selvedge::net::{TcpListener, TcpStream};
//!
//! let runtime = selvedge::Runtime::new()?;
//! runtime.block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let mut client = TcpStream::connect(listener.local_addr()?).await?;
//!     let echo = selvedge::spawn(async move {
//!         let (mut stream, _) = listener.accept().await?;
//!         let mut message = [0; 5];
//!         stream.read_exact(&mut message).await?;
//!         stream.write_all(&message).await
//!     });
//!     client.write_all(b"hello").await?;
//!     let mut back = [0; 5];
//!     client.read_exact(&mut back).await?;
//!     assert_eq!(&back, b"hello");
//!     echo.await.unwrap()
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
pub use net_driver::net::*;
pub use net_driver::{Interest, Polling, Ready};
