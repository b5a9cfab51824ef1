//! Several hosts, their network and their faults.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use net_driver::{
    net::{TcpListener, TcpStream, UdpSocket},
    time::{sleep, timeout},
};
use selvedge_executor::spawn;
use selvedge_sim::{Faults, Hosts, Net, Run, Sim, explore, thread};
use socket2::{Domain, Socket, Type};
use std::{
    io,
    mem::ManuallyDrop,
    net::SocketAddr,
    os::fd::{FromRawFd, IntoRawFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};
use task_io::{AsyncReadExt, AsyncWriteExt};

const MS: Duration = Duration::from_millis(1);

/// Answers each byte by its successor.
async fn serve() {
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        spawn(async move {
            let mut byte = [0];
            while stream.read(&mut byte).await? == 1 {
                stream.write_all(&[byte[0] + 1]).await?;
            }
            io::Result::Ok(())
        });
    }
}

async fn ask(byte: u8) -> io::Result<u8> {
    let mut stream = TcpStream::connect("db:80").await?;
    stream.write_all(&[byte]).await?;
    let mut back = [0];
    stream.read_exact(&mut back).await?;
    Ok(back[0])
}

fn three(sim: &Sim) -> Hosts {
    let client = || async {
        for byte in 0..5 {
            assert_eq!(ask(byte).await.unwrap(), byte + 1);
        }
    };
    sim.hosts()
        .server("db", 2, serve)
        .client("web", 2, client)
        .client("batch", 1, client)
}

