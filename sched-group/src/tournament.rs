//! A tournament tree: the least of many ranks, while ranks change.
//!
//! Each *leaf* of the binary tree has a number, a rank and a member. Each inner node names the leaf
//! with the least rank below that node.
//!
//! 1. A leaf is *present* or *absent*. An absent leaf keeps its rank, with bit 126 set, so it loses
//!    to every present leaf. Bit 127 is free for the sign of a difference.
//! 2. Of equal ranks, the one that was set first wins.
//! 3. A change of a rank replays the matches between its leaf and the root: log₂(leaves) of them.
//!    The nodes on this path depend only on the leaf's number, so the CPU can load them early. The
//!    loop has no branch that depends on a rank. In a binary heap each load depends on the one
//!    before, and each step has an unpredictable branch.
//! 4. Adding a leaf may allocate, and so may removing one. Nothing else does.
use alloc::vec::Vec;

/// The bit that is set in the rank of an absent leaf.
const ABSENT: u128 = 1 << 126;

/// The largest rank.
pub(crate) const MAX_RANK: u128 = ABSENT - 1;

#[derive(Clone, Copy)]
struct Leaf {
    rank: u128,
    /// When the rank was set, counted in changes of ranks. At one change a nanosecond it wraps
    /// after 584 years.
    order: u64,
    member: u32,
}

impl Leaf {
    /// Returns all ones if this leaf beats another, else zero.
    ///
    /// It uses the sign of a difference, because the compiler would turn a comparison into a
    /// branch. The winner is nearly random, so half of the branches would be mispredicted.
    #[inline]
    fn beats(&self, other: &Self) -> u64 {
        let is_first = self.order.wrapping_sub(other.order) >> 63;
        let ahead = self.rank.wrapping_sub(other.rank);
        let ahead = ahead.wrapping_sub(is_first.into());
        // Neither rank has bit 127, so bit 127 of the difference is its sign.
        ((ahead >> 64) as i64 >> 63) as u64
    }
}

/// Returns `one` where the mask has ones, and `other` where it has zeros.
#[inline]
fn select(mask: u64, one: u64, other: u64) -> u64 {
    other ^ ((other ^ one) & mask)
}

pub(crate) struct Tournament {
    /// Their number is a power of two, or zero.
    leaves: Vec<Leaf>,
    /// The number of the winning leaf, by node. The root is 1, the children of n are 2n and 2n + 1,
    /// and the leaves are the last half.
    winners: Vec<u32>,
    /// The leaves that were removed, for reuse.
    spare: Vec<u32>,
    /// The number of leaves that were ever in use, including the spare ones.
    used: usize,
    /// The number of leaves that are present.
    present: u32,
    order: u64,
}

impl Tournament {
    pub(crate) const fn new() -> Self {
        Self {
            leaves: Vec::new(),
            winners: Vec::new(),
            spare: Vec::new(),
            used: 0,
            present: 0,
            order: 0,
        }
    }

    /// Adds an absent leaf of rank 0, and returns its number.
    pub(crate) fn add(&mut self, member: u32) -> u32 {
        let leaf = match self.spare.pop() {
            Some(leaf) => leaf,
            None => {
                if self.used == self.leaves.len() {
                    self.grow();
                }
                self.used += 1;
                u32::try_from(self.used - 1).expect("fewer than 2^32 leaves")
            }
        };
        self.leaves[leaf as usize].member = member;
        self.set(leaf, 0, false);
        leaf
    }

    /// Removes a leaf, which must be absent.
    pub(crate) fn remove(&mut self, leaf: u32) {
        debug_assert!(!self.is_present(leaf));
        self.spare.push(leaf);
    }

    /// Doubles the number of leaves.
    fn grow(&mut self) {
        let leaves = (2 * self.leaves.len()).max(1);
        let empty = Leaf {
            rank: ABSENT,
            order: 0,
            member: 0,
        };
        self.leaves.resize(leaves, empty);
        self.winners.clear();
        self.winners.resize(2 * leaves, 0);
        for node in (1..2 * leaves).rev() {
            self.winners[node] = match node.checked_sub(leaves) {
                Some(leaf) => u32::try_from(leaf).expect("fewer than 2^32 leaves"),
                None => {
                    let [left, right] = [2 * node, 2 * node + 1].map(|node| self.winners[node]);
                    let wins = self.leaves[right as usize].beats(&self.leaves[left as usize]);
                    if wins == 0 { left } else { right }
                }
            };
        }
    }

    /// Sets a leaf's rank, at most [`MAX_RANK`], and whether the leaf is present. The leaf comes
    /// after the other leaves of equal rank.
    #[inline]
    pub(crate) fn set(&mut self, leaf: u32, rank: u128, present: bool) {
        let entry = &mut self.leaves[leaf as usize];
        self.present += u32::from(present);
        self.present -= u32::from(entry.rank < ABSENT);
        entry.rank = rank | if present { 0 } else { ABSENT };
        entry.order = self.order;
        self.order += 1;
        self.replay(leaf);
    }

    #[inline]
    fn replay(&mut self, leaf: u32) {
        let mut node = self.leaves.len() + leaf as usize;
        let entry = &self.leaves[leaf as usize];
        let mut winner = u64::from(leaf);
        let (mut high, mut low, mut order) =
            ((entry.rank >> 64) as u64, entry.rank as u64, entry.order);
        while node > 1 {
            let leaf = self.winners[node ^ 1];
            let rival = self.leaves[leaf as usize];
            let best = Leaf {
                rank: u128::from(high) << 64 | u128::from(low),
                order,
                member: 0,
            };
            let wins = rival.beats(&best);
            winner = select(wins, leaf.into(), winner);
            high = select(wins, (rival.rank >> 64) as u64, high);
            low = select(wins, rival.rank as u64, low);
            order = select(wins, rival.order, order);
            node /= 2;
            self.winners[node] = winner as u32;
        }
    }

    /// Returns the least rank of the present leaves, with its leaf and its member.
    #[inline]
    pub(crate) fn least(&self) -> Option<(u128, u32, u32)> {
        if self.present == 0 {
            return None;
        }
        let leaf = self.winners[1];
        let entry = &self.leaves[leaf as usize];
        Some((entry.rank, leaf, entry.member))
    }

    #[inline]
    pub(crate) fn rank(&self, leaf: u32) -> u128 {
        self.leaves[leaf as usize].rank & MAX_RANK
    }

    #[inline]
    pub(crate) fn is_present(&self, leaf: u32) -> bool {
        self.leaves[leaf as usize].rank < ABSENT
    }

    /// Returns the number of leaves, including those that were removed.
    pub(crate) fn places(&self) -> u32 {
        self.used as u32
    }

    pub(crate) fn member(&self, leaf: u32) -> u32 {
        self.leaves[leaf as usize].member
    }

    /// Returns whether no leaf is present.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// Returns whether there is no leaf at all.
    #[inline]
    pub(crate) fn has_no_leaves(&self) -> bool {
        self.used == self.spare.len()
    }
}
