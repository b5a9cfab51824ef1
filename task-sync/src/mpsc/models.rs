//! Models of senders against the receiver, and of the ends of a channel. A block has two slots
//! here.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::testing::Woken;
use alloc::{boxed::Box, vec::Vec};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use error::TryRecvError;
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::Arc,
    thread,
};

/// A message whose drop the model counts: a leaked `Arc` fails a model.
type Message = Arc<u32>;

fn message(n: u32) -> Message {
    Arc::new(n)
}

/// Polls a future once.
fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Receives until a poll is pending. Returns whether the channel has ended.
fn drain(rx: &mut UnboundedReceiver<Message>, waker: &Waker, got: &mut Vec<u32>) -> bool {
    loop {
        match rx.poll_recv(&mut Context::from_waker(waker)) {
            Poll::Ready(Some(message)) => got.push(*message),
            Poll::Ready(None) => return true,
            Poll::Pending => return false,
        }
    }
}

/// The sender fills a block and goes on to the next. Each message is received at once, or wakes.
///
/// Fails if the addition to `ready` or its load is Relaxed, if the receiver does not look after it
/// has set `WAITING`, or if it sets it before it registers.
#[test]
fn sends_beside_polls_are_received_or_wake() {
    Model::new().bound(2).check(|| {
        let (tx, mut rx) = unbounded_channel();
        tx.send(message(0)).unwrap();
        let mut got = Vec::new();
        assert!(!drain(&mut rx, Waker::noop(), &mut got));
        let sender = thread::spawn(move || {
            tx.send(message(1)).unwrap();
            tx.send(message(2)).unwrap();
        });
        let (woken, waker) = Woken::new();
        let has_ended = drain(&mut rx, &waker, &mut got);
        sender.join().unwrap();
        if !has_ended {
            assert!(woken.times() >= 1, "a wake was lost");
            assert!(drain(&mut rx, &waker, &mut got));
        }
        assert_eq!(got, [0, 1, 2]);
    });
}

/// Two senders: the one of the first message wakes, whichever is written first.
///
/// Fails if only the sender of a block's last slot wakes, or if a claim is not exclusive.
#[test]
fn two_senders_beside_a_poll_are_received_or_wake() {
    Model::new().bound(2).check(|| {
        let (tx, mut rx) = unbounded_channel();
        let other = {
            let tx = tx.clone();
            thread::spawn(move || tx.send(message(0)).unwrap())
        };
        let more = thread::spawn(move || tx.send(message(1)).unwrap());
        let (woken, waker) = Woken::new();
        let mut got = Vec::new();
        let has_ended = drain(&mut rx, &waker, &mut got);
        other.join().unwrap();
        more.join().unwrap();
        if !has_ended {
            assert!(woken.times() >= 1, "a wake was lost");
            assert!(drain(&mut rx, &waker, &mut got));
        }
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
    });
}

/// Two senders walk over three blocks, and the receiver frees them meanwhile.
///
/// Fails if `release` reads `tail` by a load, if it is Relaxed or a claim is, or if the receiver
/// frees a block without a look at `free_at`.
#[test]
fn senders_beside_a_free_of_blocks_use_no_freed_block() {
    Model::new().bound(2).check(|| {
        let (tx, mut rx) = unbounded_channel();
        tx.send(message(0)).unwrap();
        let other = {
            let tx = tx.clone();
            thread::spawn(move || {
                tx.send(message(1)).unwrap();
                tx.send(message(2)).unwrap();
            })
        };
        let sender = thread::spawn(move || tx.send(message(3)).unwrap());
        let mut got = Vec::new();
        drain(&mut rx, Waker::noop(), &mut got);
        other.join().unwrap();
        sender.join().unwrap();
        assert!(drain(&mut rx, Waker::noop(), &mut got));
        assert!(got.iter().filter(|n| **n < 3).is_sorted());
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
    });
}

/// A spare block goes back and forth.
///
/// Fails if the swap of `keep` or of `next_of` is Relaxed.
#[test]
fn spare_block_is_passed_on_whole() {
    Model::new().bound(2).check(|| {
        let (tx, mut rx) = unbounded_channel();
        for n in 0..3 {
            tx.send(message(n)).unwrap();
        }
        let sender = thread::spawn(move || {
            tx.send(message(3)).unwrap();
            tx.send(message(4)).unwrap();
        });
        let mut got = Vec::new();
        drain(&mut rx, Waker::noop(), &mut got);
        sender.join().unwrap();
        assert!(drain(&mut rx, Waker::noop(), &mut got));
        assert_eq!(got, [0, 1, 2, 3, 4]);
    });
}

