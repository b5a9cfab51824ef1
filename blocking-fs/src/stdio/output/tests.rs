use super::*;
use blocking_threads::{Boxed, Pool, Settings};
use futures_lite::future::{block_on, poll_once};
use std::{
    future::poll_fn,
    sync::{Condvar, Mutex},
};

/// A stream that takes bytes while its gate is open.
struct Fake {
    taken: Mutex<Vec<u8>>,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Fake {
    const fn new() -> Self {
        Self {
            taken: Mutex::new(Vec::new()),
            is_open: Mutex::new(false),
            opened: Condvar::new(),
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    /// Fails if the first byte is `!`.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let is_open = self.is_open.lock().unwrap();
        drop(
            self.opened
                .wait_while(is_open, |is_open| !*is_open)
                .unwrap(),
        );
        if bytes.first() == Some(&b'!') {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.taken.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }
}

/// Makes a stream with its own statics.
macro_rules! fake {
    () => {{
        static FAKE: Fake = Fake::new();
        static OUTPUT: Output = Output::new(|bytes| FAKE.write(bytes));
        (&FAKE, &OUTPUT)
    }};
}

fn pool() -> Pool<Boxed> {
    Pool::new(Settings::default())
}

async fn put(writer: &mut Writer, bytes: &[u8]) -> io::Result<usize> {
    poll_fn(|cx| writer.poll_put(cx, &[IoSlice::new(bytes)])).await
}

async fn flush(writer: &mut Writer) -> io::Result<()> {
    poll_fn(|cx| writer.poll_done(cx)).await
}

/// Fails if two jobs write at a time, or if the bytes of a dropped handle are lost.
#[test]
fn writes_of_many_handles_keep_their_order() {
    let ((fake, output), pool) = (fake!(), pool());
    let _entered = pool.enter();
    block_on(async {
        let mut all = Vec::new();
        for byte in 0..200 {
            assert_eq!(put(&mut Writer::new(output), &[byte]).await.unwrap(), 1);
            all.push(byte);
            if byte == 100 {
                fake.open();
            }
        }
        flush(&mut Writer::new(output)).await.unwrap();
        assert_eq!(*fake.taken.lock().unwrap(), all);
    });
}

/// Fails if the queue has no limit, or if a task that waits for room is forgotten.
#[test]
fn write_waits_while_the_queue_is_full() {
    let ((fake, output), pool) = (fake!(), pool());
    let _entered = pool.enter();
    let bytes = vec![7; MOST + 1];
    block_on(async {
        let mut writer = Writer::new(output);
        let mut count = 0;
        // The job takes at most one full buffer, and waits at the gate.
        while let Some(taken) = poll_once(put(&mut writer, &bytes)).await {
            count += taken.unwrap();
            assert!(count <= 2 * MOST);
        }
        assert!(count >= MOST);
        let waits = put(&mut writer, b"x");
        let opens = async { fake.open() };
        let (more, ()) = futures_lite::future::zip(waits, opens).await;
        flush(&mut writer).await.unwrap();
        assert_eq!(fake.taken.lock().unwrap().len(), count + more.unwrap());
    });
}

/// Fails if the bytes behind an error are written, or if an error is reported twice or to a handle
/// that was made later.
#[test]
fn failed_write_drops_the_bytes_behind_it() {
    let ((fake, output), pool) = (fake!(), pool());
    let _entered = pool.enter();
    block_on(async {
        let (mut one, mut other) = (Writer::new(output), Writer::new(output));
        put(&mut one, b"!").await.unwrap();
        put(&mut one, b"lost").await.unwrap();
        fake.open();
        assert_eq!(flush(&mut one).await.unwrap_err().raw_os_error(), Some(28));
        flush(&mut Writer::new(output)).await.unwrap();
        put(&mut one, b"kept").await.unwrap();
        flush(&mut one).await.unwrap();
        assert_eq!(
            put(&mut other, b"no").await.unwrap_err().raw_os_error(),
            Some(28)
        );
        flush(&mut other).await.unwrap();
        assert_eq!(*fake.taken.lock().unwrap(), b"kept");
    });
}

/// Fails if a flush waits for bytes that come after it has begun.
#[test]
fn flush_waits_for_the_bytes_before_it_alone() {
    let ((fake, output), pool) = (fake!(), pool());
    let _entered = pool.enter();
    block_on(async {
        let mut writer = Writer::new(output);
        flush(&mut writer).await.unwrap();
        put(&mut writer, b"a").await.unwrap();
        let mut flushes = Box::pin(flush(&mut writer));
        assert!(poll_once(&mut flushes).await.is_none());
        let end = lock(&output.state).accepted;
        put(&mut Writer::new(output), b"b").await.unwrap();
        // As if the job had written the first byte alone.
        lock(&output.state).done = end;
        assert!(matches!(poll_once(&mut flushes).await, Some(Ok(()))));
        drop(flushes);
        lock(&output.state).done = 0;
        fake.open();
        flush(&mut Writer::new(output)).await.unwrap();
    });
}

/// Fails if the second flush ends with the first one, though the handle has written since.
#[test]
fn flush_after_a_dropped_one_waits_for_later_bytes() {
    let ((fake, output), pool) = (fake!(), pool());
    let _entered = pool.enter();
    block_on(async {
        let mut writer = Writer::new(output);
        put(&mut writer, b"a").await.unwrap();
        assert!(poll_once(flush(&mut writer)).await.is_none());
        let end = lock(&output.state).accepted;
        put(&mut writer, b"b").await.unwrap();
        // As if the job had written the first byte alone.
        lock(&output.state).done = end;
        assert!(poll_once(flush(&mut writer)).await.is_none());
        lock(&output.state).done = 0;
        fake.open();
        flush(&mut writer).await.unwrap();
        assert_eq!(*fake.taken.lock().unwrap(), b"ab");
    });
}

/// Fails if a job that is dropped leaves the stream as if the job were running.
#[test]
fn refused_job_fails_the_write() {
    let ((fake, output), closed) = (fake!(), pool());
    fake.open();
    closed.close();
    block_on(async {
        let mut writer = Writer::new(output);
        let entered = closed.enter();
        put(&mut writer, b"lost").await.unwrap();
        drop(entered);
        assert_eq!(
            flush(&mut writer).await.unwrap_err().kind(),
            io::ErrorKind::Other
        );
        let pool = pool();
        let _entered = pool.enter();
        put(&mut writer, b"kept").await.unwrap();
        flush(&mut writer).await.unwrap();
        assert_eq!(*fake.taken.lock().unwrap(), b"kept");
    });
}
