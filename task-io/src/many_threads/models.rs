//! A model of four threads, more than the model checker allows.
use crate::{AsyncReadExt, AsyncWriteExt, copy, duplex, simplex, split};
use sync_shim::{model, thread};
use worker_idle::park::ThreadPark;

const BYTES: [u8; 6] = [1, 2, 3, 4, 5, 6];

/// A client's thread writes to a connection, and another one reads from it. A server's thread
/// copies from the connection to a pipe, and another one from the pipe back to the connection. Each
/// has less room than there are bytes.
///
/// Fails if a pipe, a half or a copy loses a byte, a wake or the end.
#[test]
fn bytes_pass_four_threads_and_come_back() {
    model(|| {
        let (client, server) = duplex(2);
        let (mut answers, mut questions) = split(client);
        let (mut requests, mut replies) = split(server);
        let (mut outlet, mut inlet) = simplex(1);
        let asks = thread::spawn(move || {
            ThreadPark::block_on(async {
                questions.write_all(&BYTES).await.unwrap();
                questions.shutdown().await.unwrap();
            });
            questions
        });
        let takes = thread::spawn(move || {
            ThreadPark::block_on(async {
                copy(&mut requests, &mut inlet).await.unwrap();
                inlet.shutdown().await.unwrap();
            });
            requests
        });
        let gives = thread::spawn(move || {
            ThreadPark::block_on(async {
                copy(&mut outlet, &mut replies).await.unwrap();
                replies.shutdown().await.unwrap();
            });
            replies
        });
        let mut read = Vec::new();
        ThreadPark::block_on(answers.read_to_end(&mut read)).unwrap();
        assert_eq!(read, BYTES);
        drop(answers.unsplit(asks.join().unwrap()));
        drop(takes.join().unwrap().unsplit(gives.join().unwrap()));
    });
}
