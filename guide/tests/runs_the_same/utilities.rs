//! The traits and utilities of `io`, over bytes in memory and over pipes in memory.

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{
                future::poll_fn,
                io::IoSlice,
                mem::MaybeUninit,
                pin::{Pin, pin},
                task::{Context, Poll},
            };
            use $rt::io::AsyncBufReadExt;
            use $rt::io::AsyncReadExt;
            use $rt::io::AsyncSeekExt;
            use $rt::io::AsyncWriteExt;

            /// Asserts at compile time that the buffers have the traits.
            fn has_traits<T>(_: &T)
            where
                T: $rt::io::AsyncBufRead + $rt::io::AsyncWrite + $rt::io::AsyncSeek,
            {
            }

            /// Reads three bytes at a time.
            struct Slow(&'static [u8]);

            impl $rt::io::AsyncRead for Slow {
                fn poll_read(
                    mut self: Pin<&mut Self>,
                    cx: &mut Context<'_>,
                    to: &mut $rt::io::ReadBuf<'_>,
                ) -> Poll<$rt::io::Result<()>> {
                    let mut part = $rt::io::ReadBuf::take(to, 3);
                    let polled =
                        $rt::io::AsyncRead::poll_read(Pin::new(&mut self.0), cx, &mut part);
                    let count = part.filled().len();
                    // SAFETY: the read has initialised what it has filled.
                    unsafe { to.assume_init(count) };
                    to.advance(count);
                    polled
                }
            }

            fn buffers(log: &mut Vec<String>) {
                let mut memory = [MaybeUninit::uninit(); 8];
                let mut buf = $rt::io::ReadBuf::uninit(&mut memory);
                $rt::io::ReadBuf::put_slice(&mut buf, b"abc");
                $rt::io::ReadBuf::initialize_unfilled_to(&mut buf, 2).fill(b'x');
                $rt::io::ReadBuf::advance(&mut buf, 1);
                log!(log, buf, $rt::io::ReadBuf::filled(&buf));
                log!(log, $rt::io::ReadBuf::initialized(&buf));
                log!(log, $rt::io::ReadBuf::capacity(&buf));
                log!(log, $rt::io::ReadBuf::remaining(&buf));
                $rt::io::ReadBuf::filled_mut(&mut buf)[0] = b'A';
                $rt::io::ReadBuf::initialized_mut(&mut buf)[1] = b'B';
                $rt::io::ReadBuf::set_filled(&mut buf, 5);
                log!(log, buf.filled());
                // SAFETY: the byte that is written is initialised.
                let free = unsafe { $rt::io::ReadBuf::unfilled_mut(&mut buf) };
                free[0].write(b'y');
                // SAFETY: the byte was written.
                unsafe { $rt::io::ReadBuf::assume_init(&mut buf, 1) };
                // SAFETY: no byte becomes uninitialised.
                log!(log, unsafe { $rt::io::ReadBuf::inner_mut(&mut buf) }.len());
                log!(log, $rt::io::ReadBuf::initialize_unfilled(&mut buf));
                $rt::io::ReadBuf::clear(&mut buf);
                log!(log, buf, buf.initialized());
                let mut bytes = [7; 3];
                let buf: $rt::io::ReadBuf<'_> = $rt::io::ReadBuf::new(&mut bytes);
                log!(log, buf);
            }

            async fn numbers(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut all = Vec::new();
                $rt::io::AsyncWriteExt::write_u8(&mut all, 0x11).await?;
                $rt::io::AsyncWriteExt::write_i8(&mut all, -0x11).await?;
                $rt::io::AsyncWriteExt::write_u16(&mut all, 0x1112).await?;
                $rt::io::AsyncWriteExt::write_u16_le(&mut all, 0x1112).await?;
                $rt::io::AsyncWriteExt::write_i16(&mut all, -0x1112).await?;
                $rt::io::AsyncWriteExt::write_i16_le(&mut all, -0x1112).await?;
                $rt::io::AsyncWriteExt::write_u32(&mut all, 0x11121314).await?;
                $rt::io::AsyncWriteExt::write_u32_le(&mut all, 0x11121314).await?;
                $rt::io::AsyncWriteExt::write_i32(&mut all, -0x11121314).await?;
                $rt::io::AsyncWriteExt::write_i32_le(&mut all, -0x11121314).await?;
                $rt::io::AsyncWriteExt::write_u64(&mut all, 0x1112131415161718).await?;
                $rt::io::AsyncWriteExt::write_u64_le(&mut all, 0x1112131415161718).await?;
                $rt::io::AsyncWriteExt::write_i64(&mut all, -0x1112131415161718).await?;
                $rt::io::AsyncWriteExt::write_i64_le(&mut all, -0x1112131415161718).await?;
                $rt::io::AsyncWriteExt::write_u128(&mut all, 0x1112131415161718191a1b1c1d1e1f20)
                    .await?;
                $rt::io::AsyncWriteExt::write_u128_le(&mut all, 0x1112131415161718191a1b1c1d1e1f20)
                    .await?;
                $rt::io::AsyncWriteExt::write_i128(&mut all, -0x1112131415161718191a1b1c1d1e1f20)
                    .await?;
                $rt::io::AsyncWriteExt::write_i128_le(
                    &mut all,
                    -0x1112131415161718191a1b1c1d1e1f20,
                )
                .await?;
                $rt::io::AsyncWriteExt::write_f32(&mut all, -1.5).await?;
                $rt::io::AsyncWriteExt::write_f32_le(&mut all, -1.5).await?;
                $rt::io::AsyncWriteExt::write_f64(&mut all, -1.5).await?;
                $rt::io::AsyncWriteExt::write_f64_le(&mut all, -1.5).await?;
                log!(log, all);
                let mut from = &all[..];
                log!(log, $rt::io::AsyncReadExt::read_u8(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i8(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u16(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u16_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i16(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i16_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u32(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u32_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i32(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i32_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u64(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u64_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i64(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i64_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u128(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_u128_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i128(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_i128_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_f32(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_f32_le(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_f64(&mut from).await?);
                log!(log, $rt::io::AsyncReadExt::read_f64_le(&mut from).await?);
                let error: $rt::io::Error = from.read_u16().await.unwrap_err();
                let kind: $rt::io::ErrorKind = error.kind();
                log!(log, kind);
                Ok(())
            }

            async fn reads(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut from = Slow(b"abcdefgh");
                let mut to = [0; 4];
                log!(
                    log,
                    $rt::io::AsyncReadExt::read(&mut from, &mut to).await?,
                    to
                );
                $rt::io::AsyncReadExt::read_exact(&mut from, &mut to).await?;
                log!(log, to);
                let short = $rt::io::AsyncReadExt::read_exact(&mut from, &mut to).await;
                log!(log, short.unwrap_err().kind());
                let mut bytes = Vec::with_capacity(8);
                let mut from = Slow(b"abcdefgh");
                log!(
                    log,
                    $rt::io::AsyncReadExt::read_buf(&mut from, &mut bytes).await?,
                    bytes
                );
                log!(
                    log,
                    $rt::io::AsyncReadExt::read_to_end(&mut from, &mut bytes).await?,
                    bytes
                );
                let (mut from, mut text) = (Slow(b"hello"), "oh ".to_owned());
                log!(
                    log,
                    $rt::io::AsyncReadExt::read_to_string(&mut from, &mut text).await?,
                    text
                );
                let wrong =
                    $rt::io::AsyncReadExt::read_to_string(&mut &b"\xff"[..], &mut text).await;
                log!(log, wrong.unwrap_err().kind(), text);
                let mut memory = [0; 2];
                let mut buf = $rt::io::ReadBuf::new(&mut memory);
                let mut from = Slow(b"x");
                poll_fn(|cx| $rt::io::AsyncRead::poll_read(Pin::new(&mut from), cx, &mut buf))
                    .await?;
                log!(log, buf.filled());

                let mut chain: $rt::io::Chain<Slow, Slow> =
                    $rt::io::AsyncReadExt::chain(Slow(b"one"), Slow(b"two"));
                let mut all = Vec::new();
                log!(log, chain.read_to_end(&mut all).await?, all);
                log!(log, $rt::io::Chain::get_ref(&chain).0.0.len());
                $rt::io::Chain::get_mut(&mut chain).1.0 = b"three";
                log!(log, $rt::io::Chain::get_pin_mut(Pin::new(&mut chain)).1.0);
                let (_, second) = $rt::io::Chain::into_inner(chain);
                log!(log, second.0);

                let mut take: $rt::io::Take<Slow> =
                    $rt::io::AsyncReadExt::take(Slow(b"abcdefgh"), 4);
                all.clear();
                log!(
                    log,
                    take.read_to_end(&mut all).await?,
                    all,
                    $rt::io::Take::limit(&take)
                );
                $rt::io::Take::set_limit(&mut take, 2);
                log!(log, take.read_to_end(&mut all).await?, all);
                log!(log, $rt::io::Take::get_ref(&take).0.len());
                $rt::io::Take::get_mut(&mut take).0 = b"z";
                log!(log, $rt::io::Take::get_pin_mut(Pin::new(&mut take)).0);
                log!(log, $rt::io::Take::into_inner(take).0);
                Ok(())
            }

            async fn writes(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut to = Vec::new();
                log!(log, $rt::io::AsyncWriteExt::write(&mut to, b"ab").await?);
                let parts = [IoSlice::new(b"c"), IoSlice::new(b"de")];
                log!(
                    log,
                    $rt::io::AsyncWriteExt::write_vectored(&mut to, &parts).await?
                );
                $rt::io::AsyncWriteExt::write_all(&mut to, b"fg").await?;
                let mut from = &b"hi"[..];
                log!(
                    log,
                    $rt::io::AsyncWriteExt::write_buf(&mut to, &mut from).await?,
                    from
                );
                let mut from = &b"jk"[..];
                $rt::io::AsyncWriteExt::write_all_buf(&mut to, &mut from).await?;
                $rt::io::AsyncWriteExt::flush(&mut to).await?;
                $rt::io::AsyncWriteExt::shutdown(&mut to).await?;
                log!(log, to, from, $rt::io::AsyncWrite::is_write_vectored(&to));
                let wrote =
                    poll_fn(|cx| $rt::io::AsyncWrite::poll_write(Pin::new(&mut to), cx, b"l"));
                log!(log, wrote.await?);
                let wrote = poll_fn(|cx| {
                    $rt::io::AsyncWrite::poll_write_vectored(Pin::new(&mut to), cx, &parts)
                });
                log!(log, wrote.await?);
                poll_fn(|cx| $rt::io::AsyncWrite::poll_flush(Pin::new(&mut to), cx)).await?;
                poll_fn(|cx| $rt::io::AsyncWrite::poll_shutdown(Pin::new(&mut to), cx)).await?;
                log!(log, to);

                let mut small = [0; 3];
                let mut to = std::io::Cursor::new(&mut small[..]);
                let full = $rt::io::AsyncWriteExt::write_all(&mut to, b"abcd").await;
                log!(log, full.unwrap_err().kind(), small);
                Ok(())
            }

            async fn seeks(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut all = std::io::Cursor::new(b"abcdefgh".to_vec());
                has_traits(&all);
                let end: $rt::io::SeekFrom = $rt::io::SeekFrom::End(-2);
                log!(log, $rt::io::AsyncSeekExt::seek(&mut all, end).await?);
                log!(log, all.read_u8().await?);
                log!(log, $rt::io::AsyncSeekExt::stream_position(&mut all).await?);
                all.rewind().await?;
                $rt::io::AsyncSeekExt::rewind(&mut all).await?;
                log!(log, all.read_u8().await?);
                let to = $rt::io::SeekFrom::Start(3);
                $rt::io::AsyncSeek::start_seek(Pin::new(&mut all), to)?;
                let sought =
                    poll_fn(|cx| $rt::io::AsyncSeek::poll_complete(Pin::new(&mut all), cx));
                log!(log, sought.await?, all.read_u8().await?);
                Ok(())
            }

            async fn lines(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut from: $rt::io::BufReader<Slow> =
                    $rt::io::BufReader::new(Slow(b"one\ntwo\r\nthree;four;five"));
                let mut text = String::new();
                log!(
                    log,
                    $rt::io::AsyncBufReadExt::read_line(&mut from, &mut text).await?,
                    text
                );
                log!(log, $rt::io::BufReader::buffer(&from));
                log!(log, $rt::io::AsyncBufReadExt::fill_buf(&mut from).await?);
                $rt::io::AsyncBufReadExt::consume(&mut from, 1);
                let mut lines: $rt::io::Lines<$rt::io::BufReader<Slow>> =
                    $rt::io::AsyncBufReadExt::lines(from);
                log!(log, $rt::io::Lines::next_line(&mut lines).await?);
                log!(log, $rt::io::Lines::get_ref(&mut lines).get_ref().0);
                log!(log, $rt::io::Lines::get_mut(&mut lines).read_u8().await?);
                let next = poll_fn(|cx| $rt::io::Lines::poll_next_line(Pin::new(&mut lines), cx));
                log!(log, next.await?, lines.next_line().await?);
                log!(
                    log,
                    $rt::io::Lines::into_inner(lines).read_u8().await.is_err()
                );

                let mut from = $rt::io::BufReader::with_capacity(4, Slow(b"three;four;five"));
                let mut bytes = Vec::new();
                let read = $rt::io::AsyncBufReadExt::read_until(&mut from, b';', &mut bytes);
                log!(log, read.await?, bytes);
                let filled = poll_fn(|cx| {
                    let from = Pin::new(&mut from);
                    $rt::io::AsyncBufRead::poll_fill_buf(from, cx).map_ok(<[u8]>::len)
                });
                log!(log, filled.await?);
                $rt::io::AsyncBufRead::consume(Pin::new(&mut from), 1);
                let mut parts: $rt::io::Split<_> = $rt::io::AsyncBufReadExt::split(from, b';');
                log!(log, $rt::io::Split::next_segment(&mut parts).await?);
                let next =
                    poll_fn(|cx| $rt::io::Split::poll_next_segment(Pin::new(&mut parts), cx));
                log!(log, next.await?, parts.next_segment().await?);

                let mut from = $rt::io::BufReader::new(Slow(b"abc"));
                log!(log, $rt::io::BufReader::get_ref(&from).0);
                $rt::io::BufReader::get_mut(&mut from).0 = b"defg";
                log!(log, $rt::io::BufReader::get_pin_mut(Pin::new(&mut from)).0);
                log!(log, from.read_u8().await?);
                log!(log, $rt::io::BufReader::into_inner(from).0);
                Ok(())
            }

            async fn buffered(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut to: $rt::io::BufWriter<Vec<u8>> = $rt::io::BufWriter::new(Vec::new());
                to.write_all(b"abc").await?;
                log!(
                    log,
                    $rt::io::BufWriter::buffer(&to),
                    $rt::io::BufWriter::get_ref(&to)
                );
                to.flush().await?;
                $rt::io::BufWriter::get_mut(&mut to).push(b'-');
                $rt::io::BufWriter::get_pin_mut(Pin::new(&mut to)).push(b'-');
                log!(log, $rt::io::BufWriter::into_inner(to));
                let mut to = $rt::io::BufWriter::with_capacity(4, Vec::new());
                to.write_all(b"abc").await?;
                to.write_all(b"def").await?;
                log!(log, to.buffer(), to.get_ref());
                to.shutdown().await?;
                log!(log, to.buffer(), to.get_ref());

                let (one, mut other) = $rt::io::duplex(64);
                let mut both: $rt::io::BufStream<$rt::io::DuplexStream> =
                    $rt::io::BufStream::new(one);
                both.write_all(b"ping").await?;
                both.flush().await?;
                let mut four = [0; 4];
                other.read_exact(&mut four).await?;
                other.write_all(b"pong\n").await?;
                let mut text = String::new();
                log!(log, four, both.read_line(&mut text).await?, text);
                let _: &$rt::io::DuplexStream = $rt::io::BufStream::get_ref(&both);
                $rt::io::BufStream::get_mut(&mut both)
                    .write_all(b"x")
                    .await?;
                let inner = $rt::io::BufStream::get_pin_mut(Pin::new(&mut both));
                pin!(inner).write_all(b"y").await?;
                drop($rt::io::BufStream::into_inner(both));
                text.clear();
                log!(log, other.read_to_string(&mut text).await?, text);
                let small = $rt::io::BufStream::with_capacity(2, 2, other);
                log!(log, small.into_inner().read(&mut four).await?);
                Ok(())
            }

            async fn copies(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut to = Vec::new();
                log!(
                    log,
                    $rt::io::copy(&mut Slow(b"abcdefgh"), &mut to).await?,
                    to
                );
                let mut from = $rt::io::BufReader::new(Slow(b"ijk"));
                log!(log, $rt::io::copy_buf(&mut from, &mut to).await?, to);
                for sizes in [None, Some((2, 3))] {
                    let ((mut a, mut b), (mut c, mut d)) = ($rt::io::duplex(4), $rt::io::duplex(4));
                    let proxy = async {
                        match sizes {
                            None => $rt::io::copy_bidirectional(&mut b, &mut c).await,
                            Some((one, other)) => {
                                $rt::io::copy_bidirectional_with_sizes(&mut b, &mut c, one, other)
                                    .await
                            }
                        }
                    };
                    let client = async {
                        a.write_all(b"request").await?;
                        a.shutdown().await?;
                        let mut text = String::new();
                        a.read_to_string(&mut text).await?;
                        $rt::io::Result::Ok(text)
                    };
                    let server = async {
                        let mut text = String::new();
                        d.read_to_string(&mut text).await?;
                        d.write_all(b"answer").await?;
                        d.shutdown().await?;
                        $rt::io::Result::Ok(text)
                    };
                    let (moved, sent, got) = futures::future::join3(proxy, client, server).await;
                    log!(log, moved?, sent?, got?);
                }
                Ok(())
            }

            async fn ends(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let mut empty: $rt::io::Empty = $rt::io::empty();
                let mut all = Vec::new();
                log!(
                    log,
                    empty.read_to_end(&mut all).await?,
                    empty.write(b"abc").await?
                );
                let mut repeat: $rt::io::Repeat = $rt::io::repeat(7);
                let mut bytes = [0; 3];
                log!(log, repeat.read(&mut bytes).await?, bytes);
                let mut sink: $rt::io::Sink = $rt::io::sink();
                log!(log, sink.write(b"abc").await?, empty, repeat, sink);

                let mut both: $rt::io::Join<Slow, Vec<u8>> =
                    $rt::io::join(Slow(b"abcd"), Vec::new());
                log!(log, both.read_u8().await?, both.write(b"x").await?);
                log!(
                    log,
                    $rt::io::Join::reader(&both).0,
                    $rt::io::Join::writer(&both)
                );
                $rt::io::Join::reader_mut(&mut both).0 = b"ef";
                $rt::io::Join::writer_mut(&mut both).push(b'y');
                log!(log, $rt::io::Join::reader_pin_mut(Pin::new(&mut both)).0);
                log!(log, $rt::io::Join::writer_pin_mut(Pin::new(&mut both)));
                let (reader, writer) = $rt::io::Join::into_inner(both);
                log!(log, reader.0, writer);

                let (one, mut other) = $rt::io::duplex(8);
                let (mut read, mut write): (
                    $rt::io::ReadHalf<$rt::io::DuplexStream>,
                    $rt::io::WriteHalf<$rt::io::DuplexStream>,
                ) = $rt::io::split(one);
                other.write_all(b"in").await?;
                write.write_all(b"out").await?;
                log!(
                    log,
                    read.read(&mut bytes).await?,
                    other.read(&mut bytes).await?,
                    bytes
                );
                log!(log, $rt::io::ReadHalf::is_pair_of(&read, &write));
                log!(log, $rt::io::WriteHalf::is_pair_of(&write, &read));
                let _: $rt::io::DuplexStream = $rt::io::ReadHalf::unsplit(read, write);

                let (mut receiver, mut sender): (
                    $rt::io::ReadHalf<$rt::io::SimplexStream>,
                    $rt::io::WriteHalf<$rt::io::SimplexStream>,
                ) = $rt::io::simplex(4);
                sender.write_all(b"abc").await?;
                sender.shutdown().await?;
                all.clear();
                log!(log, receiver.read_to_end(&mut all).await?, all);
                let mut both = $rt::io::SimplexStream::new_unsplit(4);
                both.write_all(b"xy").await?;
                log!(log, both.read(&mut bytes).await?, bytes);
                Ok(())
            }

            async fn standard(log: &mut Vec<String>) -> $rt::io::Result<()> {
                let _: $rt::io::Stdin = $rt::io::stdin();
                let mut stdout: $rt::io::Stdout = $rt::io::stdout();
                let mut stderr: $rt::io::Stderr = $rt::io::stderr();
                log!(log, stdout.write(b"").await?, stderr.write(b"").await?);
                stdout.flush().await?;
                stderr.shutdown().await?;
                Ok(())
            }

            pub fn run() -> Vec<String> {
                let mut builder = $rt::runtime::Builder::new_current_thread();
                let runtime = builder.enable_all().build().unwrap();
                let mut log = Vec::new();
                buffers(&mut log);
                runtime
                    .block_on(async {
                        numbers(&mut log).await?;
                        reads(&mut log).await?;
                        writes(&mut log).await?;
                        seeks(&mut log).await?;
                        lines(&mut log).await?;
                        buffered(&mut log).await?;
                        copies(&mut log).await?;
                        ends(&mut log).await?;
                        standard(&mut log).await
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
fn utilities_of_io_run_the_same() {
    super::assert_same(&theirs::run(), &ours::run());
}
