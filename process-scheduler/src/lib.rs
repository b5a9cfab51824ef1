#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod any_cell;
mod backoff;
mod call;
mod cell;
mod closure;
mod context;
mod core;
mod deadline;
mod error;
mod event;
mod events;
mod exit;
mod group;
mod guard;
mod handle;
mod handler;
mod inbox;
mod info;
mod lane;
mod links;
mod loopback;
mod metrics;
mod name_table;
mod names;
mod node_table;
mod nodes;
mod oneshot;
mod panic_hook;
mod pid;
mod policy;
mod pool;
mod process;
mod reason;
mod registry;
mod relay;
mod remote;
mod runnable;
mod scheduler;
mod send;
mod shared;
mod shutdown;
mod signal;
#[cfg(selvedge_sim)]
mod simulation;
mod spawn;
mod state;
mod step_output;
mod supervised;
mod supervisor;
mod task;
mod timer;
mod trace;
mod tree;
#[cfg(doctest)]
mod variance;
mod watcher;
mod worker;

pub use address::{Address, Sending};
pub use backoff::Backoff;
pub use call::{Call, Reply};
pub use closure::{Cx, Flow, FnProcess, from_fn};
pub use context::{Context, Input};
pub use deadline::Sleep;
pub use error::{CallError, InitError, SendError, SpawnError};
pub use event::Event;
pub use events::Events;
pub use exit::Exit;
pub use handle::Handle;
pub use handler::{CommandError, Completer, Handler, Stale};
pub use inbox::{Inbox, Receiving};
pub use info::Info;
pub use lane::Mailbox;
pub use loopback::Loopback;
pub use metrics::Metrics;
pub use node_table::Node;
pub use pid::Pid;
pub use policy::Policy;
pub use process::{BoxProcess, EventsOf, NoCommand, OutputOf, Process, Step, StepOf};
pub use reason::{CancelReason, ExitReason};
pub use relay::{Parcel, Relay};
pub use scheduler::{Builder, Scheduler};
pub use shutdown::ShutdownReport;
pub use signal::Signal;
pub use spawn::Spawn;
pub use state::Phase;
pub use step_output::StepOutput;
pub use supervisor::{Child, Strategy, Supervisor};
pub use task::{AsyncProcess, from_async};
pub use tree::Tree;
pub use worker_idle::{
    Wait,
    park::{Park, ThreadPark},
};