#[test]
fn clients_reach_a_server_by_its_name() {
    let explored = explore(0..100, |sim| three(&sim).run());
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

#[test]
fn streams_survive_loss_duplicates_and_partitions() {
    let net = Net::new().loss(0.05).duplicates(0.05).bandwidth(1 << 20);
    let explored = explore(0..200, |sim| {
        three(&sim)
            .net(net.clone())
            .faults(Faults::new().partitions(3))
            .run()
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

#[test]
fn requests_after_a_crash_reach_the_next_incarnation() {
    let explored = explore(0..100, |sim| {
        let client = || async {
            for byte in 0..20 {
                loop {
                    match timeout(500 * MS, ask(byte)).await {
                        Ok(Ok(back)) => break assert_eq!(back, byte + 1),
                        Ok(Err(_)) | Err(_) => sleep(50 * MS).await,
                    }
                }
            }
        };
        sim.hosts()
            .server("db", 2, serve)
            .client("web", 2, client)
            .crash("db", 1 * MS..40 * MS, Some(300 * MS))
            .run()
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

/// Connects from `web` to `db` while `hosts` has some fault. Returns the kind of the error, and how
/// long it took.
fn failure_of(hosts: impl Fn(Hosts) -> Hosts) -> (io::ErrorKind, Duration) {
    let found = Arc::new(Mutex::new(None));
    let sent = found.clone();
    let hosts = hosts(Sim::new(1).hosts().server("db", 1, serve));
    let run = hosts.client("web", 1, move || {
        let sent = sent.clone();
        async move {
            sleep(100 * MS).await;
            let begun = Instant::now();
            let error = ask(1).await.unwrap_err();
            *sent.lock().unwrap() = Some((error.kind(), begun.elapsed()));
        }
    });
    run.run().unwrap();
    let found = found.lock().unwrap().take();
    found.unwrap()
}

#[test]
fn connection_to_a_host_that_is_away_times_out() {
    let crashed = |hosts: Hosts| hosts.crash("db", 50 * MS..50 * MS, None);
    let (kind, took) = failure_of(crashed);
    assert_eq!(kind, io::ErrorKind::TimedOut);
    assert!(took > Duration::from_secs(60), "{took:?}");
}

/// The server sleeps in its first incarnation, so its second one does not know the connection.
#[test]
fn connection_of_an_earlier_incarnation_is_reset() {
    let kind = Arc::new(Mutex::new(None));
    let sent = kind.clone();
    let hosts = Sim::new(1).hosts().server("db", 1, serve);
    let hosts = hosts.client("web", 1, move || {
        let sent = sent.clone();
        async move {
            let mut stream = TcpStream::connect("db:80").await.unwrap();
            sleep(500 * MS).await;
            stream.write_all(b"a").await.unwrap();
            let error = stream.read(&mut [0]).await.unwrap_err();
            *sent.lock().unwrap() = Some(error.kind());
        }
    });
    hosts
        .crash("db", 100 * MS..100 * MS, Some(100 * MS))
        .run()
        .unwrap();
    assert_eq!(*kind.lock().unwrap(), Some(io::ErrorKind::ConnectionReset));
}

#[test]
fn host_whose_clock_is_ahead_has_another_date() {
    let dates = Arc::new(Mutex::new(Vec::new()));
    let note = |dates: &Arc<Mutex<Vec<_>>>| {
        let dates = dates.clone();
        move || {
            let dates = dates.clone();
            async move { dates.lock().unwrap().push(SystemTime::now()) }
        }
    };
    let hosts = Sim::new(1).hosts();
    let hosts = hosts.client("one", 1, note(&dates));
    let hosts = hosts.client("other", 1, note(&dates));
    let ahead = Duration::from_secs(3_600);
    hosts.clock_ahead("other", ahead).run().unwrap();
    let mut dates = dates.lock().unwrap().clone();
    dates.sort();
    let apart = dates[1].duration_since(dates[0]).unwrap();
    assert!(
        apart > ahead - 100 * MS && apart < ahead + 100 * MS,
        "{apart:?}"
    );
}

#[test]
fn polls_of_a_slow_host_take_longer() {
    let time = |times| {
        let polls = || async {
            for _ in 0..1_000 {
                selvedge_executor::yield_now().await;
            }
        };
        let main = move || async move { spawn(polls()).await.unwrap() };
        let hosts = Sim::new(1).hosts().client("one", 1, main);
        let run = hosts.slow("one", times).run();
        run.unwrap();
        run.stats().time
    };
    assert!(time(100) > 10 * time(1));
}

/// The drop of the value would set the flag.
#[test]
fn crash_runs_no_destructor() {
    struct Sets(Arc<AtomicBool>);
    impl Drop for Sets {
        fn drop(&mut self) {
            // Ordering: Relaxed, as one thread of the system runs all.
            self.0.store(true, Relaxed);
        }
    }
    let was_dropped = Arc::new(AtomicBool::new(false));
    let flag = was_dropped.clone();
    let wait = move || {
        let sets = Sets(flag.clone());
        async move {
            std::future::pending::<()>().await;
            drop(sets);
        }
    };
    let hosts = Sim::new(1).hosts().server("db", 2, wait);
    let hosts = hosts.client("web", 1, || sleep(100 * MS));
    hosts.crash("db", 50 * MS..50 * MS, None).run().unwrap();
    // Ordering: Relaxed, as above.
    assert!(!was_dropped.load(Relaxed));
}

#[test]
fn report_of_a_failure_has_events_of_each_host() {
    let explored = explore(0..1, |sim| {
        let hosts = sim.hosts().server("db", 1, serve);
        let client = || async {
            ask(1).await.unwrap();
            panic!("found");
        };
        hosts.client("web", 1, client).run()
    });
    let report = explored.found.unwrap().to_string();
    assert!(report.contains("db: selvedge-0"), "{report}");
    assert!(report.contains("the thread web panicked"), "{report}");
}

#[test]
fn fault_that_a_failure_does_not_need_is_shrunk_away() {
    let scenario = |sim: Sim| {
        let hosts = sim.hosts().server("db", 1, serve);
        let client = || async {
            sleep(Duration::from_secs(5)).await;
            panic!("found");
        };
        hosts
            .client("web", 1, client)
            .faults(Faults::new().crashes(3).partitions(3))
            .run()
    };
    let has_fault = |run: &Run| {
        let is_fault = |kind: &str| kind == "crash" || kind.starts_with("cut");
        run.events().iter().any(|event| is_fault(event.kind))
    };
    assert!(has_fault(&scenario(Sim::new(0).keep_events(100_000))));
    let found = explore(0..1, scenario).found.unwrap();
    assert!(!found.run.events().is_empty());
    assert!(!has_fault(&found.run));
}

#[test]
#[should_panic(expected = "there is a host main already")]
fn host_with_the_name_of_the_main_function_is_refused() {
    let _ = Sim::new(1).hosts().server("main", 1, serve);
}

/// The first incarnation leaves a socket in a value that outlives it. The second one has a socket
/// of its own in the same place of its table.
#[test]
fn socket_of_an_earlier_incarnation_leads_to_no_file() {
    let left = Arc::new(Mutex::new(Vec::<std::net::UdpSocket>::new()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (pool, notes) = (left, seen.clone());
    let server = move || {
        let (pool, notes) = (pool.clone(), notes.clone());
        async move {
            let own = std::net::UdpSocket::bind("0.0.0.0:7").unwrap();
            let old = pool.lock().unwrap().pop();
            if let Some(old) = old {
                let number = old.local_addr().unwrap_err().raw_os_error();
                drop(old);
                let is_open = own.local_addr().is_ok();
                notes.lock().unwrap().push((number, is_open));
            }
            pool.lock().unwrap().push(own);
            std::future::pending::<()>().await;
        }
    };
    let hosts = Sim::new(1).hosts().server("db", 1, server);
    let hosts = hosts.client("web", 1, || sleep(300 * MS));
    let at = 50 * MS..50 * MS;
    hosts.crash("db", at, Some(50 * MS)).run().unwrap();
    assert_eq!(*seen.lock().unwrap(), [(Some(libc::EBADF), true)]);
}

/// The sender's worker is between two polls when most packets arrive.
#[test]
fn arrival_is_an_event_of_the_host_that_receives() {
    for seed in 0..5 {
        let receives = || async {
            let socket = UdpSocket::bind("0.0.0.0:5").await.unwrap();
            while socket.recv(&mut [0]).await.is_ok() {}
        };
        let sends = || async {
            sleep(MS).await;
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            socket.connect("db:5").await.unwrap();
            let task = spawn(async move {
                for _ in 0..10 {
                    socket.send(b"a").await.unwrap();
                    for _ in 0..8_000 {
                        selvedge_executor::yield_now().await;
                    }
                }
            });
            task.await.unwrap();
        };
        let hosts = Sim::new(seed).keep_events(1_000_000).hosts();
        let hosts = hosts.server("db", 1, receives).client("web", 1, sends);
        let run = hosts.net(Net::new().latency(MS / 10..MS / 5)).run();
        run.unwrap();
        let packets = run.events().iter().filter(|event| event.kind == "packet");
        let names: Vec<_> = packets.map(|event| event.name.clone().unwrap()).collect();
        assert!(names.len() >= 5, "{names:?}");
        assert!(names.iter().all(|name| name.starts_with("db")), "{names:?}");
    }
}

#[test]
fn connect_of_a_socket_that_is_closed_meanwhile_fails() {
    let client = || async {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let fd = socket.into_raw_fd();
        let connecting = thread::spawn(move || {
            // SAFETY: the descriptor is open when the call begins. The close is what this tests.
            let socket = ManuallyDrop::new(unsafe { Socket::from_raw_fd(fd) });
            let to: SocketAddr = "10.0.0.2:9".parse().unwrap();
            socket.connect(&to.into()).unwrap_err().raw_os_error()
        });
        thread::sleep(MS / 10);
        // SAFETY: the descriptor is open, and nothing uses it after this.
        assert_eq!(unsafe { libc::close(fd) }, 0);
        assert_eq!(connecting.join().unwrap(), Some(libc::EBADF));
    };
    let hosts = Sim::new(1).hosts().server("db", 1, serve);
    hosts.client("web", 1, client).run().unwrap();
}
