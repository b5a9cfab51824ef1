//! Nodes under uncommon use: slow and panicking code of the user, full queues, nodes that are
//! started again, and transports that are doubled, late or blocked.
#[path = "../common/mod.rs"]
mod common;
mod messages;
mod nodes;
mod sessions;
