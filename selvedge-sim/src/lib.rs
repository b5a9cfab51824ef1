#![doc = include_str!("../README.md")]

mod check;
#[cfg(selvedge_sim)]
mod choice;
mod explore;
mod failure;
mod order;
mod program;
mod replay;
#[cfg(selvedge_sim)]
mod rule;
mod sim;
#[cfg(selvedge_sim)]
mod system;
mod trace;
#[cfg(selvedge_sim)]
mod watchdog;
#[cfg(selvedge_sim)]
mod world;

pub use check::check;
pub use explore::{Explored, Found, explore};
pub use failure::Failure;
pub use order::{Order, Polls};
pub use program::{busy, now, random, random_below, thread};
pub use replay::Replay;
pub use sim::{Run, Sim, Stats};
pub use trace::Event;
