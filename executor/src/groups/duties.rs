//! The duties of the monitor that groups need.
use crate::worker::shared::Shared;
use end_turns::EndTurns;
use mail::Mail;
use sched_monitor::{Monitor, Workers};
use sync_shim::sync::Arc;

mod end_turns;
pub(super) mod mail;

/// Adds the duties.
pub(crate) fn watch<W: Workers>(monitor: Monitor<W>, shared: &Arc<Shared>) -> Monitor<W> {
    let (turns, mail) = (EndTurns::new(shared.clone()), Mail::new(shared.clone()));
    monitor.duty(turns).duty(mail)
}
