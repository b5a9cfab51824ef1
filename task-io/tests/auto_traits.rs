//! Checks the auto traits of the types and of each future. A future is `Send` and `Sync` if the
//! objects that it borrows are, and never `Unpin`, so that it may hold pinned state one day.
use bytes::Bytes;
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{
    cell::Cell,
    future::Future,
    io::{IoSlice, SeekFrom},
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    rc::Rc,
};
use task_io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, BufReader, BufStream, BufWriter, Chain, DuplexStream, Empty, Interest, Join,
    Lines, ReadBuf, ReadHalf, Ready, Repeat, SimplexStream, Sink, Split, Take, WriteHalf,
};

type Reader = Pin<Box<dyn AsyncBufRead + Send + Sync>>;
type Writer = Pin<Box<dyn AsyncWrite + Send + Sync>>;
type Seeker = Pin<Box<dyn AsyncSeek + Send + Sync>>;
/// `Send` and not `Sync`; `NotSend` is neither.
type NotSync = Cell<u8>;
type NotSend = Rc<u8>;

assert_impl_all!(ReadBuf<'static>: Send, Sync, Unpin, RefUnwindSafe);
assert_impl_all!(Interest: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Ready: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Empty: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Repeat: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Sink: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(DuplexStream: Send, Sync, Unpin);
assert_impl_all!(SimplexStream: Send, Sync, Unpin);

/// Asserts that a wrapper has the auto traits of what it wraps.
macro_rules! passes_on {
    ($($wrapper:ident)*) => {$(
        assert_impl_all!($wrapper<DuplexStream>: Send, Sync, Unpin);
        assert_impl_all!($wrapper<NotSync>: Send, Unpin);
        assert_not_impl_any!($wrapper<NotSync>: Sync);
        assert_not_impl_any!($wrapper<NotSend>: Send, Sync);
        assert_not_impl_any!($wrapper<std::marker::PhantomPinned>: Unpin);
    )*};
}
passes_on!(BufReader BufStream BufWriter Lines Split Take);
assert_impl_all!(Chain<u8, u8>: Send, Sync, Unpin);
assert_not_impl_any!(Chain<u8, NotSend>: Send, Sync);
assert_not_impl_any!(Chain<NotSync, u8>: Sync);
assert_impl_all!(Join<u8, u8>: Send, Sync, Unpin);
assert_not_impl_any!(Join<u8, NotSend>: Send, Sync);
assert_not_impl_any!(Join<NotSync, u8>: Sync);

// A half gives its stream to one thread at a time, so the stream need not be `Sync`. The stream is
// in a box, so it may be pinned.
assert_impl_all!(ReadHalf<NotSync>: Send, Sync, Unpin);
assert_impl_all!(WriteHalf<NotSync>: Send, Sync, Unpin);
assert_impl_all!(ReadHalf<std::marker::PhantomPinned>: Unpin);
assert_not_impl_any!(ReadHalf<NotSend>: Send, Sync);
assert_not_impl_any!(WriteHalf<NotSend>: Send, Sync);

/// Two impls fit a type that is `Unpin`, so the compiler cannot infer `Choice` for it.
trait NotUnpin<Choice> {}
impl<T> NotUnpin<()> for T {}
impl<T: Unpin> NotUnpin<u8> for T {}

fn check<F: Future + Send + Sync + NotUnpin<Choice>, Choice>(future: F) {
    drop(future);
}

macro_rules! check_each {
    ($($future:expr;)*) => { $(check($future);)* };
}

/// It compiles or not: the futures are not polled.
#[test]
fn futures_are_send_and_sync_and_not_unpin() {
    let mut reader: Reader = Box::pin(task_io::empty());
    let mut writer: Writer = Box::pin(task_io::empty());
    let mut seeker: Seeker = Box::pin(task_io::empty());
    let (mut bytes, mut text, mut source) = (Vec::new(), String::new(), Bytes::new());
    check_each! {
        reader.read(&mut [0]);
        reader.read_buf(&mut bytes);
        reader.read_exact(&mut [0]);
        reader.read_to_end(&mut bytes);
        reader.read_to_string(&mut text);
        reader.read_until(0, &mut bytes);
        reader.read_line(&mut text);
        reader.fill_buf();
        BufReader::new(&mut reader).lines().next_line();
        AsyncBufReadExt::split(BufReader::new(&mut reader), 0).next_segment();
        seeker.seek(SeekFrom::Start(0));
        seeker.rewind();
        seeker.stream_position();
        writer.write(&[0]);
        writer.write_vectored(&[IoSlice::new(&[0])]);
        writer.write_buf(&mut source);
        writer.write_all_buf(&mut source);
        writer.write_all(&[0]);
        writer.flush();
        writer.shutdown();
        task_io::copy(&mut reader, &mut writer);
        task_io::copy_buf(&mut reader, &mut writer);
        task_io::copy_bidirectional(&mut task_io::empty(), &mut task_io::duplex(1).0);
        task_io::copy_bidirectional_with_sizes(&mut task_io::empty(), &mut task_io::empty(), 1, 1);
    }
    check_each! {
        reader.read_u8();
        reader.read_i8();
        reader.read_u16();
        reader.read_i16();
        reader.read_u32();
        reader.read_i32();
        reader.read_u64();
        reader.read_i64();
        reader.read_u128();
        reader.read_i128();
        reader.read_f32();
        reader.read_f64();
        reader.read_u16_le();
        reader.read_i16_le();
        reader.read_u32_le();
        reader.read_i32_le();
        reader.read_u64_le();
        reader.read_i64_le();
        reader.read_u128_le();
        reader.read_i128_le();
        reader.read_f32_le();
        reader.read_f64_le();
    }
    check_each! {
        writer.write_u8(0);
        writer.write_i8(0);
        writer.write_u16(0);
        writer.write_i16(0);
        writer.write_u32(0);
        writer.write_i32(0);
        writer.write_u64(0);
        writer.write_i64(0);
        writer.write_u128(0);
        writer.write_i128(0);
        writer.write_f32(0.0);
        writer.write_f64(0.0);
        writer.write_u16_le(0);
        writer.write_i16_le(0);
        writer.write_u32_le(0);
        writer.write_i32_le(0);
        writer.write_u64_le(0);
        writer.write_i64_le(0);
        writer.write_u128_le(0);
        writer.write_i128_le(0);
        writer.write_f32_le(0.0);
        writer.write_f64_le(0.0);
    }
}
