#![doc = include_str!("../README.md")]

mod check;
// Without the cfg nothing makes choices, but a replay may have some.
#[cfg_attr(not(selvedge_sim), allow(dead_code))]
mod choice;
#[cfg(selvedge_sim)]
mod disk;
#[cfg_attr(not(selvedge_sim), allow(dead_code))]
mod disk_settings;
#[cfg(selvedge_sim)]
mod errno;
mod explore;
mod failure;
// Without the cfg there are no hosts, so nothing reads their settings.
#[cfg_attr(not(selvedge_sim), allow(dead_code))]
mod hosts;
#[cfg(selvedge_sim)]
mod net;
#[cfg_attr(not(selvedge_sim), allow(dead_code))]
mod net_settings;
mod order;
mod program;
mod replay;
#[cfg(selvedge_sim)]
mod rule;
mod shrink;
mod sim;
#[cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]
mod syscalls;
#[cfg(selvedge_sim)]
mod system;
mod timeline;
mod trace;
#[cfg(selvedge_sim)]
mod watchdog;
#[cfg(selvedge_sim)]
mod world;

pub use check::check;
pub use disk_settings::Disk;
pub use explore::{Explored, Found, explore};
pub use failure::Failure;
pub use hosts::{Faults, Hosts};
pub use net_settings::Net;
pub use order::{Order, Polls};
pub use program::{busy, now, random, random_below, thread};
pub use replay::Replay;
pub use sim::{Run, Sim, Stats};
pub use trace::Event;
