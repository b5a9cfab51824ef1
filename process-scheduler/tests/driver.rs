//! Workers that wait in a driver of the user, and deadlines that workers serve.
use process_scheduler::{
    CallError, Cx, EventsOf, ExitReason, Flow, Inbox, NoCommand, OutputOf, Process, Reply,
    Scheduler, Sleep, Step, StepOf,
};
use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

const LIMIT: Duration = Duration::from_secs(600);
const TIME: Duration = Duration::from_millis(20);

/// A waker that reports its wakes.
struct Reports(mpsc::Sender<()>);

impl Wake for Reports {
    fn wake(self: Arc<Self>) {
        // The test may have ended.
        let _ = self.0.send(());
    }
}

/// Arms a sleep whose wake is reported.
fn armed(mut sleep: Sleep) -> (Sleep, mpsc::Receiver<()>) {
    let (sender, woken) = mpsc::channel();
    let waker = Waker::from(Arc::new(Reports(sender)));
    let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    (sleep, woken)
}

/// Makes a scheduler of two workers, and waits until both have gone to sleep.
fn asleep() -> Scheduler {
    let scheduler = Scheduler::builder().workers(2).build();
    let begun = Instant::now();
    while scheduler.metrics().parks < 2 {
        assert!(begun.elapsed() < LIMIT, "the workers stay awake");
        thread::yield_now();
    }
    scheduler
}

/// A step waits on its thread for a deadline that it has armed, so another worker must serve it.
///
/// Fails if a deadline that is armed while no worker keeps the time wakes no worker, or if it does
/// not wake a keeper that parks for longer.
#[test]
fn deadline_armed_in_a_long_step_is_served_by_another_worker() {
    for _ in 0..20 {
        let scheduler = asleep();
        let (sender, ends) = mpsc::channel();
        let blocks = scheduler.spawn_fn(move |(), cx| {
            let (_sleep, woken) = armed(cx.handle().sleep(TIME));
            sender.send(woken.recv_timeout(LIMIT)).unwrap();
        });
        blocks.unwrap().try_send(()).unwrap();
        assert_eq!(ends.recv_timeout(LIMIT).unwrap(), Ok(()));
    }
}

/// A deadline is armed, and then a long step begins on one of the workers.
///
/// Fails if a keeper that leaves for a process is not replaced.
#[test]
fn deadline_armed_before_a_long_step_is_served() {
    for _ in 0..20 {
        let scheduler = asleep();
        let (begin, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let blocks = scheduler.spawn_fn(move |(), _| {
            begin.send(()).unwrap();
            // The test has ended.
            let _ = released.recv();
        });
        let blocks = blocks.unwrap();
        let (_sleep, woken) = armed(scheduler.sleep(TIME));
        blocks.try_send(()).unwrap();
        begun.recv_timeout(LIMIT).unwrap();
        assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
        drop(release);
    }
}

/// Returns whether a process has failed, of which it is not known whether it has ended already.
fn has_failed(reason: &ExitReason) -> bool {
    !matches!(reason, ExitReason::Normal | ExitReason::NoProcess)
}

/// Continues until its sleep has woken the task of another runtime.
struct Continues(Option<(Sleep, mpsc::Receiver<()>)>, Instant);

impl Process for Continues {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, _: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let sleep = || armed(out.handle().sleep(TIME));
        let (_, woken) = self.0.get_or_insert_with(sleep);
        if woken.try_recv().is_ok() {
            return Step::Done;
        }
        if self.1.elapsed() > LIMIT {
            return Step::Failed(ExitReason::failed("the deadline does not come"));
        }
        Step::Continue
    }
}

/// Fails if the only worker fires the timer only when it parks.
#[test]
fn deadline_beside_a_process_that_always_continues_comes() {
    let scheduler = Scheduler::builder().workers(1).build();
    let continues = scheduler.spawn(Continues(None, Instant::now())).unwrap();
    assert!(!has_failed(&scheduler.wait(continues.pid())));
}

/// Continues, with steps of a millisecond, until its sleep has woken the task of another runtime.
struct StepsLong {
    sleep: Option<(Sleep, mpsc::Receiver<()>)>,
    begun: Instant,
    /// Steps since the deadline.
    late: u32,
}

impl Process for StepsLong {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, _: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let sleep = || armed(out.handle().sleep(TIME));
        let (_, woken) = self.sleep.get_or_insert_with(sleep);
        if woken.try_recv().is_ok() {
            return Step::Done;
        }
        thread::sleep(Duration::from_millis(1));
        self.late += u32::from(self.begun.elapsed() > 2 * TIME);
        // A run has 32 steps.
        if self.late > 96 {
            return Step::Failed(ExitReason::failed("the deadline waits for several runs"));
        }
        Step::Continue
    }
}

