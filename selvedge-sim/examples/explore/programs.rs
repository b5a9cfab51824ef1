//! Small programs of a server and its clients, each with a mistake behind a flag.
use crate::{
    mistakes::is_planted,
    network::{Disk, MS, call, ms, serve, until_done},
};
use net_driver::{
    net::{TcpStream, UdpSocket},
    time::{Instant, sleep, timeout},
};
use selvedge_executor::spawn;
use selvedge_sim::{Net, Run, Sim, random_below};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::{self, ErrorKind},
    ops::Range,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};
use task_io::{AsyncReadExt, AsyncWriteExt};

/// The time since 1970, by the date of this host.
fn date() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("a date after 1970")
}

/// An alarm rings at its date, also if the server has restarted meanwhile.
pub fn alarms(sim: Sim) -> Run {
    const WAIT: Duration = Duration::from_millis(400);
    const SET: u64 = 1;
    #[derive(Default)]
    struct Alarm {
        due: Option<Duration>,
        has_rung: bool,
    }
    async fn ring(disk: Disk<Alarm>, wait: Duration) {
        sleep(wait).await;
        disk.with(|alarm| alarm.has_rung = true);
    }
    async fn run(disk: Disk<Alarm>) {
        let started = Instant::now();
        let clock = move || match is_planted("due time is one of the clock since the start") {
            true => started.elapsed(),
            false => date(),
        };
        if let Some(due) = disk.with(|alarm| alarm.due) {
            match due.checked_sub(clock()) {
                Some(wait) => drop(spawn(ring(disk.clone(), wait))),
                None => disk.with(|alarm| alarm.has_rung = true),
            }
        }
        let answer = move |mut stream: TcpStream| {
            let disk = disk.clone();
            async move {
                if stream.read_u64().await? == SET && disk.with(|alarm| alarm.due.is_none()) {
                    disk.with(|alarm| alarm.due = Some(clock() + WAIT));
                    spawn(ring(disk.clone(), WAIT));
                }
                let has_rung = disk.with(|alarm| alarm.has_rung);
                stream.write_u64(has_rung.into()).await
            }
        };
        serve(1, answer).await;
    }
    let disk = Disk::default();
    sim.hosts()
        .server("alarms", 1, move || run(disk.clone()))
        .client("web", 1, || async {
            sleep(MS * random_below(300) as u32).await;
            until_done(200 * MS, |_| call("alarms:1", [SET])).await;
            sleep(WAIT + 300 * MS).await;
            let has_rung = until_done(200 * MS, |_| call("alarms:1", [0])).await;
            assert_eq!(has_rung, 1, "the alarm is late");
        })
        .crash("alarms", ms(50..900), Some(100 * MS))
        .run()
}

/// Messages of a stream begin with their length. A read returns a part of one, or of several.
pub fn frames_of_a_stream(sim: Sim) -> Run {
    const MESSAGES: u16 = 30;
    let len = |number: u16| 1 + number * 37 % 200;
    async fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
        let mut message = vec![0; stream.read_u16().await?.into()];
        if is_planted("one read is taken for a message") {
            stream.read(&mut message).await?;
        } else {
            stream.read_exact(&mut message).await?;
        }
        Ok(message)
    }
    sim.hosts()
        .server("server", 1, move || {
            serve(1, move |mut stream| async move {
                for number in 0..MESSAGES {
                    let len = len(number);
                    stream.write_u16(len).await?;
                    let message = vec![number as u8; len.into()];
                    stream.write_all(&message).await?;
                }
                Ok(())
            })
        })
        .client("web", 1, move || async move {
            let mut stream = TcpStream::connect("server:1").await.unwrap();
            for number in 0..MESSAGES {
                let message = receive(&mut stream).await.unwrap();
                let expected = vec![number as u8; len(number).into()];
                assert!(message == expected, "message {number} is another one");
            }
        })
        .run()
}

