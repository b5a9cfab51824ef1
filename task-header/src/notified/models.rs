//! The conformance kit of lists and injectors, run on tasks: on real threads, and under the model.
use super::Node;
use crate::{Notified, Schedule, WakeKind, new_detached};
use core::future::pending;
use queue_global::conformance::{Subject, Token, linked};
use sync_shim::conformance::Unseen;

/// The scheduler of one task, which holds the task's token: the token is dropped with the cell.
struct Holder(Unseen<Option<Token>>);

impl Schedule for Holder {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        drop(task);
    }
}

struct Tasks;

impl Subject for Tasks {
    type Node = Node<Holder>;

    fn node(token: Token) -> Notified<Holder> {
        new_detached(pending::<()>(), Holder(Unseen::new(Some(token))))
    }

    fn token(task: Notified<Holder>) -> Token {
        let token = task.scheduler().0.lock().take();
        token.expect("the token is taken once")
    }
}

/// Fails if a link is not written, or loses a bit.
#[test]
fn a_task_is_a_node() {
    linked::<Tasks>();
}
