//! The traits of the types that the table `docs/from-tokio.md` calls the same. A program that moves
//! a value into a thread, a task or `catch_unwind`, or prints, copies or compares it, needs them.
#![cfg(target_os = "linux")]
use std::{
    fmt::Debug,
    future::Ready,
    hash::Hash,
    marker::PhantomData,
    os::fd::OwnedFd,
    panic::{RefUnwindSafe, UnwindSafe},
};

/// A type's name, and whether it has each trait of [`NAMES`].
type Row = (&'static str, [bool; NAMES.len()]);

struct Probe<T>(PhantomData<T>);

impl<T> Otherwise for Probe<T> {}

macro_rules! traits {
    ($($name:ident: $bound:path,)*) => {
        /// The default of each constant of a probe. If `T` has the trait, an inherent constant of
        /// the same name hides the default.
        trait Otherwise {
            $(const $name: bool = false;)*
        }

        $(impl<T: $bound> Probe<T> { const $name: bool = true; })*

        const NAMES: &[&str] = &[$(stringify!($bound)),*];
    };
}

traits! {
    SEND: Send,
    SYNC: Sync,
    UNPIN: Unpin,
    UNWIND_SAFE: UnwindSafe,
    REF_UNWIND_SAFE: RefUnwindSafe,
    DEBUG: Debug,
    CLONE: Clone,
    COPY: Copy,
    DEFAULT: Default,
    EQ: Eq,
    HASH: Hash,
    ORD: Ord,
}

macro_rules! rows {
    ($($type:ty,)*) => {
        [$((
            stringify!($type),
            [
                <Probe<$type>>::SEND,
                <Probe<$type>>::SYNC,
                <Probe<$type>>::UNPIN,
                <Probe<$type>>::UNWIND_SAFE,
                <Probe<$type>>::REF_UNWIND_SAFE,
                <Probe<$type>>::DEBUG,
                <Probe<$type>>::CLONE,
                <Probe<$type>>::COPY,
                <Probe<$type>>::DEFAULT,
                <Probe<$type>>::EQ,
                <Probe<$type>>::HASH,
                <Probe<$type>>::ORD,
            ],
        )),*]
    };
}

macro_rules! types {
    ($rt:ident) => {
        rows! {
            $rt::fs::DirBuilder,
            $rt::fs::DirEntry,
            $rt::fs::File,
            $rt::fs::OpenOptions,
            $rt::fs::ReadDir,
            $rt::io::BufReader<$rt::io::Stdin>,
            $rt::io::BufStream<$rt::io::DuplexStream>,
            $rt::io::BufWriter<$rt::io::Stdout>,
            $rt::io::Chain<$rt::io::Stdin, $rt::io::Stdin>,
            $rt::io::DuplexStream,
            $rt::io::Empty,
            $rt::io::Interest,
            $rt::io::Join<$rt::io::Stdin, $rt::io::Stdout>,
            $rt::io::Lines<$rt::io::BufReader<$rt::io::Stdin>>,
            $rt::io::ReadBuf<'static>,
            $rt::io::ReadHalf<$rt::io::DuplexStream>,
            $rt::io::Ready,
            $rt::io::Repeat,
            $rt::io::SimplexStream,
            $rt::io::Sink,
            $rt::io::Split<$rt::io::BufReader<$rt::io::Stdin>>,
            $rt::io::Stderr,
            $rt::io::Stdin,
            $rt::io::Stdout,
            $rt::io::Take<$rt::io::Stdin>,
            $rt::io::WriteHalf<$rt::io::DuplexStream>,
            $rt::io::unix::AsyncFd<OwnedFd>,
            $rt::io::unix::AsyncFdReadyGuard<'static, OwnedFd>,
            $rt::io::unix::AsyncFdReadyMutGuard<'static, OwnedFd>,
            $rt::io::unix::TryIoError,
            $rt::net::TcpListener,
            $rt::net::TcpSocket,
            $rt::net::TcpStream,
            $rt::net::UdpSocket,
            $rt::net::UnixDatagram,
            $rt::net::UnixListener,
            $rt::net::UnixSocket,
            $rt::net::UnixStream,
            $rt::net::tcp::OwnedReadHalf,
            $rt::net::tcp::OwnedWriteHalf,
            $rt::net::tcp::ReadHalf<'static>,
            $rt::net::tcp::ReuniteError,
            $rt::net::tcp::WriteHalf<'static>,
            $rt::net::unix::OwnedReadHalf,
            $rt::net::unix::OwnedWriteHalf,
            $rt::net::unix::ReadHalf<'static>,
            $rt::net::unix::ReuniteError,
            $rt::net::unix::SocketAddr,
            $rt::net::unix::UCred,
            $rt::net::unix::WriteHalf<'static>,
            $rt::net::unix::pipe::OpenOptions,
            $rt::net::unix::pipe::Receiver,
            $rt::net::unix::pipe::Sender,
            $rt::process::Child,
            $rt::process::ChildStderr,
            $rt::process::ChildStdin,
            $rt::process::ChildStdout,
            $rt::process::Command,
            $rt::runtime::Builder,
            $rt::runtime::EnterGuard<'static>,
            $rt::runtime::Handle,
            $rt::runtime::Id,
            $rt::runtime::LocalOptions,
            $rt::runtime::LocalRuntime,
            $rt::runtime::Runtime,
            $rt::runtime::RuntimeFlavor,
            $rt::runtime::RuntimeMetrics,
            $rt::runtime::TryCurrentError,
            $rt::signal::unix::Signal,
            $rt::signal::unix::SignalKind,
            $rt::task::AbortHandle,
            $rt::task::Id,
            $rt::task::JoinError,
            $rt::task::JoinHandle<u8>,
            $rt::task::JoinSet<u8>,
            $rt::task::LocalEnterGuard,
            $rt::task::LocalKey<u8>,
            $rt::task::LocalSet,
            $rt::task::coop::Coop<Ready<u8>>,
            $rt::task::coop::RestoreOnPending,
            $rt::task::coop::Unconstrained<Ready<u8>>,
            $rt::task::futures::TaskLocalFuture<u8, Ready<u8>>,
            $rt::time::Instant,
            $rt::time::Interval,
            $rt::time::MissedTickBehavior,
            $rt::time::Sleep,
            $rt::time::Timeout<Ready<u8>>,
            $rt::time::error::Elapsed,
            $rt::time::error::Error,
        }
    };
}

/// Fails if a type lacks a trait that tokio's type of the same name has.
#[test]
fn types_have_the_traits_of_tokios() {
    let (theirs, ours): (Vec<Row>, Vec<Row>) = (types!(tokio).into(), types!(selvedge).into());
    let mut lacking = Vec::new();
    for ((_, they), (ours, we)) in theirs.into_iter().zip(ours) {
        for ((name, they), we) in NAMES.iter().zip(they).zip(we) {
            if they && !we {
                lacking.push(format!("{ours}: {name}"));
            }
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}
