//! Tests that need private items: the tournament, levels, and the last generation of a group's
//! slot.
extern crate std;

use crate::{
    DestroyError, FairQueue, Shares, Stale,
    level::Level,
    shares::{ONE, charge},
    tournament::{MAX_RANK, Tournament},
};
use proptest::prelude::*;
use std::vec::Vec;

#[derive(Clone, Debug)]
enum Op {
    Add,
    Remove(usize),
    Set(usize, u8, bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => Just(Op::Add),
        1 => any::<usize>().prop_map(Op::Remove),
        6 => (any::<usize>(), 0..6u8, any::<bool>()).prop_map(|(n, rank, p)| Op::Set(n, rank, p)),
    ]
}

proptest! {
    /// Compares the tournament with a linear search. There are few ranks, so that many are equal.
    #[test]
    fn winner_of_any_sequence_is_the_first_least(ops in prop::collection::vec(op(), 0..200)) {
        let mut tournament = Tournament::new();
        // Leaf, member, rank, order, and whether the leaf is present.
        let mut model: Vec<(u32, u32, u128, usize, bool)> = Vec::new();
        for (order, op) in ops.into_iter().enumerate() {
            match op {
                Op::Add => {
                    let member = order as u32;
                    let leaf = tournament.add(member);
                    prop_assert!(model.iter().all(|other| other.0 != leaf));
                    model.push((leaf, member, 0, order, false));
                }
                Op::Remove(n) if !model.is_empty() => {
                    let (leaf, ..) = model.swap_remove(n % model.len());
                    tournament.set(leaf, 0, false);
                    tournament.remove(leaf);
                }
                Op::Set(n, rank, present) if !model.is_empty() => {
                    let n = n % model.len();
                    let (leaf, member, ..) = model[n];
                    model[n] = (leaf, member, rank.into(), order, present);
                    tournament.set(leaf, rank.into(), present);
                }
                _ => {}
            }
            let present = model.iter().filter(|leaf| leaf.4);
            let least = present.clone().min_by_key(|leaf| (leaf.2, leaf.3));
            prop_assert_eq!(tournament.least(), least.map(|leaf| (leaf.2, leaf.0, leaf.1)));
            prop_assert_eq!(tournament.is_empty(), present.count() == 0);
            prop_assert_eq!(tournament.has_no_leaves(), model.is_empty());
            for &(leaf, _, rank, _, present) in &model {
                prop_assert_eq!(tournament.rank(leaf), rank);
                prop_assert_eq!(tournament.is_present(leaf), present);
            }
        }
    }

    /// A charge for up to 584 years is too small, by rounding, by less than four nanoseconds a
    /// share.
    #[test]
    fn charge_at_any_shares_is_nearly_exact(shares in 1..=u32::MAX, runtime in 1..=u64::MAX) {
        let exact = (u128::from(runtime) << 62) / u128::from(shares);
        let charge = charge(runtime, Shares::new(shares).unwrap().price());
        prop_assert!(charge <= exact && exact - charge < 4 * u128::from(ONE));
    }
}

#[test]
fn charge_of_500_years_at_one_share_fits() {
    let years = 500 * 366 * 86_400 * 1_000_000_000;
    assert!(charge(years, Shares::new(1).unwrap().price()) < MAX_RANK);
    // The sum of the largest charge and the largest rank fits in 128 bits.
    let most = charge(u64::MAX, Shares::new(1).unwrap().price());
    assert!(most <= MAX_RANK && most.checked_add(MAX_RANK).is_some());
}

#[test]
fn slot_after_its_last_generation_is_not_used_again() {
    let mut queue = FairQueue::new(|| 0);
    let shares = Shares::new(1).unwrap();
    let first = queue.insert(shares, 'a');
    let last = queue.age(first);
    assert_eq!(queue.get(first), Err(Stale(())));
    assert_eq!(queue.destroy(last), Ok('a'));
    let next = queue.insert(shares, 'b');
    for key in [first, last] {
        assert_eq!(queue.get(key), Err(Stale(())));
        assert_eq!(queue.destroy(key), Err(DestroyError::Stale));
    }
    assert_eq!(queue.get(next), Ok(&'b'));
    assert_eq!(queue.len(), 1);
}

#[test]
fn reshare_beyond_the_largest_rank_saturates() {
    let mut level = Level::new(0);
    let [a, b] = [1, 2].map(|member| level.add(member));
    for leaf in [a, b] {
        level.set_present(leaf, true);
    }
    // The product of the lead and the old shares has more than 128 bits.
    level.charge(a, MAX_RANK, true);
    level.reshare(a, u32::MAX, 1);
    assert_eq!((level.rank(a), level.pick()), (MAX_RANK, Some(2)));
    // The product fits in 128 bits, and the sum of the floor and the new lead exceeds the largest
    // rank.
    level.charge(b, MAX_RANK / 2, true);
    level.reshare(a, 3, 1);
    assert_eq!((level.rank(a), level.pick()), (MAX_RANK, Some(2)));
    // At the largest rank the siblings take turns.
    level.charge(b, MAX_RANK, true);
    for member in [1, 2, 1, 2] {
        assert_eq!(level.pick(), Some(member));
        level.charge([a, b][member as usize - 1], 1 << 70, true);
    }
    // An absent sibling is rescaled too. Its new rank is the floor once no sibling has work.
    let mut level = Level::new(0);
    let [a, b] = [1, 2].map(|member| level.add(member));
    level.set_present(b, true);
    level.charge(a, 1000, false);
    level.reshare(a, 7, 1);
    assert_eq!(level.rank(a), 7000);
    level.set_present(b, false);
    level.set_present(b, true);
    assert_eq!(level.rank(b), 7000);
}
