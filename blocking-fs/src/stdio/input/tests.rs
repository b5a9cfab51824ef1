use super::*;
use futures_lite::future::{block_on, poll_once};
use std::future::poll_fn;

/// A task waits for a read whose thread could not be started. The test stores the end, as a read of
/// another task would.
///
/// Fails if the read that did not begin stores a result in the place of the end, or if it leaves
/// the input as if the thread were running.
#[test]
fn read_without_a_thread_leaves_the_end() {
    let reader = Reader::new();
    let read = || poll_fn(|cx| reader.poll_take(cx, 1, |_| ()));
    let reading = Reading::begin(&mut lock(&INPUT));
    assert!(block_on(poll_once(read())).is_none());
    lock(&INPUT).read_nothing = Some(Ok(()));
    drop(reading);
    let read = block_on(poll_once(read()));
    assert!(matches!(read, Some(Ok(0))), "{read:?}");
    assert!(lock(&INPUT).read_nothing.is_none());
}
