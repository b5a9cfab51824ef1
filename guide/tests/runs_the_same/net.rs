//! Sockets and pipes.

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{
                fs::File,
                future::poll_fn,
                io::{self, IoSlice, IoSliceMut, Write},
                net::{Ipv4Addr, Shutdown, SocketAddr},
                os::{fd::OwnedFd, unix},
                path::Path,
                task::Poll,
                time::Duration,
            };
            use $rt::io::Interest;
            use $rt::io::{AsyncReadExt, AsyncWriteExt, ReadBuf};

            type Log = Vec<String>;

            /// Makes a connection. The second stream is the one that was accepted.
            async fn connection() -> io::Result<($rt::net::TcpStream, $rt::net::TcpStream)> {
                let listener: $rt::net::TcpListener =
                    $rt::net::TcpListener::bind("127.0.0.1:0").await?;
                let at = $rt::net::TcpListener::local_addr(&listener)?;
                let client: $rt::net::TcpStream = $rt::net::TcpStream::connect(at).await?;
                let (server, from) = $rt::net::TcpListener::accept(&listener).await?;
                assert_eq!(from, client.local_addr()?);
                Ok((client, server))
            }

            async fn lookups(log: &mut Log) -> io::Result<()> {
                fn is_address(_: impl $rt::net::ToSocketAddrs) -> bool {
                    true
                }
                let found = $rt::net::lookup_host("127.0.0.1:80").await?;
                log!(
                    log,
                    found.collect::<Vec<_>>(),
                    is_address("a:1"),
                    is_address(("a", 1))
                );
                log!(log, $rt::net::lookup_host("no port").await.is_err());
                Ok(())
            }

            async fn listeners(log: &mut Log) -> io::Result<()> {
                let listener = $rt::net::TcpListener::bind("127.0.0.1:0").await?;
                let at = listener.local_addr()?;
                $rt::net::TcpListener::set_ttl(&listener, 9)?;
                log!(log, $rt::net::TcpListener::ttl(&listener)?);
                let client = $rt::net::TcpStream::connect(at).await?;
                let accepted = poll_fn(|cx| $rt::net::TcpListener::poll_accept(&listener, cx));
                let (_server, from) = accepted.await?;
                log!(log, from == client.local_addr()?);
                let std = $rt::net::TcpListener::into_std(listener)?;
                std.set_nonblocking(true)?;
                let listener = $rt::net::TcpListener::from_std(std)?;
                log!(log, listener.local_addr()? == at);
                Ok(())
            }

            async fn tcp_sockets(log: &mut Log) -> io::Result<()> {
                let socket: $rt::net::TcpSocket = $rt::net::TcpSocket::new_v4()?;
                $rt::net::TcpSocket::set_reuseaddr(&socket, true)?;
                $rt::net::TcpSocket::set_reuseport(&socket, true)?;
                $rt::net::TcpSocket::set_keepalive(&socket, true)?;
                $rt::net::TcpSocket::set_nodelay(&socket, true)?;
                $rt::net::TcpSocket::set_linger(&socket, Some(Duration::from_secs(1)))?;
                log!(
                    log,
                    $rt::net::TcpSocket::reuseaddr(&socket)?,
                    $rt::net::TcpSocket::reuseport(&socket)?,
                    $rt::net::TcpSocket::keepalive(&socket)?,
                    $rt::net::TcpSocket::nodelay(&socket)?,
                    $rt::net::TcpSocket::linger(&socket)?,
                );
                $rt::net::TcpSocket::set_zero_linger(&socket)?;
                $rt::net::TcpSocket::set_send_buffer_size(&socket, 8_192)?;
                $rt::net::TcpSocket::set_recv_buffer_size(&socket, 8_192)?;
                $rt::net::TcpSocket::set_tos_v4(&socket, 0x10)?;
                $rt::net::TcpSocket::bind_device(&socket, None)?;
                log!(
                    log,
                    $rt::net::TcpSocket::linger(&socket)?,
                    $rt::net::TcpSocket::send_buffer_size(&socket)?,
                    $rt::net::TcpSocket::recv_buffer_size(&socket)?,
                    $rt::net::TcpSocket::tos_v4(&socket)?,
                    $rt::net::TcpSocket::device(&socket)?,
                    $rt::net::TcpSocket::take_error(&socket)?.is_none(),
                );
                let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
                $rt::net::TcpSocket::bind(&socket, any)?;
                let at = $rt::net::TcpSocket::local_addr(&socket)?;
                let listener = $rt::net::TcpSocket::listen(socket, 4)?;
                let socket = $rt::net::TcpSocket::new_v4()?;
                let stream = $rt::net::TcpSocket::connect(socket, at).await?;
                log!(log, stream.peer_addr()? == listener.local_addr()?);
                let std = std::net::TcpStream::connect(at)?;
                let socket = $rt::net::TcpSocket::from_std_stream(std);
                log!(log, socket.nodelay()?);
                if let Ok(socket) = $rt::net::TcpSocket::new_v6() {
                    $rt::net::TcpSocket::set_tclass_v6(&socket, 0x10)?;
                    log!(log, $rt::net::TcpSocket::tclass_v6(&socket)?);
                }
                Ok(())
            }

            async fn tcp_streams(log: &mut Log) -> io::Result<()> {
                let (one, mut other) = connection().await?;
                $rt::net::TcpStream::set_nodelay(&one, true)?;
                $rt::net::TcpStream::set_ttl(&one, 9)?;
                $rt::net::TcpStream::set_linger(&one, Some(Duration::from_secs(1)))?;
                log!(
                    log,
                    $rt::net::TcpStream::nodelay(&one)?,
                    $rt::net::TcpStream::ttl(&one)?,
                    $rt::net::TcpStream::linger(&one)?,
                    $rt::net::TcpStream::take_error(&one)?.is_none(),
                );
                $rt::net::TcpStream::set_zero_linger(&one)?;
                log!(log, $rt::net::TcpStream::linger(&one)?);
                $rt::net::TcpStream::set_quickack(&one, true)?;
                log!(log, $rt::net::TcpStream::quickack(&one)?);
                let near = $rt::net::TcpStream::local_addr(&one)?;
                log!(log, near == $rt::net::TcpStream::peer_addr(&other)?);

                $rt::net::TcpStream::writable(&one).await?;
                poll_fn(|cx| $rt::net::TcpStream::poll_write_ready(&one, cx)).await?;
                let ready = $rt::net::TcpStream::ready(&one, Interest::WRITABLE).await?;
                log!(
                    log,
                    ready.is_writable(),
                    $rt::net::TcpStream::try_write(&one, b"abcd")?
                );
                let parts = [IoSlice::new(b"ef"), IoSlice::new(b"gh")];
                log!(log, $rt::net::TcpStream::try_write_vectored(&one, &parts)?);

                let mut to = [0; 8];
                while other.peek(&mut to).await? < 8 {}
                $rt::net::TcpStream::readable(&other).await?;
                poll_fn(|cx| $rt::net::TcpStream::poll_read_ready(&other, cx)).await?;
                log!(log, $rt::net::TcpStream::peek(&other, &mut to[..3]).await?);
                let mut buf = ReadBuf::new(&mut to);
                let peeked = poll_fn(|cx| $rt::net::TcpStream::poll_peek(&other, cx, &mut buf));
                log!(log, peeked.await?, buf.filled());
                log!(log, $rt::net::TcpStream::try_read(&other, &mut to[..1])?);
                let mut bytes = Vec::with_capacity(1);
                log!(
                    log,
                    $rt::net::TcpStream::try_read_buf(&other, &mut bytes)?,
                    bytes
                );
                let mut parts = [IoSliceMut::new(&mut to[..1])];
                log!(
                    log,
                    $rt::net::TcpStream::try_read_vectored(&other, &mut parts)?
                );
                let readable = Interest::READABLE;
                log!(
                    log,
                    $rt::net::TcpStream::try_io(&other, readable, || Ok(7))?
                );
                let tried = || other.try_read(&mut to[..1]);
                log!(
                    log,
                    $rt::net::TcpStream::async_io(&other, readable, tried).await?
                );
                other.read_exact(&mut to[..2]).await?;
                log!(log, &to[..2]);

                let std = $rt::net::TcpStream::into_std(one)?;
                std.set_nonblocking(true)?;
                let mut one = $rt::net::TcpStream::from_std(std)?;
                halves(log, &mut one, other).await
            }

            async fn halves(
                log: &mut Log,
                one: &mut $rt::net::TcpStream,
                other: $rt::net::TcpStream,
            ) -> io::Result<()> {
                let (near, far) = (one.local_addr()?, one.peer_addr()?);
                let (mut read, write): ($rt::net::tcp::ReadHalf<'_>, $rt::net::tcp::WriteHalf<'_>) =
                    $rt::net::TcpStream::split(one);
                let (mut all, mut rest): (
                    $rt::net::tcp::OwnedReadHalf,
                    $rt::net::tcp::OwnedWriteHalf,
                ) = $rt::net::TcpStream::into_split(other);
                log!(
                    log,
                    $rt::net::tcp::ReadHalf::local_addr(&read)? == near,
                    $rt::net::tcp::ReadHalf::peer_addr(&read)? == far,
                    $rt::net::tcp::WriteHalf::local_addr(&write)? == near,
                    $rt::net::tcp::WriteHalf::peer_addr(&write)? == far,
                    $rt::net::tcp::OwnedReadHalf::local_addr(&all)? == far,
                    $rt::net::tcp::OwnedReadHalf::peer_addr(&all)? == near,
                    $rt::net::tcp::OwnedWriteHalf::local_addr(&rest)? == far,
                    $rt::net::tcp::OwnedWriteHalf::peer_addr(&rest)? == near,
                );
                $rt::net::tcp::WriteHalf::writable(&write).await?;
                let ready = $rt::net::tcp::WriteHalf::ready(&write, Interest::WRITABLE).await?;
                log!(
                    log,
                    ready.is_writable(),
                    $rt::net::tcp::WriteHalf::try_write(&write, b"ab")?
                );
                let parts = [IoSlice::new(b"cd")];
                log!(
                    log,
                    $rt::net::tcp::WriteHalf::try_write_vectored(&write, &parts)?
                );
                $rt::net::tcp::OwnedWriteHalf::writable(&rest).await?;
                let ready = $rt::net::tcp::OwnedWriteHalf::ready(&rest, Interest::WRITABLE).await?;
                log!(log, ready.is_writable());
                log!(log, $rt::net::tcp::OwnedWriteHalf::try_write(&rest, b"ab")?);
                log!(
                    log,
                    $rt::net::tcp::OwnedWriteHalf::try_write_vectored(&rest, &parts)?
                );

                let mut to = [0; 4];
                while read.peek(&mut to).await? < 4 {}
                while all.peek(&mut to).await? < 4 {}
                $rt::net::tcp::ReadHalf::readable(&read).await?;
                let ready = $rt::net::tcp::ReadHalf::ready(&read, Interest::READABLE).await?;
                log!(log, ready.is_readable());
                log!(
                    log,
                    $rt::net::tcp::ReadHalf::peek(&mut read, &mut to).await?
                );
                let mut buf = ReadBuf::new(&mut to);
                let peeked =
                    poll_fn(|cx| $rt::net::tcp::ReadHalf::poll_peek(&mut read, cx, &mut buf));
                log!(log, peeked.await?);
                let mut bytes = Vec::with_capacity(8);
                log!(log, $rt::net::tcp::ReadHalf::try_read(&read, &mut to[..1])?);
                let mut parts = [IoSliceMut::new(&mut to[..1])];
                log!(
                    log,
                    $rt::net::tcp::ReadHalf::try_read_vectored(&read, &mut parts)?
                );
                log!(
                    log,
                    $rt::net::tcp::ReadHalf::try_read_buf(&read, &mut bytes)?,
                    bytes
                );

                $rt::net::tcp::OwnedReadHalf::readable(&all).await?;
                let ready = $rt::net::tcp::OwnedReadHalf::ready(&all, Interest::READABLE).await?;
                log!(log, ready.is_readable());
                log!(
                    log,
                    $rt::net::tcp::OwnedReadHalf::peek(&mut all, &mut to).await?
                );
                let mut buf = ReadBuf::new(&mut to);
                let peeked =
                    poll_fn(|cx| $rt::net::tcp::OwnedReadHalf::poll_peek(&mut all, cx, &mut buf));
                log!(log, peeked.await?);
                log!(
                    log,
                    $rt::net::tcp::OwnedReadHalf::try_read(&all, &mut to[..1])?
                );
                let mut parts = [IoSliceMut::new(&mut to[..1])];
                log!(
                    log,
                    $rt::net::tcp::OwnedReadHalf::try_read_vectored(&all, &mut parts)?
                );
                log!(
                    log,
                    $rt::net::tcp::OwnedReadHalf::try_read_buf(&all, &mut bytes)?,
                    bytes
                );

                let other = $rt::net::tcp::OwnedReadHalf::reunite(all, rest).unwrap();
                (all, rest) = other.into_split();
                let other = $rt::net::tcp::OwnedWriteHalf::reunite(rest, all).unwrap();
                let (_, second) = connection().await?;
                (all, rest) = other.into_split();
                let (mine, foreign) = second.into_split();
                let error: $rt::net::tcp::ReuniteError = all.reunite(foreign).unwrap_err();
                let $rt::net::tcp::ReuniteError(all, _foreign) = error;
                drop((mine, all));
                $rt::net::tcp::OwnedWriteHalf::forget(rest);
                log!(log, read.read(&mut to).await?);
                Ok(())
            }

            async fn udp(log: &mut Log) -> io::Result<()> {
                let one: $rt::net::UdpSocket = $rt::net::UdpSocket::bind("127.0.0.1:0").await?;
                let two = $rt::net::UdpSocket::bind("127.0.0.1:0").await?;
                let (at, from) = ($rt::net::UdpSocket::local_addr(&two)?, one.local_addr()?);
                let mut to = [0; 8];
                // Each sends one datagram to `two`.
                log!(log, $rt::net::UdpSocket::send_to(&one, b"1", at).await?);
                let sent = poll_fn(|cx| $rt::net::UdpSocket::poll_send_to(&one, cx, b"22", at));
                log!(
                    log,
                    sent.await?,
                    $rt::net::UdpSocket::try_send_to(&one, b"333", at)?
                );
                $rt::net::UdpSocket::connect(&one, at).await?;
                log!(log, $rt::net::UdpSocket::peer_addr(&one)? == at);
                $rt::net::UdpSocket::writable(&one).await?;
                poll_fn(|cx| $rt::net::UdpSocket::poll_send_ready(&one, cx)).await?;
                let ready = $rt::net::UdpSocket::ready(&one, Interest::WRITABLE).await?;
                log!(
                    log,
                    ready.is_writable(),
                    $rt::net::UdpSocket::send(&one, b"4444").await?
                );
                let sent = poll_fn(|cx| $rt::net::UdpSocket::poll_send(&one, cx, b"55555"));
                log!(log, sent.await?, $rt::net::UdpSocket::try_send(&one, b"6")?);
                for _ in 0..8 {
                    one.send(b"77").await?;
                }

                $rt::net::UdpSocket::readable(&two).await?;
                poll_fn(|cx| $rt::net::UdpSocket::poll_recv_ready(&two, cx)).await?;
                log!(log, $rt::net::UdpSocket::peek_sender(&two).await? == from);
                let sender = poll_fn(|cx| $rt::net::UdpSocket::poll_peek_sender(&two, cx));
                log!(log, sender.await? == from);
                log!(log, $rt::net::UdpSocket::try_peek_sender(&two)? == from);
                log!(log, $rt::net::UdpSocket::peek(&two, &mut to).await?);
                log!(log, $rt::net::UdpSocket::try_peek(&two, &mut to)?);
                log!(
                    log,
                    $rt::net::UdpSocket::peek_from(&two, &mut to).await?.1 == from
                );
                log!(
                    log,
                    $rt::net::UdpSocket::try_peek_from(&two, &mut to)?.1 == from
                );
                let mut buf = ReadBuf::new(&mut to);
                poll_fn(|cx| $rt::net::UdpSocket::poll_peek(&two, cx, &mut buf)).await?;
                let peeked = poll_fn(|cx| $rt::net::UdpSocket::poll_peek_from(&two, cx, &mut buf));
                log!(log, peeked.await? == from, buf.filled());

                log!(log, $rt::net::UdpSocket::recv(&two, &mut to).await?);
                log!(
                    log,
                    $rt::net::UdpSocket::recv_from(&two, &mut to).await? == (2, from)
                );
                log!(log, $rt::net::UdpSocket::try_recv(&two, &mut to)?);
                log!(
                    log,
                    $rt::net::UdpSocket::try_recv_from(&two, &mut to)? == (4, from)
                );
                let mut buf = ReadBuf::new(&mut to);
                poll_fn(|cx| $rt::net::UdpSocket::poll_recv(&two, cx, &mut buf)).await?;
                let received =
                    poll_fn(|cx| $rt::net::UdpSocket::poll_recv_from(&two, cx, &mut buf));
                log!(log, received.await? == from, buf.filled());
                let mut bytes = Vec::with_capacity(16);
                log!(log, $rt::net::UdpSocket::recv_buf(&two, &mut bytes).await?);
                log!(
                    log,
                    $rt::net::UdpSocket::recv_buf_from(&two, &mut bytes).await? == (2, from)
                );
                log!(log, $rt::net::UdpSocket::try_recv_buf(&two, &mut bytes)?);
                log!(
                    log,
                    $rt::net::UdpSocket::try_recv_buf_from(&two, &mut bytes)? == (2, from)
                );
                log!(log, bytes);
                let readable = Interest::READABLE;
                let receive = || two.try_recv(&mut to);
                log!(
                    log,
                    $rt::net::UdpSocket::async_io(&two, readable, receive).await?
                );
                log!(log, $rt::net::UdpSocket::try_io(&two, readable, || Ok(7))?);

                $rt::net::UdpSocket::set_broadcast(&one, true)?;
                $rt::net::UdpSocket::set_ttl(&one, 9)?;
                $rt::net::UdpSocket::set_multicast_loop_v4(&one, false)?;
                $rt::net::UdpSocket::set_multicast_ttl_v4(&one, 3)?;
                $rt::net::UdpSocket::set_tos_v4(&one, 0x10)?;
                $rt::net::UdpSocket::bind_device(&one, None)?;
                log!(
                    log,
                    $rt::net::UdpSocket::broadcast(&one)?,
                    $rt::net::UdpSocket::ttl(&one)?,
                    $rt::net::UdpSocket::multicast_loop_v4(&one)?,
                    $rt::net::UdpSocket::multicast_ttl_v4(&one)?,
                    $rt::net::UdpSocket::tos_v4(&one)?,
                    $rt::net::UdpSocket::device(&one)?,
                    $rt::net::UdpSocket::take_error(&one)?.is_none(),
                );
                let (group, any) = ([239, 1, 1, 1].into(), Ipv4Addr::UNSPECIFIED);
                let joined = $rt::net::UdpSocket::join_multicast_v4(&one, group, any).is_ok();
                let left = $rt::net::UdpSocket::leave_multicast_v4(&one, group, any).is_ok();
                let group = "ff02::114".parse().unwrap();
                log!(log, joined, left);
                log!(
                    log,
                    $rt::net::UdpSocket::join_multicast_v6(&one, &group, 0).is_ok()
                );
                log!(
                    log,
                    $rt::net::UdpSocket::leave_multicast_v6(&one, &group, 0).is_ok()
                );
                if let Ok(one) = $rt::net::UdpSocket::bind("[::1]:0").await {
                    $rt::net::UdpSocket::set_multicast_loop_v6(&one, false)?;
                    $rt::net::UdpSocket::set_tclass_v6(&one, 0x10)?;
                    log!(log, $rt::net::UdpSocket::multicast_loop_v6(&one)?);
                    log!(log, $rt::net::UdpSocket::tclass_v6(&one)?);
                }
                let std = $rt::net::UdpSocket::into_std(one)?;
                std.set_nonblocking(true)?;
                let one = $rt::net::UdpSocket::from_std(std)?;
                log!(log, one.local_addr()? == from);
                Ok(())
            }

            async fn unix_datagrams(log: &mut Log, folder: &Path) -> io::Result<()> {
                let at = folder.join("datagrams");
                let two: $rt::net::UnixDatagram = $rt::net::UnixDatagram::bind(&at)?;
                let one = $rt::net::UnixDatagram::unbound()?;
                log!(log, $rt::net::UnixDatagram::local_addr(&one)?.is_unnamed());
                log!(log, $rt::net::UnixDatagram::send_to(&one, b"1", &at).await?);
                let sent = poll_fn(|cx| $rt::net::UnixDatagram::poll_send_to(&one, cx, b"22", &at));
                log!(
                    log,
                    sent.await?,
                    $rt::net::UnixDatagram::try_send_to(&one, b"333", &at)?
                );
                $rt::net::UnixDatagram::connect(&one, &at)?;
                let peer = $rt::net::UnixDatagram::peer_addr(&one)?;
                log!(log, peer.as_pathname() == Some(&*at));
                $rt::net::UnixDatagram::writable(&one).await?;
                poll_fn(|cx| $rt::net::UnixDatagram::poll_send_ready(&one, cx)).await?;
                let ready = $rt::net::UnixDatagram::ready(&one, Interest::WRITABLE).await?;
                log!(
                    log,
                    ready.is_writable(),
                    $rt::net::UnixDatagram::send(&one, b"4444").await?
                );
                let sent = poll_fn(|cx| $rt::net::UnixDatagram::poll_send(&one, cx, b"55555"));
                log!(
                    log,
                    sent.await?,
                    $rt::net::UnixDatagram::try_send(&one, b"6")?
                );

                let mut to = [0; 8];
                $rt::net::UnixDatagram::readable(&two).await?;
                poll_fn(|cx| $rt::net::UnixDatagram::poll_recv_ready(&two, cx)).await?;
                log!(log, $rt::net::UnixDatagram::recv(&two, &mut to).await?);
                let (count, from) = $rt::net::UnixDatagram::recv_from(&two, &mut to).await?;
                log!(log, count, from.is_unnamed());
                log!(log, $rt::net::UnixDatagram::try_recv(&two, &mut to)?);
                let (count, from) = $rt::net::UnixDatagram::try_recv_from(&two, &mut to)?;
                log!(log, count, from.is_unnamed());
                let mut buf = ReadBuf::new(&mut to);
                poll_fn(|cx| $rt::net::UnixDatagram::poll_recv(&two, cx, &mut buf)).await?;
                let received =
                    poll_fn(|cx| $rt::net::UnixDatagram::poll_recv_from(&two, cx, &mut buf));
                log!(log, received.await?.is_unnamed(), buf.filled());

                for _ in 0..5 {
                    one.send(b"77").await?;
                }
                two.readable().await?;
                let mut bytes = Vec::with_capacity(16);
                log!(
                    log,
                    $rt::net::UnixDatagram::recv_buf(&two, &mut bytes).await?
                );
                let (count, from) = $rt::net::UnixDatagram::recv_buf_from(&two, &mut bytes).await?;
                log!(log, count, from.is_unnamed());
                log!(log, $rt::net::UnixDatagram::try_recv_buf(&two, &mut bytes)?);
                let (count, from) = $rt::net::UnixDatagram::try_recv_buf_from(&two, &mut bytes)?;
                log!(log, count, from.is_unnamed(), bytes);
                let receive = || two.try_recv(&mut to);
                let readable = Interest::READABLE;
                log!(
                    log,
                    $rt::net::UnixDatagram::async_io(&two, readable, receive).await?
                );
                let writable = Interest::WRITABLE;
                log!(
                    log,
                    $rt::net::UnixDatagram::try_io(&one, writable, || Ok(7))?
                );
                log!(log, $rt::net::UnixDatagram::take_error(&one)?.is_none());

                let (one, two) = $rt::net::UnixDatagram::pair()?;
                $rt::net::UnixDatagram::shutdown(&one, Shutdown::Both)?;
                log!(log, two.send(b"a").await.is_err());
                let std = $rt::net::UnixDatagram::into_std(one)?;
                std.set_nonblocking(true)?;
                log!(
                    log,
                    $rt::net::UnixDatagram::from_std(std)?
                        .send(b"a")
                        .await
                        .is_err()
                );
                Ok(())
            }

            async fn unix_sockets(log: &mut Log, folder: &Path) -> io::Result<()> {
                let at = folder.join("stream");
                let socket: $rt::net::UnixSocket = $rt::net::UnixSocket::new_stream()?;
                $rt::net::UnixSocket::bind(&socket, &at)?;
                let listener: $rt::net::UnixListener = $rt::net::UnixSocket::listen(socket, 4)?;
                let socket = $rt::net::UnixSocket::new_stream()?;
                let _client = $rt::net::UnixSocket::connect(socket, &at).await?;
                let (_server, from) = $rt::net::UnixListener::accept(&listener).await?;
                log!(log, from.is_unnamed());
                let socket = $rt::net::UnixSocket::new_datagram()?;
                log!(
                    log,
                    $rt::net::UnixSocket::datagram(socket)?
                        .local_addr()?
                        .is_unnamed()
                );
                let datagram = || $rt::net::UnixSocket::new_datagram();
                log!(log, datagram()?.listen(4).err().map(|error| error.kind()));
                log!(
                    log,
                    datagram()?
                        .connect(&at)
                        .await
                        .err()
                        .map(|error| error.kind())
                );
                let stream = $rt::net::UnixSocket::new_stream()?;
                log!(log, stream.datagram().err().map(|error| error.kind()));

                let _client = $rt::net::UnixStream::connect(&at).await?;
                let accepted = poll_fn(|cx| $rt::net::UnixListener::poll_accept(&listener, cx));
                log!(log, accepted.await?.1.is_unnamed());
                log!(
                    log,
                    $rt::net::UnixListener::take_error(&listener)?.is_none()
                );
                let std = $rt::net::UnixListener::into_std(listener)?;
                std.set_nonblocking(true)?;
                let listener = $rt::net::UnixListener::from_std(std)?;
                let near: $rt::net::unix::SocketAddr =
                    $rt::net::UnixListener::local_addr(&listener)?;
                log!(
                    log,
                    $rt::net::unix::SocketAddr::as_pathname(&near) == Some(&*at)
                );
                log!(log, $rt::net::unix::SocketAddr::is_unnamed(&near));
                drop($rt::net::UnixListener::bind(folder.join("another"))?);

                use std::os::linux::net::SocketAddrExt;
                let name = format!("{}-{}", stringify!($rt), std::process::id());
                let abstracted = unix::net::SocketAddr::from_abstract_name(&name)?;
                let abstracted: $rt::net::unix::SocketAddr = abstracted.into();
                let _listener = $rt::net::UnixListener::bind_addr(&abstracted)?;
                let client = $rt::net::UnixStream::connect_addr(&abstracted).await?;
                let far = client.peer_addr()?;
                let far_name = $rt::net::unix::SocketAddr::as_abstract_name(&far);
                log!(log, far_name == Some(name.as_bytes()));
                let nowhere = unix::net::SocketAddr::from_pathname(folder.join("none"))?.into();
                let refused = $rt::net::UnixStream::connect_addr(&nowhere).await;
                log!(log, refused.err().map(|error| error.kind()));
                Ok(())
            }

            async fn unix_streams(log: &mut Log) -> io::Result<()> {
                let (one, mut other): ($rt::net::UnixStream, _) = $rt::net::UnixStream::pair()?;
                log!(
                    log,
                    $rt::net::UnixStream::local_addr(&one)?.is_unnamed(),
                    $rt::net::UnixStream::peer_addr(&one)?.is_unnamed(),
                    $rt::net::UnixStream::take_error(&one)?.is_none(),
                );
                let peer: $rt::net::unix::UCred = $rt::net::UnixStream::peer_cred(&one)?;
                let pid: Option<$rt::net::unix::pid_t> = $rt::net::unix::UCred::pid(&peer);
                let uid: $rt::net::unix::uid_t = $rt::net::unix::UCred::uid(&peer);
                let gid: $rt::net::unix::gid_t = $rt::net::unix::UCred::gid(&peer);
                log!(log, pid, uid, gid);

                $rt::net::UnixStream::writable(&one).await?;
                poll_fn(|cx| $rt::net::UnixStream::poll_write_ready(&one, cx)).await?;
                let ready = $rt::net::UnixStream::ready(&one, Interest::WRITABLE).await?;
                log!(
                    log,
                    ready.is_writable(),
                    $rt::net::UnixStream::try_write(&one, b"abcd")?
                );
                let parts = [IoSlice::new(b"ef"), IoSlice::new(b"gh")];
                log!(log, $rt::net::UnixStream::try_write_vectored(&one, &parts)?);
                $rt::net::UnixStream::readable(&other).await?;
                poll_fn(|cx| $rt::net::UnixStream::poll_read_ready(&other, cx)).await?;
                let mut to = [0; 8];
                log!(log, $rt::net::UnixStream::try_read(&other, &mut to[..2])?);
                let mut bytes = Vec::with_capacity(1);
                log!(
                    log,
                    $rt::net::UnixStream::try_read_buf(&other, &mut bytes)?,
                    bytes
                );
                let mut parts = [IoSliceMut::new(&mut to[..1])];
                log!(
                    log,
                    $rt::net::UnixStream::try_read_vectored(&other, &mut parts)?
                );
                let readable = Interest::READABLE;
                log!(
                    log,
                    $rt::net::UnixStream::try_io(&other, readable, || Ok(7))?
                );
                let tried = || other.try_read(&mut to[..1]);
                log!(
                    log,
                    $rt::net::UnixStream::async_io(&other, readable, tried).await?
                );
                let mut rest = [0; 3];
                AsyncReadExt::read(&mut other, &mut rest).await?;
                log!(log, rest);

                let std = $rt::net::UnixStream::into_std(one)?;
                std.set_nonblocking(true)?;
                let mut one = $rt::net::UnixStream::from_std(std)?;
                let (mut read, write): (
                    $rt::net::unix::ReadHalf<'_>,
                    $rt::net::unix::WriteHalf<'_>,
                ) = $rt::net::UnixStream::split(&mut one);
                let (all, rest): (
                    $rt::net::unix::OwnedReadHalf,
                    $rt::net::unix::OwnedWriteHalf,
                ) = $rt::net::UnixStream::into_split(other);
                log!(
                    log,
                    $rt::net::unix::ReadHalf::local_addr(&read)?.is_unnamed(),
                    $rt::net::unix::ReadHalf::peer_addr(&read)?.is_unnamed(),
                    $rt::net::unix::WriteHalf::local_addr(&write)?.is_unnamed(),
                    $rt::net::unix::WriteHalf::peer_addr(&write)?.is_unnamed(),
                    $rt::net::unix::OwnedReadHalf::local_addr(&all)?.is_unnamed(),
                    $rt::net::unix::OwnedReadHalf::peer_addr(&all)?.is_unnamed(),
                    $rt::net::unix::OwnedWriteHalf::local_addr(&rest)?.is_unnamed(),
                    $rt::net::unix::OwnedWriteHalf::peer_addr(&rest)?.is_unnamed(),
                );
                $rt::net::unix::WriteHalf::writable(&write).await?;
                let ready = $rt::net::unix::WriteHalf::ready(&write, Interest::WRITABLE).await?;
                log!(
                    log,
                    ready.is_writable(),
                    $rt::net::unix::WriteHalf::try_write(&write, b"ab")?
                );
                let parts = [IoSlice::new(b"cd")];
                log!(
                    log,
                    $rt::net::unix::WriteHalf::try_write_vectored(&write, &parts)?
                );
                $rt::net::unix::OwnedWriteHalf::writable(&rest).await?;
                let ready =
                    $rt::net::unix::OwnedWriteHalf::ready(&rest, Interest::WRITABLE).await?;
                log!(log, ready.is_writable());
                log!(
                    log,
                    $rt::net::unix::OwnedWriteHalf::try_write(&rest, b"ab")?
                );
                log!(
                    log,
                    $rt::net::unix::OwnedWriteHalf::try_write_vectored(&rest, &parts)?
                );

                let mut bytes = Vec::with_capacity(8);
                $rt::net::unix::ReadHalf::readable(&read).await?;
                let ready = $rt::net::unix::ReadHalf::ready(&read, Interest::READABLE).await?;
                log!(log, ready.is_readable());
                log!(
                    log,
                    $rt::net::unix::ReadHalf::try_read(&read, &mut to[..1])?
                );
                let mut parts = [IoSliceMut::new(&mut to[..1])];
                log!(
                    log,
                    $rt::net::unix::ReadHalf::try_read_vectored(&read, &mut parts)?
                );
                log!(
                    log,
                    $rt::net::unix::ReadHalf::try_read_buf(&read, &mut bytes)?,
                    bytes
                );
                $rt::net::unix::OwnedReadHalf::readable(&all).await?;
                let ready = $rt::net::unix::OwnedReadHalf::ready(&all, Interest::READABLE).await?;
                log!(log, ready.is_readable());
                log!(
                    log,
                    $rt::net::unix::OwnedReadHalf::try_read(&all, &mut to[..1])?
                );
                let mut parts = [IoSliceMut::new(&mut to[..1])];
                log!(
                    log,
                    $rt::net::unix::OwnedReadHalf::try_read_vectored(&all, &mut parts)?
                );
                log!(
                    log,
                    $rt::net::unix::OwnedReadHalf::try_read_buf(&all, &mut bytes)?,
                    bytes
                );

                let other = $rt::net::unix::OwnedReadHalf::reunite(all, rest).unwrap();
                let (all, rest) = other.into_split();
                let other = $rt::net::unix::OwnedWriteHalf::reunite(rest, all).unwrap();
                let (all, rest) = other.into_split();
                let (mine, foreign) = $rt::net::UnixStream::pair()?.0.into_split();
                let error: $rt::net::unix::ReuniteError = all.reunite(foreign).unwrap_err();
                let $rt::net::unix::ReuniteError(all, _foreign) = error;
                drop((mine, all));
                $rt::net::unix::OwnedWriteHalf::forget(rest);
                log!(log, read.read(&mut to).await?);
                Ok(())
            }

            async fn pipes(log: &mut Log, folder: &Path) -> io::Result<()> {
                let (sender, receiver): (
                    $rt::net::unix::pipe::Sender,
                    $rt::net::unix::pipe::Receiver,
                ) = $rt::net::unix::pipe::pipe()?;
                $rt::net::unix::pipe::Sender::writable(&sender).await?;
                poll_fn(|cx| $rt::net::unix::pipe::Sender::poll_write_ready(&sender, cx)).await?;
                let ready =
                    $rt::net::unix::pipe::Sender::ready(&sender, Interest::WRITABLE).await?;
                log!(log, ready.is_writable());
                log!(
                    log,
                    $rt::net::unix::pipe::Sender::try_write(&sender, b"abc")?
                );
                let parts = [IoSlice::new(b"d")];
                log!(
                    log,
                    $rt::net::unix::pipe::Sender::try_write_vectored(&sender, &parts)?
                );
                log!(
                    log,
                    $rt::net::unix::pipe::Sender::try_io(&sender, || Ok(7))?
                );
                let mut to = [0; 1];
                $rt::net::unix::pipe::Receiver::readable(&receiver).await?;
                poll_fn(|cx| $rt::net::unix::pipe::Receiver::poll_read_ready(&receiver, cx))
                    .await?;
                let readable = Interest::READABLE;
                let ready = $rt::net::unix::pipe::Receiver::ready(&receiver, readable).await?;
                log!(log, ready.is_readable());
                log!(
                    log,
                    $rt::net::unix::pipe::Receiver::try_read(&receiver, &mut to)?
                );
                let mut parts = [IoSliceMut::new(&mut to)];
                log!(
                    log,
                    $rt::net::unix::pipe::Receiver::try_read_vectored(&receiver, &mut parts)?
                );
                let mut bytes = Vec::with_capacity(8);
                log!(
                    log,
                    $rt::net::unix::pipe::Receiver::try_read_buf(&receiver, &mut bytes)?
                );
                log!(
                    log,
                    bytes,
                    $rt::net::unix::pipe::Receiver::try_io(&receiver, || Ok(7))?
                );

                let fd: OwnedFd = $rt::net::unix::pipe::Sender::into_blocking_fd(sender)?;
                let sender = $rt::net::unix::pipe::Sender::from_owned_fd(fd)?;
                let fd = $rt::net::unix::pipe::Sender::into_nonblocking_fd(sender)?;
                let sender = $rt::net::unix::pipe::Sender::from_file(File::from(fd))?;
                let fd = sender.into_nonblocking_fd()?;
                let sender = $rt::net::unix::pipe::Sender::from_owned_fd_unchecked(fd)?;
                let file = File::from(sender.into_nonblocking_fd()?);
                let mut sender = $rt::net::unix::pipe::Sender::from_file_unchecked(file)?;
                let fd: OwnedFd = $rt::net::unix::pipe::Receiver::into_blocking_fd(receiver)?;
                let receiver = $rt::net::unix::pipe::Receiver::from_owned_fd(fd)?;
                let fd = $rt::net::unix::pipe::Receiver::into_nonblocking_fd(receiver)?;
                let receiver = $rt::net::unix::pipe::Receiver::from_file(File::from(fd))?;
                let fd = receiver.into_nonblocking_fd()?;
                let receiver = $rt::net::unix::pipe::Receiver::from_owned_fd_unchecked(fd)?;
                let file = File::from(receiver.into_nonblocking_fd()?);
                let mut receiver = $rt::net::unix::pipe::Receiver::from_file_unchecked(file)?;
                AsyncWriteExt::write_all(&mut sender, b"z").await?;
                AsyncReadExt::read_exact(&mut receiver, &mut to).await?;
                log!(log, to);

                let mut options: $rt::net::unix::pipe::OpenOptions =
                    $rt::net::unix::pipe::OpenOptions::new();
                let plain = folder.join("plain");
                File::create(&plain)?.write_all(b"x")?;
                let refused = $rt::net::unix::pipe::OpenOptions::open_receiver(&options, &plain);
                log!(log, refused.err().map(|error| error.kind()));
                let fifo = folder.join("fifo");
                assert!(
                    std::process::Command::new("mkfifo")
                        .arg(&fifo)
                        .status()?
                        .success()
                );
                let early = $rt::net::unix::pipe::OpenOptions::open_sender(&options, &fifo);
                log!(log, early.is_err());
                $rt::net::unix::pipe::OpenOptions::read_write(&mut options, true);
                $rt::net::unix::pipe::OpenOptions::unchecked(&mut options, true);
                log!(log, options.open_sender(&fifo).is_ok());
                Ok(())
            }

            /// Polls a wait for a datagram that has not come, and then sends it.
            async fn waits(log: &mut Log) -> io::Result<()> {
                let (one, two) = $rt::net::UnixDatagram::pair()?;
                let mut to = [0; 4];
                let (mut buf, mut polls) = (ReadBuf::new(&mut to), 0);
                let received = poll_fn(|cx| {
                    polls += 1;
                    let polled = two.poll_recv(cx, &mut buf);
                    if polled.is_pending() {
                        assert_eq!(one.try_send(b"late").unwrap(), 4);
                        assert!(polls < 3);
                    }
                    polled
                });
                received.await?;
                log!(log, buf.filled());
                let fails = poll_fn(|cx| {
                    let polled = two.poll_recv_from(cx, &mut buf);
                    Poll::Ready(polled.is_pending())
                });
                log!(log, fails.await);
                Ok(())
            }

            pub fn run() -> Vec<String> {
                let mut builder = $rt::runtime::Builder::new_current_thread();
                let runtime = builder
                    .enable_all()
                    .max_io_events_per_tick(16)
                    .build()
                    .unwrap();
                let folder = tempfile::tempdir().unwrap();
                let (mut log, at) = (Vec::new(), folder.path());
                runtime
                    .block_on(async {
                        lookups(&mut log).await?;
                        listeners(&mut log).await?;
                        tcp_sockets(&mut log).await?;
                        tcp_streams(&mut log).await?;
                        udp(&mut log).await?;
                        unix_datagrams(&mut log, at).await?;
                        unix_sockets(&mut log, at).await?;
                        unix_streams(&mut log).await?;
                        pipes(&mut log, at).await?;
                        waits(&mut log).await
                    })
                    .unwrap();
                log
            }
        }
    };
}

program!(theirs, tokio);
program!(ours, selvedge);

#[test]
fn net_runs_the_same() {
    super::assert_same(&theirs::run(), &ours::run());
}
