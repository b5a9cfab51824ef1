//! Dining philosophers. Philosophers and forks are processes, under one supervisor. A fork serves
//! one philosopher at a time. Each philosopher takes the left fork first, except that the last
//! philosopher takes the right one first. So the philosophers never wait in a circle.
//!
//! `cargo run -p process-scheduler --example philosophers [MEALS]`
//!
//! The picture has a line for each change of a philosopher. In a line, `.` is a philosopher who
//! thinks, `h` one who is hungry, and `#` one who eats.
#[path = "../../selvedge/examples/cli/mod.rs"]
mod cli;

use process_scheduler::{
    Address, Child, Inbox, Policy, Reply, Scheduler, Spawn, Strategy, Supervisor, from_async,
    from_fn,
};
use std::{
    collections::VecDeque, error::Error, iter, process::ExitCode, sync::mpsc, time::Duration,
};

const SEATS: usize = 5;
/// A time limit that is never reached.
const LIMIT: Duration = Duration::from_secs(600);

enum Fork {
    Take(Reply<()>),
    Drop,
}

fn fork(seat: usize) -> Child {
    let make = || {
        let (mut is_taken, mut waiting) = (false, VecDeque::<Reply<()>>::new());
        from_fn(move |message, _| match message {
            Fork::Take(reply) if is_taken => waiting.push_back(reply),
            Fork::Take(reply) => is_taken = reply.send(()).is_ok(),
            // The fork goes to the first philosopher that still waits.
            Fork::Drop => {
                is_taken =
                    iter::from_fn(|| waiting.pop_front()).any(|reply| reply.send(()).is_ok());
            }
        })
    };
    Child::new(make).spawn(Spawn::new().name(format!("fork {seat}")))
}

fn philosopher(seat: usize, meals: u32, picture: mpsc::Sender<(usize, char)>) -> Child {
    let make = move || {
        let picture = picture.clone();
        from_async(move |inbox: Inbox<()>| async move {
            let (left, right) = (seat, (seat + 1) % SEATS);
            let order = [left.min(right), left.max(right)];
            let forks: [Address<Fork>; 2] =
                order.map(|seat| inbox.handle().named(&format!("fork {seat}")).unwrap());
            // The sends fail only during a shutdown, when nobody draws the picture and no fork is
            // needed.
            for _ in 0..meals {
                let _ = picture.send((seat, 'h'));
                for fork in &forks {
                    // The call fails if the fork has ended, as it may in a shutdown.
                    if fork.call(Fork::Take, LIMIT).await.is_err() {
                        return;
                    }
                }
                let _ = picture.send((seat, '#'));
                inbox.handle().sleep(Duration::from_millis(1)).await;
                let _ = picture.send((seat, '.'));
                for fork in &forks {
                    let _ = fork.try_send(Fork::Drop);
                }
            }
        })
    };
    Child::new(make)
        .policy(Policy::Transient)
        .spawn(Spawn::new().name(format!("philosopher {seat}")))
}

const HELP: &str = "\
Five philosophers share five forks. Prints a line for each change: # eats.

Usage: philosophers [MEALS]

MEALS  how often each eats [3]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let meals = arguments.first().map(|meals| cli::parse("MEALS", meals));
        run(meals.transpose()?.unwrap_or(3))
    })
}

/// Lets the philosophers dine, and checks that no two neighbours eat at the same time.
pub fn run(meals: u32) -> Result<(), Box<dyn Error>> {
    let scheduler = Scheduler::new();
    let (picture, changes) = mpsc::channel();
    let mut table = Supervisor::new(Strategy::OneForOne);
    for seat in 0..SEATS {
        table = table.child(fork(seat));
    }
    for seat in 0..SEATS {
        table = table.child(philosopher(seat, meals, picture.clone()));
    }
    drop(picture);
    table.start(&scheduler)?;
    print!("{}", scheduler.tree());

    let mut seats = ['.'; SEATS];
    for _ in 0..SEATS * meals as usize * 3 {
        let (seat, state) = changes.recv_timeout(LIMIT)?;
        seats[seat] = state;
        println!("{}", seats.iter().collect::<String>());
        let eats = |seat: usize| seats[seat % SEATS] == '#';
        assert!((0..SEATS).all(|seat| !(eats(seat) && eats(seat + 1))));
    }
    println!("{:?}", scheduler.shutdown());
    Ok(())
}