/// Fails if a send of a closed channel writes, or if the end is read before `CLOSED` is set.
#[test]
fn send_beside_close_is_received_or_handed_back() {
    model(|| {
        let (tx, mut rx) = unbounded_channel();
        let sender = thread::spawn(move || {
            let sent = tx.send(message(0)).is_ok();
            u32::from(sent) + u32::from(tx.send(message(1)).is_ok())
        });
        rx.close();
        let mut received = 0;
        while rx.try_recv().is_ok() {
            received += 1;
        }
        assert!(matches!(rx.try_recv(), Err(TryRecvError::Disconnected)));
        assert_eq!(sender.join().unwrap(), received);
    });
}

/// Fails if the drop of the receiver or of the channel leaves messages, or frees in use.
#[test]
fn sends_beside_drop_of_receiver_are_dropped_once() {
    model(|| {
        let (tx, rx) = unbounded_channel();
        let sender = thread::spawn(move || {
            for n in 0..2 {
                let _ = tx.send(message(n));
            }
        });
        drop(rx);
        sender.join().unwrap();
    });
}

/// A message whose send has returned is dropped with the receiver, while senders remain: the
/// message may hold what its sender waits for.
///
/// Fails if the drop of the receiver stops at a sender that has claimed its position.
#[test]
fn drop_of_receiver_drops_messages_behind_a_claim() {
    model(|| {
        let (tx, rx) = unbounded_channel();
        let other = {
            let tx = tx.clone();
            thread::spawn(move || tx.send(message(0)).is_ok())
        };
        let sent = message(1);
        tx.send(sent.clone()).unwrap();
        drop(rx);
        assert_eq!(Arc::strong_count(&sent), 1, "the message is left");
        other.join().unwrap();
    });
}

/// The same for a bounded channel, in which a permit may be sent after the close.
///
/// Fails as the model above does.
#[test]
fn drop_of_bounded_receiver_drops_messages_behind_a_claim() {
    model(|| {
        let (tx, rx) = channel(2);
        let permit = tx.clone().try_reserve_owned().unwrap();
        let other = thread::spawn(move || drop(permit.send(message(0))));
        let sent = message(1);
        tx.try_send(sent.clone()).unwrap();
        drop(rx);
        assert_eq!(Arc::strong_count(&sent), 1, "the message is left");
        other.join().unwrap();
    });
}

/// Fails if a receive waits for no sender that has claimed its position, and one behind has sent.
#[test]
fn message_whose_send_has_returned_is_received() {
    model(|| {
        let (tx, mut rx) = unbounded_channel();
        let other = {
            let tx = tx.clone();
            thread::spawn(move || tx.send(message(0)).unwrap())
        };
        tx.send(message(1)).unwrap();
        assert!(rx.try_recv().is_ok());
        other.join().unwrap();
        assert!(rx.try_recv().is_ok());
    });
}

/// Fails if the last drop does not wake, or if an upgrade adds to a count of zero.
#[test]
fn upgrade_beside_the_last_drop_sends_or_fails() {
    model(|| {
        let (tx, mut rx) = unbounded_channel();
        let weak = tx.downgrade();
        let (woken, waker) = Woken::new();
        assert!(!drain(&mut rx, &waker, &mut Vec::new()));
        let other = thread::spawn(move || match weak.upgrade() {
            Some(tx) => tx.send(message(0)).is_ok(),
            None => false,
        });
        drop(tx);
        let sent = other.join().unwrap();
        let mut got = Vec::new();
        assert!(woken.times() >= 1);
        assert!(drain(&mut rx, &waker, &mut got));
        assert_eq!(got.len(), usize::from(sent));
    });
}

/// Fails if a future looks whether the channel is closed before it takes the lock, and not after.
#[test]
fn close_beside_closed_is_seen_or_wakes() {
    model(|| {
        let (tx, mut rx) = unbounded_channel::<Message>();
        let receiver = thread::spawn(move || rx.close());
        let (woken, waker) = Woken::new();
        let mut closed = Box::pin(tx.closed());
        let first = poll(closed.as_mut(), &waker);
        receiver.join().unwrap();
        assert!(first.is_ready() || woken.times() == 1);
        if first.is_pending() {
            assert!(poll(closed.as_mut(), &waker).is_ready());
        }
    });
}

