use super::*;
use selvedge::time::Instant;
use std::{
    cell::{Cell, RefCell},
    future::{pending, poll_fn},
    rc::Rc,
};

fn v4(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 80))
}

fn v6(last: u16) -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 80))
}

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

/// Runs on one thread, with a clock that jumps whenever nothing else is to do.
fn paused<F: Future>(future: F) -> F::Output {
    let builder = selvedge::Builder::new_current_thread();
    builder.start_paused(true).build().unwrap().block_on(future)
}

type Begun = Rc<RefCell<Vec<(SocketAddr, Duration)>>>;

/// Races the attempts whose futures `connect` makes. Returns the connection, the attempts, and when
/// the attempt for each address began.
async fn race<F: Future<Output = io::Result<SocketAddr>>>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> (Option<SocketAddr>, Attempts, Vec<(SocketAddr, Duration)>) {
    let (start, begun) = (Instant::now(), Begun::default());
    let connect = |address| {
        begun.borrow_mut().push((address, start.elapsed()));
        connect(address)
    };
    let mut race = Race::new(addresses.into_iter().collect(), connect);
    let won = poll_fn(|cx| race.poll(cx)).await;
    (won, race.into_attempts(), begun.take())
}

#[test]
fn families_alternate_from_the_first_address_on() {
    let given = [v6(1), v6(2), v6(1), v4(1), v6(3), v4(2)];
    assert_eq!(alternate(given), [v6(1), v4(1), v6(2), v4(2), v6(3)]);
    assert_eq!(alternate([v4(1), v6(1)]), [v4(1), v6(1)]);
    assert_eq!(alternate([v4(2), v4(1)]), [v4(2), v4(1)]);
    assert!(alternate([]).is_empty());
}

// Fails if an attempt waits until the earlier one ends, or begins before `STAGGER` is over.
#[test]
fn silent_address_delays_the_next_by_the_stagger() {
    paused(async {
        let connect = async |to: SocketAddr| match to.is_ipv6() {
            true => pending().await,
            false => Ok(to),
        };
        let (won, _, begun) = race([v6(1), v4(1), v6(2)], connect).await;
        assert_eq!(won, Some(v4(1)));
        assert_eq!(begun, [(v6(1), Duration::ZERO), (v4(1), STAGGER)]);
    });
}

// Fails if, after a failed attempt, the next one waits for `STAGGER`, or if `STAGGER` does not
// count from the begin of that next attempt.
#[test]
fn failure_begins_the_next_attempt_at_once() {
    paused(async {
        let connect = async |to: SocketAddr| match to {
            to if to == v6(1) => Err(refused()),
            to if to == v4(1) => pending().await,
            to => Ok(to),
        };
        let (won, _, begun) = race([v6(1), v4(1), v6(2)], connect).await;
        assert_eq!(won, Some(v6(2)));
        let times = [Duration::ZERO, Duration::ZERO, STAGGER];
        assert_eq!(
            begun,
            [v6(1), v4(1), v6(2)]
                .into_iter()
                .zip(times)
                .collect::<Vec<_>>()
        );
    });
}

// Fails if more than 8 attempts run at a time, or if the ninth does not begin at once when one of
// the 8 fails.
#[test]
fn ninth_attempt_waits_for_a_failure() {
    let late = STAGGER * 20;
    paused(async {
        let connect = async |to: SocketAddr| match to {
            to if to == v4(3) => {
                time::sleep_until(Instant::now() + late - STAGGER * 2).await;
                Err(refused())
            }
            to if to == v4(9) => Ok(to),
            _ => pending().await,
        };
        let (won, attempts, begun) = race((1..=10).map(v4), connect).await;
        assert_eq!(won, Some(v4(9)));
        assert_eq!(attempts.iter().len(), 9);
        assert_eq!(begun[7..], [(v4(8), STAGGER * 7), (v4(9), late)]);
    });
}

// Fails if a later attempt ends an earlier one, or if the winner does not end the others.
#[test]
fn slow_first_address_wins_and_the_others_are_dropped() {
    struct Open<'a>(&'a Cell<u32>);
    impl Drop for Open<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    paused(async {
        let open = Cell::new(0);
        let connect = async |to: SocketAddr| {
            open.set(open.get() + 1);
            let _open = Open(&open);
            match to.is_ipv6() {
                true => time::sleep(STAGGER * 3 / 2).await,
                false => pending().await,
            }
            Ok(to)
        };
        let (won, _, begun) = race([v6(1), v4(1), v6(2)], connect).await;
        assert_eq!((won, begun.len()), (Some(v6(1)), 2));
        assert_eq!(open.get(), 0);
    });
}

#[test]
fn failure_of_all_names_each_address() {
    paused(async {
        let connect = async |to: SocketAddr| match to.is_ipv6() {
            true => {
                time::sleep(STAGGER * 8).await;
                Err(io::Error::other("late"))
            }
            false => Err(refused()),
        };
        let (won, attempts, _) = race([v6(1), v4(1), v4(2)], connect).await;
        assert_eq!(won, None);
        let tried: Vec<_> = attempts.iter().map(|(address, _)| address).collect();
        assert_eq!(tried, [v4(1), v4(2), v6(1)]);
        assert_eq!(attempts.last_error().unwrap().to_string(), "late");
        let refused = refused();
        let all = format!(
            "{}: {refused}; {}: {refused}; {}: late",
            v4(1),
            v4(2),
            v6(1)
        );
        assert_eq!(attempts.to_string(), all);
    });
}

#[test]
fn no_address_is_a_failure_without_attempts() {
    paused(async {
        let (won, attempts, _) = race([], async |to: SocketAddr| Ok(to)).await;
        assert!(won.is_none() && attempts.is_empty() && attempts.last_error().is_none());
        assert_eq!(attempts.to_string(), "no address was tried");
    });
}

#[test]
fn attempts_without_an_answer_come_last_and_say_so() {
    paused(async {
        let connect = async |to: SocketAddr| match to.is_ipv6() {
            true => pending::<io::Result<()>>().await,
            false => Err(refused()),
        };
        let mut race = Race::new([v6(1), v4(1)].into(), connect);
        let limit = time::timeout(STAGGER * 4, poll_fn(|cx| race.poll(cx)));
        assert!(limit.await.is_err());
        let shown = race.into_attempts().to_string();
        assert_eq!(
            shown,
            format!("{}: {}; {}: no answer", v4(1), refused(), v6(1))
        );
    });
}
