#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod cell;
mod closure;
mod core;
mod error;
mod exit;
mod group;
mod guard;
mod handle;
mod handler;
mod inbox;
mod info;
mod lane;
mod links;
mod metrics;
mod names;
mod oneshot;
mod pid;
mod pool;
mod process;
mod registry;
mod relay;
mod remote;
mod scheduler;
mod spawn;
mod state;
mod supervisor;
mod task;
mod timer;
mod trace;
mod tree;
#[cfg(doctest)]
mod variance;
mod worker;

pub use address::{Address, Call, Reply, Sending};
pub use closure::{Cx, Flow, FnProcess, from_fn};
pub use error::{CallError, ExitReason, InitError, SendError, SpawnError};
pub use exit::Exit;
pub use handle::Handle;
pub use handler::{CommandError, Completer, Handler, Stale};
pub use inbox::{Inbox, Receiving};
pub use info::Info;
pub use lane::Mailbox;
pub use metrics::Metrics;
pub use pid::Pid;
pub use process::{
    BoxProcess, CancelReason, Context, Event, Events, EventsOf, Input, NoCommand, OutputOf,
    Process, Step, StepOf, StepOutput,
};
pub use relay::{Loopback, Parcel, Relay, Signal};
pub use scheduler::{Builder, Scheduler, ShutdownReport};
pub use spawn::Spawn;
pub use state::Phase;
pub use supervisor::{Backoff, Child, Policy, Strategy, Supervisor};
pub use task::{AsyncProcess, from_async};
pub use timer::Sleep;
pub use tree::Tree;
