//! The mutants of a call: each ordering one step weaker, a fence also dropped, an exchange also a
//! store.
use serde::{Deserialize, Serialize};
use std::fmt;

/// A mutant: one change at one site.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) site: String,
    pub(crate) line: usize,
    /// The path of the file's module, with which test names begin.
    pub(crate) module: String,
    /// The operation, in one word.
    pub(crate) operation: String,
    /// The ordering that is written there; `None` if the mutant changes something else.
    pub(crate) written: Option<Order>,
    pub(crate) how: String,
    /// `file:line:column` of the call that the mutant weakens, or of the fence that it leaves out
    /// for one caller. Only models that reach this place can kill the mutant. `None` if that cannot
    /// be told.
    pub(crate) place: Option<String>,
    /// Whether the mutant is a change of the source.
    pub(crate) is_change: bool,
    /// The name of the mutant in sync-shim.
    pub(crate) name: String,
}

/// An ordering that the source names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    pub(crate) const ALL: [Self; 5] = [
        Self::Relaxed,
        Self::Acquire,
        Self::Release,
        Self::AcqRel,
        Self::SeqCst,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|order| order.to_string() == name)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The use of an ordering, which decides its weaker orderings: a load never releases, a store never
/// acquires, a fence is never relaxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A load, or the failure of an exchange.
    Load,
    Store,
    /// A read-modify-write, or the success of an exchange.
    Rmw,
    Fence,
}

/// Returns the mutants of an ordering, in the words that sync-shim understands.
pub(crate) fn weaker(kind: Kind, written: Order) -> &'static [&'static str] {
    use Order::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    match (kind, written) {
        (_, Relaxed) => &[],
        (Kind::Fence, SeqCst) => &["AcqRel", "dropped"],
        (Kind::Fence, AcqRel) => &["Acquire", "Release", "dropped"],
        (Kind::Fence, Acquire | Release) => &["dropped"],
        (Kind::Load, SeqCst) => &["Acquire"],
        (Kind::Store, SeqCst) => &["Release"],
        (Kind::Rmw, SeqCst) => &["AcqRel"],
        (Kind::Rmw, AcqRel) => &["Acquire", "Release"],
        (_, Acquire | Release) => &["Relaxed"],
        // The operation itself refuses this ordering.
        (Kind::Load | Kind::Store, AcqRel) => &[],
    }
}

/// Returns the index and the use of each argument that is an ordering; none if the call is not an
/// atomic's operation.
pub(crate) fn orderings_of(call: &str) -> &'static [(usize, Kind)] {
    match call {
        "fence" => &[(0, Kind::Fence)],
        "load" => &[(0, Kind::Load)],
        "store" => &[(1, Kind::Store)],
        "swap" => &[(1, Kind::Rmw)],
        "compare_exchange" | "compare_exchange_weak" => &[(2, Kind::Rmw), (3, Kind::Load)],
        "fetch_update" => &[(0, Kind::Rmw), (1, Kind::Load)],
        _ if call.starts_with("fetch_") => &[(1, Kind::Rmw)],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Order, weaker};

    #[test]
    fn no_mutant_has_an_ordering_that_its_operation_refuses() {
        for order in Order::ALL {
            for refused in ["Release", "AcqRel"] {
                assert!(!weaker(Kind::Load, order).contains(&refused));
            }
            for refused in ["Acquire", "AcqRel"] {
                assert!(!weaker(Kind::Store, order).contains(&refused));
            }
            assert!(!weaker(Kind::Fence, order).contains(&"Relaxed"));
        }
    }

    #[test]
    fn every_ordering_but_relaxed_has_a_weaker_one() {
        for order in &Order::ALL[1..] {
            assert!(!weaker(Kind::Rmw, *order).is_empty());
            assert!(weaker(Kind::Fence, *order).contains(&"dropped"));
        }
        assert!(weaker(Kind::Rmw, Order::Relaxed).is_empty());
    }
}
