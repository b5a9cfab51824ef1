//! What is done to a site: each ordering a step weaker, each fence also dropped.
use serde::{Deserialize, Serialize};
use std::fmt;

/// An ordering as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Relaxed" => Self::Relaxed,
            "Acquire" => Self::Acquire,
            "Release" => Self::Release,
            "AcqRel" => Self::AcqRel,
            "SeqCst" => Self::SeqCst,
            _ => return None,
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What the ordering is for, which decides what may stand in its place: a load never releases, a store never
/// acquires, a fence is never relaxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A load, or the failure of an exchange.
    Load,
    Store,
    /// A read-modify-write, or the success of an exchange.
    Rmw,
    Fence,
    /// Goes into a function that is not known to hand it to one kind of operation.
    Unknown,
}

impl Kind {
    /// What both may stand for.
    pub(crate) fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}

/// The mutants of an ordering, by the words that the rewritten crate understands.
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
        // An unknown kind's next step may be one that its operation refuses; Relaxed never is.
        (_, Acquire | Release) | (Kind::Unknown, _) => &["Relaxed"],
        // Refused by the operation as it is written.
        (Kind::Load | Kind::Store, AcqRel) => &[],
    }
}

/// The kind of the ordering at `index` among the arguments of the method `name`; `None`: not an atomic's.
pub(crate) fn kind_of(name: &str, index: usize) -> Option<Kind> {
    match (name, index) {
        ("load", 0) => Some(Kind::Load),
        ("store", 1) => Some(Kind::Store),
        ("swap", 1) => Some(Kind::Rmw),
        ("compare_exchange" | "compare_exchange_weak", 2) => Some(Kind::Rmw),
        ("compare_exchange" | "compare_exchange_weak", 3) => Some(Kind::Load),
        ("fetch_update" | "try_update" | "update", 0) => Some(Kind::Rmw),
        ("fetch_update" | "try_update" | "update", 1) => Some(Kind::Load),
        (name, 1) if name.starts_with("fetch_") => Some(Kind::Rmw),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Order::*, weaker};

    #[test]
    fn no_mutant_is_one_that_its_operation_refuses() {
        for order in [Relaxed, Acquire, Release, AcqRel, SeqCst] {
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
        for order in [Acquire, Release, AcqRel, SeqCst] {
            assert!(!weaker(Kind::Rmw, order).is_empty());
            assert!(weaker(Kind::Fence, order).contains(&"dropped"));
        }
        assert!(weaker(Kind::Rmw, Relaxed).is_empty());
    }
}