/// Each datagram counts once, though the network repeats some, and the client does.
pub fn increments(sim: Sim) -> Run {
    const NUMBERS: u64 = 10;
    #[derive(Default)]
    struct Sums {
        known: BTreeSet<u64>,
        sum: u64,
    }
    async fn count(disk: Disk<Sums>) {
        let socket = UdpSocket::bind("0.0.0.0:9").await.unwrap();
        loop {
            let mut number = [0; 8];
            let (_, from) = socket.recv_from(&mut number).await.unwrap();
            disk.with(|sums| {
                let is_new = sums.known.insert(u64::from_be_bytes(number));
                if is_new || is_planted("datagram that comes twice counts twice") {
                    sums.sum += 1;
                }
            });
            socket.send_to(&number, from).await.unwrap();
        }
    }
    async fn send(number: u64) {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.connect("server:9").await.unwrap();
        loop {
            socket.send(&number.to_be_bytes()).await.unwrap();
            let mut answer = [0; 8];
            if timeout(100 * MS, socket.recv(&mut answer)).await.is_ok() {
                return;
            }
        }
    }
    let disk = Disk::<Sums>::default();
    let checked = disk.clone();
    sim.hosts()
        .server("server", 1, move || count(disk.clone()))
        .client("web", 1, || async {
            for number in 0..NUMBERS {
                send(number).await;
            }
        })
        .net(Net::new().latency(ms(1..30)).loss(0.02).duplicates(0.02))
        .check(move || checked.with(|sums| assert_eq!(sums.sum, NUMBERS)))
        .run()
}

/// An order is created, and then paid, by two connections.
pub fn orders(sim: Sim) -> Run {
    const CREATE: u64 = 1;
    const PAY: u64 = 2;
    type Orders = Disk<BTreeMap<u64, bool>>;
    async fn answer(disk: Orders, mut stream: TcpStream) -> io::Result<()> {
        let (what, order) = (stream.read_u64().await?, stream.read_u64().await?);
        let is_done = disk.with(|orders| match what {
            CREATE => {
                orders.entry(order).or_insert(false);
                true
            }
            _ => orders
                .get_mut(&order)
                .map(|is_paid| *is_paid = true)
                .is_some(),
        });
        stream.write_u64(is_done.into()).await
    }
    async fn buy(order: u64) {
        let create = move || until_done(500 * MS, move |_| call("shop:1", [CREATE, order]));
        if is_planted("two connections are taken to keep their order") {
            spawn(async move { create().await });
            sleep(2 * MS).await;
        } else {
            create().await;
        }
        let is_paid = until_done(500 * MS, move |_| call("shop:1", [PAY, order])).await;
        assert_eq!(is_paid, 1, "there is no order {order}");
    }
    let disk = Orders::default();
    sim.hosts()
        .server("shop", 2, move || {
            let disk = disk.clone();
            serve(1, move |stream| answer(disk.clone(), stream))
        })
        .client("web", 1, || async {
            for order in 0..3 {
                buy(order).await;
            }
        })
        .net(Net::new().latency(ms(1..5)))
        .run()
}

/// Two clients add to one value: each reads it, and writes it if no other write came between.
pub fn updates(sim: Sim) -> Run {
    const TIMES: u64 = 4;
    const READ: u64 = 0;
    async fn answer(disk: Disk<u64>, mut stream: TcpStream) -> io::Result<()> {
        let (what, expected) = (stream.read_u64().await?, stream.read_u64().await?);
        let answer = disk.with(|value| {
            if what == READ {
                return *value;
            }
            let is_current = *value == expected;
            if is_current || is_planted("write does not compare the version") {
                *value = expected + 1;
                return 1;
            }
            0
        });
        stream.write_u64(answer).await
    }
    let disk = Disk::default();
    let checked = disk.clone();
    let client = || async {
        for _ in 0..TIMES {
            loop {
                let value = call("store:1", [READ, 0]).await.unwrap();
                sleep(MS * random_below(5) as u32).await;
                if call("store:1", [1, value]).await.unwrap() == 1 {
                    break;
                }
            }
            sleep(MS * random_below(50) as u32).await;
        }
    };
    sim.hosts()
        .server("store", 2, move || {
            let disk = disk.clone();
            serve(1, move |stream| answer(disk.clone(), stream))
        })
        .client("one", 1, client)
        .client("other", 1, client)
        .check(move || checked.with(|value| assert_eq!(*value, 2 * TIMES)))
        .run()
}

