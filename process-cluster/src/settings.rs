//! The settings that the parts of a node share.
use crate::{behaviours::Behaviours, change::NodeChange, codec::Codecs};
use process_scheduler::Signal;
use std::time::Duration;

type Admit = dyn Fn(&str) -> bool + Send + Sync;
type Allow = dyn Fn(&str, &Signal) -> bool + Send + Sync;
type AllowSpawn = dyn Fn(&str, &str) -> bool + Send + Sync;
type OnChange = dyn Fn(&NodeChange) + Send + Sync;

pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) codecs: Codecs,
    pub(crate) behaviours: Behaviours,
    pub(crate) queue: u32,
    pub(crate) lease: Duration,
    pub(crate) frame_limit: usize,
    pub(crate) admit: Box<Admit>,
    pub(crate) allow: Box<Allow>,
    pub(crate) allow_spawn: Box<AllowSpawn>,
    pub(crate) on_change: Box<OnChange>,
}
