//! A client in a process of its own: it makes the load of a row.
//!
//! A sample starts the client as `bench client SPEC`, writes orders to its standard input, and
//! reads an answer to each from its standard output. The sample reads the server's counters right
//! before an order to run and right after its answer, so they cover exactly the requests of that
//! order.
//!
//! The client has one thread with an epoll, and no runtime. In an *open loop* a clock determines
//! when requests are sent, however slow the server is, and a request's time begins at that
//! *intended* send. In a *closed loop* each answer leads to the next request.
//!
//! The client ends with its standard input. If the sample's process dies meanwhile, a signal ends
//! the client.
use crate::work::work;
use load::Load;
use spec::{Figures, Order, Spec};
use std::{
    io::{self, BufRead, Write},
    os::unix::process::parent_id,
    thread,
    time::Duration,
};

mod arrivals;
mod connect;
mod dialog;
mod fan_out;
mod large;
mod load;
mod peer;
mod process;
pub(crate) mod spec;

pub(crate) use process::Client;

/// Answers orders until there are no more. `parent` is the process that gives them.
pub(crate) fn run(spec: &str, parent: u32) -> io::Result<()> {
    die_with_parent(parent)?;
    let spec: Spec = serde_json::from_str(spec)?;
    for _ in 0..spec.busy {
        thread::spawn(|| -> ! {
            loop {
                work(1_000);
            }
        });
    }
    be_punctual(&spec);
    let mut load = Load::new(spec)?;
    for order in io::stdin().lock().lines() {
        let figures = match serde_json::from_str(&order?)? {
            Order::Connect(count) => {
                load.connect(count)?;
                Figures::default()
            }
            Order::Run(nanos) => load.run(Duration::from_nanos(nanos))?,
        };
        let line = serde_json::to_string(&figures)?;
        writeln!(io::stdout(), "{line}")?;
    }
    Ok(())
}

/// Lets a signal end this process when its parent's thread ends, which is the parent's main one.
fn die_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: the option takes a signal, and no pointer.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if parent_id() == parent {
        return Ok(());
    }
    Err(io::Error::other("the sample has ended"))
}

/// Has the kernel end this thread's waits on time. An open loop without a processor of its own runs
/// before the server's threads, as the requests of another machine would arrive however busy the
/// server is. Only root may ask for that; otherwise the client tells how late it was.
fn be_punctual(spec: &Spec) {
    if let Some(processor) = spec.processor {
        crate::noise::pin(processor);
        return;
    }
    // SAFETY: the option takes a number of nanoseconds, and no pointer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    if spec.rate.is_some() {
        let first = libc::sched_param { sched_priority: 1 };
        // SAFETY: the pointer is valid for a read of a `sched_param`.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) };
    }
}
