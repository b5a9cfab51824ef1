//! The reports of processes that panic: to a hook, and on standard error.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use process_scheduler::{
    Address, Backoff, Child, Event, EventsOf, Info, InitError, Input, NoCommand, OutputOf, Process,
    Scheduler, SendError, Spawn, Step, StepOf, Strategy, Supervisor, from_fn,
};
use std::{env, process::Command, sync::mpsc, time::Duration};

/// The text of a panic, and the process.
type Report = (Info, String);

fn reporting() -> (Scheduler, mpsc::Receiver<Report>) {
    let (sender, reports) = mpsc::channel();
    let hook = move |process: &Info, text: &str| {
        sender.send((process.clone(), text.to_owned())).unwrap();
        panic!("the hook");
    };
    let builder = Scheduler::builder().workers(1).on_panic(hook);
    (builder.build(), reports)
}

/// Panics at the place that `init` got, or in its `close`.
struct Panics(&'static str);

impl Process for Panics {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(
        &mut self,
        _: &process_scheduler::Context<'_, ()>,
        _: &str,
        _: Input,
    ) -> Result<(), InitError> {
        assert_ne!(self.0, "init", "in init");
        Ok(())
    }

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        let is_end = events.any(|event| matches!(event, Event::Message(()) | Event::Cancel(_)));
        assert!(self.0 != "step" || !is_end, "in a step");
        if self.0 == "value" {
            std::panic::panic_any(7);
        }
        if is_end { Step::Done } else { Step::Idle }
    }

    fn close(&mut self) {
        assert_ne!(self.0, "close", "in close");
    }
}

/// Fails if the panic of one of these places gets no report.
#[test]
fn hook_gets_the_process_and_the_text_of_each_panic() {
    let (scheduler, reports) = reporting();
    for (place, text) in [
        ("step", "in a step"),
        ("value", "a value that is not a string"),
        ("init", "in init"),
        ("close", "in close"),
    ] {
        let spawn = Spawn::new().name(format!("panics in {place}"));
        let spawned = scheduler.spawn_process(Panics(place), spawn);
        if let Ok(address) = &spawned {
            let _ = address.try_send(());
        }
        let (process, said) = reports.recv().unwrap();
        assert!(said.contains(text), "{place}: {said}");
        assert!(process.kind.ends_with("Panics"), "{}", process.kind);
        assert_eq!((process.supervisor, process.restarts), (None, 0));
        if let Ok(address) = spawned {
            assert_eq!(process.pid, address.pid());
            assert_eq!(process.names, [format!("panics in {place}")]);
            scheduler.wait(address.pid());
        }
    }
    // Neither a panic of a process nor one of the hook ends the worker.
    let (sender, seen) = mpsc::channel();
    let other = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap());
    other.unwrap().try_send(7).unwrap();
    assert_eq!(seen.recv(), Ok(7));
}

fn at_once() -> Backoff {
    Backoff::new(Duration::ZERO, 1, Duration::ZERO)
}

#[test]
fn report_of_a_child_names_its_supervisor_and_counts_restarts() {
    let (scheduler, reports) = reporting();
    let make = || from_fn(|n: u32, _| assert_eq!(n, 0, "wrong"));
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(at_once())
        .child(Child::new(make).spawn(Spawn::new().name("clerk")))
        .start(&scheduler)
        .unwrap();
    let clerk: Address<u32> = scheduler.named("clerk").unwrap();
    for restarts in 0..3 {
        // A message that comes while the child is stopped is dropped.
        let (process, said) = loop {
            let _ = clerk.try_send(1);
            match reports.try_recv() {
                Ok(report) => break report,
                Err(_) => std::thread::yield_now(),
            }
        };
        assert!(said.contains("wrong"), "{said}");
        assert_eq!(process.names, ["clerk"]);
        assert_eq!(process.supervisor, Some(supervisor));
        assert_eq!((process.pid, process.restarts), (clerk.pid(), restarts));
    }
}

/// The test runs itself in another process, whose standard error it reads.
#[test]
fn panic_on_standard_error_names_the_process() {
    const NAME: &str = "panic_on_standard_error_names_the_process";
    if env::var_os("PANICS").is_some() {
        let scheduler = Scheduler::new();
        let spawn = Spawn::new().name("clerk");
        let process = scheduler.spawn_process(Panics("step"), spawn).unwrap();
        process.try_send(()).unwrap();
        println!("the pid is {}.", process.pid());
        scheduler.wait(process.pid());
        return;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let output = command
        .args(["--exact", NAME, "--nocapture"])
        .env("PANICS", "1");
    let output = output.output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let pid = out.split_once("the pid is ").unwrap().1;
    let pid = pid.split_once('.').unwrap().0;
    let starts = format!("process {pid}");
    let line = err.lines().find(|line| line.starts_with(&starts));
    let line = line.unwrap_or_else(|| panic!("{starts}: {err}"));
    assert!(line.contains("\"clerk\" ("), "{line}");
    assert!(line.ends_with("::Panics) panicked: in a step"), "{line}");
}

/// Each incarnation of a supervisor starts new children: the old addresses are closed, and a name
/// leads to the new child. The supervisor itself, as a child, keeps its pid.
#[test]
fn restart_of_a_supervisor_closes_the_addresses_of_its_children() {
    let (scheduler, _reports) = reporting();
    let (sender, starts) = mpsc::channel();
    let leaf = move || {
        let sender = sender.clone();
        let make = move || {
            sender.send(()).unwrap();
            from_fn(|(), _| ())
        };
        Child::new(make).spawn(Spawn::new().name("leaf"))
    };
    let nested = move || Supervisor::new(Strategy::OneForOne).child(leaf());
    Supervisor::new(Strategy::OneForOne)
        .backoff(at_once())
        .child(Child::supervisor(nested).spawn(Spawn::new().name("nested")))
        .start(&scheduler)
        .unwrap();
    starts.recv().unwrap();
    let nested = scheduler.whereis("nested").unwrap();
    let old: Address<()> = scheduler.named("leaf").unwrap();
    scheduler.kill(nested);
    starts.recv().unwrap();
    let new = loop {
        match scheduler.named::<()>("leaf") {
            Some(new) if new.pid() != old.pid() => break new,
            _ => std::thread::yield_now(),
        }
    };
    assert_eq!(scheduler.whereis("nested"), Some(nested));
    scheduler.wait(old.pid());
    assert!(matches!(old.try_send(()), Err(SendError::Closed(()))));
    new.try_send(()).unwrap();
}