/// Fails if the only worker checks its first deadline only after a number of runs.
#[test]
fn first_deadline_beside_long_steps_waits_for_one_run() {
    let scheduler = Scheduler::builder().workers(1).build();
    let process = StepsLong {
        sleep: None,
        begun: Instant::now(),
        late: 0,
    };
    let continues = scheduler.spawn(process).unwrap();
    assert!(!has_failed(&scheduler.wait(continues.pid())));
}

/// Fails if the thread that waits for an answer relies on a worker for its deadline.
#[test]
fn call_ends_in_time_while_all_workers_are_in_long_steps() {
    let scheduler = Scheduler::builder().workers(1).build();
    let (release, released) = mpsc::channel::<()>();
    let blocks = scheduler
        .spawn_fn(move |_: Reply<()>, _| _ = released.recv())
        .unwrap();
    let call = blocks.call(|reply| reply, TIME);
    assert_eq!(call.wait(), Err(CallError::Timeout));
    drop(release);
}

/// Each of many sleeps comes, and not early, whichever worker serves it.
#[test]
fn sleeps_of_many_processes_come_in_time() {
    let scheduler = Scheduler::builder().workers(3).build();
    let (sender, slept) = mpsc::channel();
    for i in 0..100 {
        let (sender, handle) = (sender.clone(), scheduler.handle());
        let sleeps = move |_: Inbox<()>| async move {
            for _ in 0..10 {
                let time = Duration::from_millis(i % 7);
                let begun = Instant::now();
                handle.sleep(time).await;
                sender.send(begun.elapsed() >= time).unwrap();
            }
        };
        scheduler.spawn_async(sleeps).unwrap();
    }
    drop(sender);
    assert_eq!(slept.iter().filter(|is_late| *is_late).count(), 1000);
}

/// Fails if a worker drops a panic of its driver and ends, or does not poll or park in its driver.
#[test]
fn panic_of_a_driver_keeps_the_worker() {
    use worker_idle::park::{Park, ThreadPark};

    struct Panics(ThreadPark, Cell<u32>);

    impl Panics {
        fn panic_sometimes(&self) {
            self.1.set(self.1.get() + 1);
            assert!(self.1.get() % 3 > 0, "in the driver");
        }
    }

    impl Park for Panics {
        fn park(&mut self) {
            self.panic_sometimes();
            self.0.park();
        }

        fn park_timeout(&mut self, limit: Duration) {
            self.panic_sometimes();
            self.0.park_timeout(limit);
        }

        fn poll(&mut self, _: usize) {
            self.panic_sometimes();
        }

        fn has_events(&self) -> bool {
            self.panic_sometimes();
            self.1.get() % 2 == 0
        }

        fn deliver(&mut self) {
            self.panic_sometimes();
        }

        fn waker(&self) -> Waker {
            self.0.waker()
        }
    }

    std::panic::set_hook(Box::new(|_| {}));
    let driver = |_| Panics(ThreadPark::new(), Cell::new(0));
    let scheduler = Scheduler::builder().workers(1).driver(driver).build();
    let echo = scheduler
        .spawn_fn(|(n, reply): (u32, Reply<u32>), _| _ = reply.send(n))
        .unwrap();
    for n in 0..200 {
        assert_eq!(echo.call(|reply| (n, reply), LIMIT).wait(), Ok(n));
    }
    // The worker still goes to sleep between two calls.
    let (parks, begun) = (scheduler.metrics().parks, Instant::now());
    while scheduler.metrics().parks < parks + 3 {
        assert!(begun.elapsed() < LIMIT, "the worker stays awake");
        thread::sleep(Duration::from_millis(1)); // The worker has nothing to do meanwhile.
        assert_eq!(echo.call(|reply| (0, reply), LIMIT).wait(), Ok(0));
    }
}

#[cfg(all(unix, not(any(selvedge_loom, selvedge_shuttle))))]
mod net {
    use super::*;
    use net_driver::{
        Driver,
        net::{TcpListener, TcpStream},
        time,
    };
    use std::io;

    fn scheduler(workers: usize) -> Scheduler {
        let driver = Driver::new(workers).with_standby();
        let parks = driver.clone();
        Scheduler::builder()
            .workers(workers)
            .driver(move |worker| parks.park(worker).on_own_threads())
            .scope(move |worker, run| driver.scope(Some(worker), run))
            .build()
    }