/// A lock is granted for some time. The clock of its server is ahead of that of its clients.
pub fn dated_leases(sim: Sim) -> Run {
    const LEASE: Duration = Duration::from_millis(200);
    type Granted = Arc<Mutex<Option<Instant>>>;
    let is_dated = || is_planted("lease ends at a date of the server's clock");
    /// Answers with the end of the lease, or 0.
    async fn grant(granted: Granted, mut stream: TcpStream, is_dated: bool) -> io::Result<()> {
        stream.read_u64().await?;
        let is_free = {
            let mut granted = granted.lock().unwrap();
            let now = Instant::now();
            let is_free = granted.is_none_or(|until| until < now);
            if is_free {
                *granted = Some(now + LEASE);
            }
            is_free
        };
        let end = if is_dated { date() + LEASE } else { LEASE };
        let answer = if is_free { end.as_nanos() as u64 } else { 0 };
        stream.write_u64(answer).await
    }
    async fn acquire(is_dated: bool) -> io::Result<Instant> {
        let begun = Instant::now();
        let end = Duration::from_nanos(call("locks:1", [1]).await?);
        match end {
            Duration::ZERO => Err(ErrorKind::WouldBlock.into()),
            end if is_dated => Ok(Instant::now() + end.saturating_sub(date())),
            end => Ok(begun + end),
        }
    }
    let held = Disk::<Vec<Range<Instant>>>::default();
    let client = move || {
        let held = held.clone();
        async move {
            for _ in 0..2 {
                let until = until_done(100 * MS, |_| acquire(is_dated())).await;
                let now = Instant::now();
                if now < until {
                    held.with(|held| {
                        let meets = |other: &Range<Instant>| other.start < until && now < other.end;
                        assert!(!held.iter().any(meets), "two have the lock");
                        held.push(now..until);
                    });
                }
            }
        }
    };
    sim.hosts()
        .server("locks", 1, move || {
            let granted = Granted::default();
            serve(1, move |stream| grant(granted.clone(), stream, is_dated()))
        })
        .client("one", 1, client.clone())
        .client("other", 1, client)
        .clock_ahead("locks", 100 * MS)
        .run()
}

/// Jobs for two hosts. One host is down for a while: the jobs for the other one do not wait.
pub fn jobs(sim: Sim) -> Run {
    async fn done(mut stream: TcpStream) -> io::Result<()> {
        let number = stream.read_u64().await?;
        stream.write_u64(number).await
    }
    sim.hosts()
        .server("steady", 1, || serve(1, done))
        .server("shaky", 1, || serve(1, done))
        .client("worker", 1, || async {
            let begun = Instant::now();
            let names = ["steady:1", "shaky:1"];
            let mut jobs: VecDeque<_> = (0..12).map(|number| names[number % 2]).collect();
            while let Some(host) = jobs.pop_front() {
                sleep(MS * (20 + random_below(20) as u32)).await;
                if let Ok(Ok(_)) = timeout(100 * MS, call(host, [1])).await {
                    let limit = Duration::from_secs(2);
                    let is_late = host == names[0] && begun.elapsed() > limit;
                    assert!(!is_late, "a job for a host that is up has waited");
                } else if is_planted("job that fails is retried at once for ever") {
                    jobs.push_front(host);
                } else {
                    jobs.push_back(host);
                }
            }
        })
        .crash("shaky", ms(0..2_000), Some(3_000 * MS))
        .run()
}