/// Fails if a sender that finds no room sets `WAITERS` in `received` after it has computed the
/// room, or if a receive does not look at it.
#[test]
fn receive_beside_a_reservation_grants_or_wakes() {
    model(|| {
        let (tx, mut rx) = channel(1);
        tx.try_send(message(0)).unwrap();
        let receiver = thread::spawn(move || {
            assert_eq!(*rx.try_recv().unwrap(), 0);
            rx
        });
        let (woken, waker) = Woken::new();
        let mut send = Box::pin(tx.send(message(1)));
        let first = poll(send.as_mut(), &waker);
        let mut rx = receiver.join().unwrap();
        if first.is_pending() {
            assert_eq!(woken.times(), 1, "a wake was lost");
            assert!(poll(send.as_mut(), &waker).is_ready());
        }
        assert_eq!(*rx.try_recv().unwrap(), 1);
        assert_eq!(tx.capacity(), 1);
    });
}

/// Fails if a future that is dropped keeps what it was granted.
#[test]
fn receive_beside_a_cancellation_loses_no_room() {
    model(|| {
        let (tx, mut rx) = channel(1);
        tx.try_send(message(0)).unwrap();
        let mut first = Box::pin(tx.reserve());
        let mut second = Box::pin(tx.reserve());
        let (woken, waker) = Woken::new();
        assert!(poll(first.as_mut(), Waker::noop()).is_pending());
        assert!(poll(second.as_mut(), &waker).is_pending());
        let receiver = thread::spawn(move || {
            drop(rx.try_recv());
            rx
        });
        drop(first);
        let rx = receiver.join().unwrap();
        assert_eq!(woken.times(), 1, "the room was lost");
        drop(second);
        assert_eq!(tx.capacity(), 1);
        drop(rx);
    });
}

/// Fails if a reservation adds to `reserved` without an exchange.
#[test]
fn reservations_beside_each_other_stay_within_the_capacity() {
    model(|| {
        let (tx, mut rx) = channel(1);
        let other = {
            let tx = tx.clone();
            thread::spawn(move || tx.try_send(message(0)).is_ok())
        };
        let sent = tx.try_send(message(1)).is_ok();
        let received = rx.try_recv().is_ok();
        let again = tx.try_send(message(2)).is_ok();
        let other = other.join().unwrap();
        assert!(sent || other);
        assert!(!received || again || other);
        let count = [sent, again, other].map(u32::from).iter().sum::<u32>();
        assert!(count <= 1 + u32::from(received));
        let mut left = 0;
        while rx.try_recv().is_ok() {
            left += 1;
        }
        assert_eq!(left + u32::from(received), count);
        assert_eq!(tx.capacity(), 1);
    });
}

/// Fails if a permit that is given back after a close does not wake the receiver, or if the
/// receiver looks at what is reserved before it registers.
#[test]
fn permit_beside_a_closed_receiver_is_received_or_ends() {
    for is_sent in [false, true] {
        model(move || {
            let (tx, mut rx) = channel(1);
            let permit = tx.clone().try_reserve_owned().unwrap();
            let sender = thread::spawn(move || match is_sent {
                true => drop(permit.send(message(0))),
                false => drop(permit),
            });
            rx.close();
            let (woken, waker) = Woken::new();
            let mut cx = Context::from_waker(&waker);
            let mut received = rx.poll_recv(&mut cx);
            sender.join().unwrap();
            if received.is_pending() {
                assert!(woken.times() >= 1, "a wake was lost");
                received = rx.poll_recv(&mut cx);
            }
            match received {
                Poll::Ready(Some(_)) => {
                    assert!(is_sent);
                    assert!(matches!(rx.poll_recv(&mut cx), Poll::Ready(None)));
                }
                received => assert!(received.is_ready() && !is_sent),
            }
            drop(tx);
        });
    }
}

/// Fails if a close does not release the waiters, or if a future queues after it.
#[test]
fn close_beside_a_reservation_ends_it() {
    model(|| {
        let (tx, mut rx) = channel(1);
        tx.try_send(message(0)).unwrap();
        let receiver = thread::spawn(move || rx.close());
        let (woken, waker) = Woken::new();
        let mut send = Box::pin(tx.send(message(1)));
        let first = poll(send.as_mut(), &waker);
        receiver.join().unwrap();
        if first.is_pending() {
            assert_eq!(woken.times(), 1, "a wake was lost");
            assert!(matches!(poll(send.as_mut(), &waker), Poll::Ready(Err(_))));
        } else {
            assert!(matches!(first, Poll::Ready(Err(_))));
        }
    });
}

