//! The word that says what a queue holds: nothing, one item, or more. It also has the address of
//! the first node of the stack's newest [chain](crate::submit), if the stack has a node.
//!
//! | address | MARK | the queue |
//! |---|---|---|
//! | none | no | EMPTY: holds nothing |
//! | a node | yes | ONE: holds that node and nothing else |
//! | a node | no | MORE: that node is the first of the stack's newest chain; there may be other nodes in the stack, and items in the list |
//! | none | yes | LISTED: the stack is empty, the list is not |
//!
//! The bit CLOSED may be set in each of these states, and no change of state clears it.

const MARK: usize = 1;
const CLOSED: usize = 2;

/// The alignment of nodes. In a node's address, the bits of MARK and CLOSED are 0.
pub(crate) const ALIGN: usize = (MARK | CLOSED) + 1;

// The marks share no bit with each other, nor with the node's address in `pushed`. So `|` between
// them equals `^`; `.cargo/mutants.toml` leaves out the mutants that swap the two.
const _: () = assert!(MARK & CLOSED == 0 && ALIGN.is_power_of_two());

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Top(pub(crate) usize);

/// The state of the queue, with the address in the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    Empty,
    One(usize),
    More(usize),
    Listed,
}

impl Top {
    pub(crate) const CLOSED: usize = CLOSED;

    /// Returns the word of an empty, open queue.
    pub(crate) const fn new() -> Self {
        Self(0)
    }

    pub(crate) const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Returns whether the state is EMPTY.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 & !CLOSED == 0
    }

    /// Returns the address of the first node of the stack's newest chain, or 0 for an empty stack.
    pub(crate) const fn node(self) -> usize {
        self.0 & !(MARK | CLOSED)
    }

    pub(crate) const fn holds(self) -> Holds {
        match (self.node(), self.0 & MARK) {
            (0, 0) => Holds::Empty,
            (0, _) => Holds::Listed,
            (node, 0) => Holds::More(node),
            (node, _) => Holds::One(node),
        }
    }

    /// Returns the word after a push of a chain whose first node has the address `node`. `alone`
    /// says that the chain has one node.
    pub(crate) const fn pushed(self, node: usize, alone: bool) -> Self {
        debug_assert!(node % ALIGN == 0);
        let one = alone && self.is_empty();
        Self(node | if one { MARK } else { 0 } | self.0 & CLOSED)
    }

    /// Returns the word after a consumer took the stack and moved its nodes to the list.
    pub(crate) const fn listed(self) -> Self {
        Self(MARK | self.0 & CLOSED)
    }

    /// Returns the word after the last item was taken.
    pub(crate) const fn emptied(self) -> Self {
        Self(self.0 & CLOSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: usize = 0x10;
    const B: usize = 0x20;

    #[test]
    fn one_is_set_only_by_a_single_push_to_an_empty_queue() {
        for closed in [0, CLOSED] {
            let empty = Top(closed);
            assert_eq!((empty.holds(), empty.is_empty()), (Holds::Empty, true));
            assert_eq!(empty.pushed(A, true).holds(), Holds::One(A));
            assert_eq!(empty.pushed(A, false).holds(), Holds::More(A));
            let one = empty.pushed(A, true);
            assert!(!one.is_empty() && !one.listed().is_empty());
            assert_eq!(one.pushed(B, true).holds(), Holds::More(B));
            let listed = one.pushed(B, true).listed();
            assert_eq!(listed.holds(), Holds::Listed);
            assert_eq!(listed.pushed(A, true).holds(), Holds::More(A));
            assert_eq!(listed.emptied(), empty);
        }
    }

    #[test]
    fn marks_and_addresses_share_no_bit() {
        assert_eq!((MARK, CLOSED, ALIGN), (1, 2, 4));
    }

    #[test]
    fn closed_stays() {
        let open = Top::new();
        let closed = Top(CLOSED);
        for (top, is) in [(open, false), (closed, true)] {
            let after = [top, top.pushed(A, true), top.listed(), top.emptied()];
            assert!(after.iter().all(|top| top.is_closed() == is));
        }
    }
}