    async fn write(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            stream.writable().await?;
            match stream.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns 0 at the end of the stream.
    async fn read(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            stream.readable().await?;
            match stream.try_read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// Echoes all bytes of one connection.
    async fn echo(stream: TcpStream) -> io::Result<()> {
        let mut bytes = [0; 64];
        loop {
            match read(&stream, &mut bytes).await? {
                0 => return Ok(()),
                n => write(&stream, &bytes[..n]).await?,
            }
        }
    }

    /// Actors serve and use a connection, and sleep in the driver. No other runtime runs.
    fn echoes(workers: usize) {
        let scheduler = scheduler(workers);
        let (sender, address) = mpsc::channel();
        let handle = scheduler.handle();
        let server = move |_: Inbox<()>| async move {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            sender.send(listener.local_addr()?).unwrap();
            let (stream, _) = listener.accept().await?;
            handle.spawn_async(|_: Inbox<()>| echo(stream)).unwrap();
            io::Result::Ok(())
        };
        let server = scheduler.spawn_async(server).unwrap();
        // It ends only when a client connects.
        let end = scheduler.exit_of(server.pid());
        let address = address.recv_timeout(LIMIT).unwrap();
        let client = move |mut inbox: Inbox<Reply<String>>| async move {
            let stream = TcpStream::connect(address).await?;
            while let Some(reply) = inbox.receive().await {
                time::sleep(Duration::from_millis(5)).await;
                write(&stream, b"hello").await?;
                let mut bytes = [0; 5];
                let mut got = 0;
                while got < bytes.len() {
                    got += read(&stream, &mut bytes[got..]).await?;
                }
                drop(reply.send(String::from_utf8_lossy(&bytes).into_owned()));
            }
            io::Result::Ok(())
        };
        let client = scheduler.spawn_async(client).unwrap();
        for _ in 0..10 {
            let answer = client.call(|reply| reply, LIMIT).wait();
            assert_eq!(answer, Ok("hello".to_owned()));
        }
        assert_eq!(end.wait(), ExitReason::Normal);
        let report = scheduler.shutdown();
        assert_eq!((report.forced, report.stuck), (0, 0));
    }

    /// Fails if the worker does not park in the driver, or does not deliver the driver's events.
    #[test]
    fn actors_on_one_worker_echo_over_tcp_and_sleep() {
        echoes(1);
    }

    /// Fails if an event that another worker has collected wakes no actor.
    #[test]
    fn actors_on_two_workers_echo_over_tcp_and_sleep() {
        echoes(2);
    }

    /// One actor sleeps in the driver, while a step of another one waits on its thread.
    ///
    /// Fails if the sleeping worker does not wait for the events of the blocked one.
    #[test]
    fn sleep_in_the_driver_beside_a_long_step_comes() {
        let scheduler = scheduler(2);
        let (sender, slept) = mpsc::channel();
        let sleeper = move |mut inbox: Inbox<()>| async move {
            while inbox.receive().await.is_some() {
                time::sleep(TIME).await;
                sender.send(()).unwrap();
            }
        };
        let sleeper = scheduler.spawn_async(sleeper).unwrap();
        let blocks = move |(), _: &mut Cx<'_>| {
            sleeper.try_send(()).unwrap();
            slept.recv_timeout(LIMIT).unwrap();
        };
        let blocks = scheduler.spawn_fn(blocks).unwrap();
        for _ in 0..10 {
            blocks.try_send(()).unwrap();
        }
        scheduler.cancel(blocks.pid());
        let reason = scheduler.wait(blocks.pid());
        assert!(matches!(
            reason,
            ExitReason::Cancelled | ExitReason::NoProcess
        ));
    }

    /// One actor always continues, so the only worker never parks.
    ///
    /// Fails if a busy worker does not poll its driver.
    #[test]
    fn sleep_in_the_driver_beside_a_busy_actor_comes() {
        struct Busy;
        impl Process for Busy {
            type Message = ();
            type Cmd = NoCommand;
            type Output = ();
            type Error = ();
            fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
                Step::Continue
            }
        }
        let scheduler = scheduler(1);
        let busy = scheduler.spawn(Busy).unwrap();
        let sleeper = |_: Inbox<()>| async {
            time::sleep(TIME).await;
            Flow::Stop
        };
        let sleeper = scheduler.spawn_async(sleeper).unwrap();
        assert!(!has_failed(&scheduler.wait(sleeper.pid())));
        scheduler.kill(busy.pid());
    }
}