/// A sender that sees the close is refused, and sees what the receiver's thread did before.
///
/// Fails if `is_closed` of a bounded channel reads `tail`, or if its load is Relaxed.
#[test]
fn send_after_is_closed_is_refused() {
    model(|| {
        let (tx, mut rx) = channel(1);
        let done = Arc::new(AtomicUsize::new(0));
        let receiver = {
            let done = done.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the channel must order it.
                done.store(1, Relaxed);
                rx.close();
            })
        };
        if tx.is_closed() {
            // Ordering: Relaxed, as above.
            assert_eq!(done.load(Relaxed), 1);
            let sent = tx.try_send(message(0));
            assert!(matches!(sent, Err(error::TrySendError::Closed(_))));
        }
        receiver.join().unwrap();
    });
}

/// A receive, and the drop of a permit, come before the send into the room that they make.
///
/// Fails if the addition of `give_room`, or the load of `full_at`, is Relaxed; or if the
/// subtraction of `give_back`, or the exchange of a reservation, is.
#[test]
fn making_of_room_comes_before_the_send_into_it() {
    for is_permit in [false, true] {
        model(move || {
            let (tx, mut rx) = channel(1);
            let permit = tx.clone().try_reserve_owned().unwrap();
            let permit = if is_permit {
                Some(permit)
            } else {
                drop(permit.send(message(0)));
                None
            };
            let done = Arc::new(AtomicUsize::new(0));
            let other = {
                let done = done.clone();
                thread::spawn(move || {
                    // Ordering: Relaxed, the channel must order it.
                    done.store(1, Relaxed);
                    if permit.is_none() {
                        drop(rx.try_recv());
                    }
                    drop(permit);
                    rx
                })
            };
            if tx.try_send(message(1)).is_ok() {
                // Ordering: Relaxed, as above.
                assert_eq!(done.load(Relaxed), 1);
            }
            drop(other.join().unwrap());
        });
    }
}

/// Two senders end. The receiver sees the end, and what each sender's thread did before.
///
/// Fails if the subtraction from `strong` is no Acquire and Release, if `mark` is no Release, or if
/// the load of `tail` is Relaxed.
#[test]
fn end_of_senders_shows_what_came_before_it() {
    Model::new().bound(3).check(|| {
        let (tx, mut rx) = unbounded_channel::<Message>();
        let done = Arc::new(AtomicUsize::new(0));
        let ends = [tx.clone(), tx].map(|tx| {
            let done = done.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the channel must order it.
                done.fetch_add(1, Relaxed);
                drop(tx);
            })
        });
        if matches!(rx.try_recv(), Err(TryRecvError::Disconnected)) {
            // Ordering: Relaxed, as above.
            assert_eq!(done.load(Relaxed), 2);
        }
        for end in ends {
            end.join().unwrap();
        }
    });
}

/// A thread gives room back. A closed receiver sees that nothing will come, and a sender that waits
/// gets the room: each sees what that thread did before.
///
/// Fails if the subtraction of `give_back` is no Release, or if the load of `has_reserved`, or that
/// of `reserved` in `grant_in`, is Relaxed.
#[test]
fn room_that_is_given_back_shows_what_came_before_it() {
    for closes in [true, false] {
        model(move || {
            let (tx, mut rx) = channel::<Message>(1);
            let permit = tx.clone().try_reserve_owned().unwrap();
            let done = Arc::new(AtomicUsize::new(0));
            let other = {
                let done = done.clone();
                thread::spawn(move || {
                    // Ordering: Relaxed, the channel must order it.
                    done.store(1, Relaxed);
                    drop(permit);
                })
            };
            let is_ordered = if closes {
                rx.close();
                matches!(rx.try_recv(), Err(TryRecvError::Disconnected))
            } else {
                let mut reserve = core::pin::pin!(tx.reserve());
                matches!(poll(reserve.as_mut(), Waker::noop()), Poll::Ready(Ok(_)))
            };
            if is_ordered {
                // Ordering: Relaxed, as above.
                assert_eq!(done.load(Relaxed), 1);
            }
            other.join().unwrap();
        });
    }
}

