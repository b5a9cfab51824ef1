//! Readiness, and file descriptors that the runtime did not open (`AsyncFd`).

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{
                future::poll_fn,
                io::{self, ErrorKind, Read, Write},
                os::unix::net::UnixStream,
            };

            fn pair() -> io::Result<(UnixStream, UnixStream)> {
                let (one, other) = UnixStream::pair()?;
                one.set_nonblocking(true)?;
                other.set_nonblocking(true)?;
                Ok((one, other))
            }

            fn interests(log: &mut Vec<String>) {
                let all: [$rt::io::Interest; 4] = [
                    $rt::io::Interest::READABLE,
                    $rt::io::Interest::WRITABLE,
                    $rt::io::Interest::PRIORITY,
                    $rt::io::Interest::ERROR,
                ];
                for one in all {
                    log.push(format!(
                        "{} {} {} {}",
                        $rt::io::Interest::is_readable(one),
                        $rt::io::Interest::is_writable(one),
                        $rt::io::Interest::is_priority(one),
                        $rt::io::Interest::is_error(one),
                    ));
                }
                let both = $rt::io::Interest::add(
                    $rt::io::Interest::READABLE,
                    $rt::io::Interest::WRITABLE,
                );
                log.push(format!(
                    "{}",
                    both == $rt::io::Interest::READABLE | $rt::io::Interest::WRITABLE
                ));
                for other in [$rt::io::Interest::READABLE, $rt::io::Interest::ERROR, both] {
                    let left: Option<$rt::io::Interest> = $rt::io::Interest::remove(both, other);
                    log.push(format!("{:?}", left.map($rt::io::Interest::is_readable)));
                }
            }

            fn readiness(log: &mut Vec<String>) {
                let all: [$rt::io::Ready; 8] = [
                    $rt::io::Ready::EMPTY,
                    $rt::io::Ready::READABLE,
                    $rt::io::Ready::WRITABLE,
                    $rt::io::Ready::READ_CLOSED,
                    $rt::io::Ready::WRITE_CLOSED,
                    $rt::io::Ready::PRIORITY,
                    $rt::io::Ready::ERROR,
                    $rt::io::Ready::ALL,
                ];
                for one in all {
                    log.push(format!(
                        "{} {} {} {} {} {} {}",
                        $rt::io::Ready::is_empty(one),
                        $rt::io::Ready::is_readable(one),
                        $rt::io::Ready::is_writable(one),
                        $rt::io::Ready::is_read_closed(one),
                        $rt::io::Ready::is_write_closed(one),
                        $rt::io::Ready::is_priority(one),
                        $rt::io::Ready::is_error(one),
                    ));
                }
                log.push(format!(
                    "{}",
                    $rt::io::Ready::READABLE | $rt::io::Ready::WRITABLE
                        == $rt::io::Ready::WRITABLE | $rt::io::Ready::READABLE
                ));
            }

            async fn descriptors(log: &mut Vec<String>) -> io::Result<()> {
                use $rt::io::{Interest, Ready};
                type Fd = $rt::io::unix::AsyncFd<UnixStream>;

                let (one, mut other) = pair()?;
                let mut fd: Fd = $rt::io::unix::AsyncFd::new(one)?;
                let mut to = [0; 2];
                other.write_all(b"abcdefgh")?;

                let mut guard: $rt::io::unix::AsyncFdReadyGuard<'_, UnixStream> =
                    $rt::io::unix::AsyncFd::readable(&fd).await?;
                let ready = $rt::io::unix::AsyncFdReadyGuard::ready(&guard);
                log.push(format!("{}", ready.is_readable()));
                let inner = $rt::io::unix::AsyncFdReadyGuard::get_inner(&guard);
                log.push(format!("{:?}", inner.peer_addr()?.is_unnamed()));
                let same = $rt::io::unix::AsyncFdReadyGuard::get_ref(&guard);
                log.push(format!("{}", std::ptr::eq(same, &fd)));
                let read = |fd: &Fd| $rt::io::unix::AsyncFd::get_ref(fd).read(&mut to);
                let tried: Result<io::Result<usize>, $rt::io::unix::TryIoError> =
                    $rt::io::unix::AsyncFdReadyGuard::try_io(&mut guard, read);
                log.push(format!("{:?}", tried.unwrap()?));
                $rt::io::unix::AsyncFdReadyGuard::retain_ready(&mut guard);
                drop(guard);

                let mut guard: $rt::io::unix::AsyncFdReadyMutGuard<'_, UnixStream> =
                    $rt::io::unix::AsyncFd::readable_mut(&mut fd).await?;
                let ready = $rt::io::unix::AsyncFdReadyMutGuard::ready(&guard);
                log.push(format!("{}", ready.is_readable()));
                let _: &Fd = $rt::io::unix::AsyncFdReadyMutGuard::get_ref(&guard);
                let _: &mut Fd = $rt::io::unix::AsyncFdReadyMutGuard::get_mut(&mut guard);
                let _: &UnixStream = $rt::io::unix::AsyncFdReadyMutGuard::get_inner(&guard);
                let inner = $rt::io::unix::AsyncFdReadyMutGuard::get_inner_mut(&mut guard);
                log.push(format!("{}", inner.read(&mut to)?));
                let read = |fd: &mut Fd| $rt::io::unix::AsyncFd::get_mut(fd).read(&mut to);
                let tried = $rt::io::unix::AsyncFdReadyMutGuard::try_io(&mut guard, read);
                log.push(format!("{:?}", tried.unwrap()?));
                $rt::io::unix::AsyncFdReadyMutGuard::retain_ready(&mut guard);
                drop(guard);

                let read = |mut inner: &UnixStream| inner.read(&mut to);
                let got = $rt::io::unix::AsyncFd::async_io(&fd, Interest::READABLE, read).await?;
                log.push(format!("{got}"));
                other.write_all(b"abcdef")?;
                let read = |inner: &mut UnixStream| inner.read(&mut to);
                let got = $rt::io::unix::AsyncFd::async_io_mut(&mut fd, Interest::READABLE, read);
                log.push(format!("{}", got.await?));
                let read = |mut inner: &UnixStream| inner.read(&mut to);
                let got = $rt::io::unix::AsyncFd::try_io(&fd, Interest::READABLE, read);
                log.push(format!("{got:?}"));
                let read = |inner: &mut UnixStream| inner.read(&mut to);
                let got = $rt::io::unix::AsyncFd::try_io_mut(&mut fd, Interest::READABLE, read);
                log.push(format!("{got:?}"));

                // Nothing is left, so the next call fails, and clears the readiness.
                let read = |mut inner: &UnixStream| inner.read(&mut to);
                let none = $rt::io::unix::AsyncFd::try_io(&fd, Interest::READABLE, read);
                log.push(format!(
                    "{:?}",
                    none.unwrap_err().kind() == ErrorKind::WouldBlock
                ));
                other.write_all(b"x")?;
                let polled = poll_fn(|cx| {
                    let polled = $rt::io::unix::AsyncFd::poll_read_ready(&fd, cx);
                    polled.map_ok(|mut guard| {
                        let ready = guard.ready().is_readable();
                        $rt::io::unix::AsyncFdReadyGuard::clear_ready(&mut guard);
                        ready
                    })
                });
                log.push(format!("{}", polled.await?));
                other.write_all(b"y")?;
                let polled = poll_fn(|cx| {
                    let polled = $rt::io::unix::AsyncFd::poll_read_ready_mut(&mut fd, cx);
                    polled.map_ok(|mut guard| {
                        let ready = guard.ready().is_readable();
                        $rt::io::unix::AsyncFdReadyMutGuard::clear_ready(&mut guard);
                        ready
                    })
                });
                log.push(format!("{}", polled.await?));

                let write = poll_fn(|cx| {
                    let polled = $rt::io::unix::AsyncFd::poll_write_ready(&fd, cx);
                    polled.map_ok(|guard| guard.ready().is_writable())
                });
                log.push(format!("{}", write.await?));
                let write = poll_fn(|cx| {
                    let polled = $rt::io::unix::AsyncFd::poll_write_ready_mut(&mut fd, cx);
                    polled.map_ok(|guard| guard.ready().is_writable())
                });
                log.push(format!("{}", write.await?));
                let guard = $rt::io::unix::AsyncFd::writable(&fd).await?;
                log.push(format!("{}", guard.ready().is_writable()));
                drop(guard);
                let guard = $rt::io::unix::AsyncFd::writable_mut(&mut fd).await?;
                log.push(format!("{}", guard.ready().is_writable()));
                drop(guard);

                let both = Interest::READABLE | Interest::WRITABLE;
                let mut guard = $rt::io::unix::AsyncFd::ready(&fd, both).await?;
                log.push(format!("{}", guard.ready().is_writable()));
                $rt::io::unix::AsyncFdReadyGuard::clear_ready_matching(&mut guard, Ready::READABLE);
                drop(guard);
                let mut guard = $rt::io::unix::AsyncFd::ready_mut(&mut fd, both).await?;
                log.push(format!("{}", guard.ready().is_writable()));
                $rt::io::unix::AsyncFdReadyMutGuard::clear_ready_matching(
                    &mut guard,
                    Ready::READABLE,
                );
                drop(guard);
                let one: UnixStream = $rt::io::unix::AsyncFd::into_inner(fd);

                let fd = $rt::io::unix::AsyncFd::with_interest(one, Interest::READABLE)?;
                let fd = $rt::io::unix::AsyncFd::try_new(fd.into_inner()).unwrap();
                let one = fd.into_inner();
                let fd = $rt::io::unix::AsyncFd::try_with_interest(one, both).unwrap();
                // SAFETY: the descriptor stays open, and is that of the stream.
                let fd = unsafe { $rt::io::unix::AsyncFd::register(fd.into_inner()) }.unwrap();
                let one = fd.into_inner();
                // SAFETY: as above.
                let fd = unsafe { $rt::io::unix::AsyncFd::register_with_interest(one, both) };
                log.push(format!(
                    "{}",
                    fd.unwrap().writable().await?.ready().is_writable()
                ));

                // The kernel's poller refuses a file.
                let file = std::fs::File::open(std::env::current_exe()?)?;
                let error: $rt::io::unix::AsyncFdRegisterError<_> =
                    $rt::io::unix::AsyncFd::try_new(file).unwrap_err();
                let (file, error) = $rt::io::unix::AsyncFdRegisterError::into_parts(error);
                log.push(format!("{} {:?}", file.metadata()?.is_file(), error.kind()));
                Ok(())
            }

            pub fn run() -> Vec<String> {
                let mut builder = $rt::runtime::Builder::new_current_thread();
                let runtime = builder.enable_all().build().unwrap();
                let mut log = Vec::new();
                interests(&mut log);
                readiness(&mut log);
                runtime.block_on(descriptors(&mut log)).unwrap();
                log
            }
        }
    };
}

program!(theirs, tokio);
program!(ours, selvedge);

#[test]
fn io_runs_the_same() {
    super::assert_same(&theirs::run(), &ours::run());
}