/// A receiver makes room for two senders, one of which finds the limit that the other has stored.
/// The receives come before both sends.
///
/// Fails if the store or the load of `limit` in `try_reserve` is Relaxed.
#[test]
fn making_of_room_comes_before_the_sends_of_two_senders() {
    Model::new().bound(3).check(|| {
        let (tx, mut rx) = channel(2);
        tx.try_send(0).unwrap();
        tx.try_send(0).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let receiver = {
            let done = done.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the channel must order it.
                done.store(1, Relaxed);
                rx.try_recv().unwrap();
                rx.try_recv().unwrap();
                rx
            })
        };
        let other = tx.clone();
        let sender = thread::spawn(move || other.try_send(1).is_ok());
        if tx.try_send(1).is_ok() {
            // Ordering: Relaxed, as above.
            assert_eq!(done.load(Relaxed), 1);
        }
        sender.join().unwrap();
        drop(receiver.join().unwrap());
    });
}

/// The receiver makes room for two messages and grants one to the waiter. A sender that finds the
/// limit of that grant sends after the receives.
///
/// Fails if the store of `limit` in `grant_in` is Relaxed.
#[test]
fn making_of_room_comes_before_the_send_beside_a_grant() {
    model(|| {
        let (tx, mut rx) = channel(2);
        tx.try_send(0).unwrap();
        tx.try_send(0).unwrap();
        let mut reserve = Box::pin(tx.reserve());
        assert!(poll(reserve.as_mut(), Waker::noop()).is_pending());
        let done = Arc::new(AtomicUsize::new(0));
        let receiver = {
            let done = done.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the channel must order it.
                done.store(1, Relaxed);
                let mut got = Vec::new();
                let mut cx = Context::from_waker(Waker::noop());
                assert!(rx.poll_recv_many(&mut cx, &mut got, 2).is_ready());
                rx
            })
        };
        if tx.try_send(1).is_ok() {
            // Ordering: Relaxed, as above.
            assert_eq!(done.load(Relaxed), 1);
        }
        drop(receiver.join().unwrap());
        drop(reserve);
    });
}

/// Fails if the load of `strong` is Relaxed: a receiver that sees no sender may miss the last
/// message.
#[test]
fn message_of_the_last_sender_is_seen_with_its_end() {
    model(|| {
        let (tx, rx) = unbounded_channel();
        let sender = thread::spawn(move || tx.send(1).unwrap());
        if rx.sender_strong_count() == 0 {
            assert_eq!(rx.len(), 1);
        }
        sender.join().unwrap();
        drop(rx);
    });
}

/// The receiver's thread writes and closes the channel. A sender that is refused sees the write.
///
/// Fails if the load of `refused_by_close` in `room.rs` is Relaxed, or the change of `CLOSED`, or
/// if the claim of a position or `mark` is.
#[test]
fn refusal_shows_what_came_before_the_close() {
    for is_bounded in [true, false] {
        Model::new().bound(3).check(move || {
            let done = Arc::new(AtomicUsize::new(0));
            let close = {
                let done = done.clone();
                // Ordering: Relaxed, the channel must order it.
                move || done.store(1, Relaxed)
            };
            let (is_refused, closer) = if is_bounded {
                let (tx, mut rx) = channel::<Message>(1);
                let closer = thread::spawn(move || {
                    close();
                    rx.close();
                });
                (tx.try_reserve().is_err(), closer)
            } else {
                let (tx, mut rx) = unbounded_channel();
                let closer = thread::spawn(move || {
                    close();
                    rx.close();
                });
                (tx.send(message(0)).is_err(), closer)
            };
            if is_refused {
                // Ordering: Relaxed, as above.
                assert_eq!(done.load(Relaxed), 1);
            }
            closer.join().unwrap();
        });
    }
}

/// The last sender's thread writes and drops the sender. An upgrade that fails sees the write.
///
/// Fails if the failed update of `try_add_sender` is Relaxed.
#[test]
fn failed_upgrade_shows_what_came_before_the_end() {
    model(|| {
        let (tx, _rx) = unbounded_channel::<Message>();
        let weak = tx.downgrade();
        let done = Arc::new(AtomicUsize::new(0));
        let other = {
            let done = done.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the channel must order it.
                done.store(1, Relaxed);
                drop(tx);
            })
        };
        if weak.upgrade().is_none() {
            // Ordering: Relaxed, as above.
            assert_eq!(done.load(Relaxed), 1);
        }
        other.join().unwrap();
    });
}
