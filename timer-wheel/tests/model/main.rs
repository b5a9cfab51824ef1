//! Any sequence of operations has the same result on a wheel as on a map that is sorted by deadline
//! and order of insertion.
#[path = "../common/mod.rs"]
mod common;
mod compared;

use compared::{Boxes, Compared, Op, Subject};
use proptest::prelude::*;

/// A tick of a deadline or an advance, in most cases relative to the present tick.
#[derive(Clone, Copy, Debug)]
enum At {
    Past(u64),
    In(u64),
    /// An offset from the tick before the next tick whose lowest digits are 0. The first number
    /// says how many digits these are.
    Turn(u32, i8),
    /// An offset from the tick that is 64ⁿ ticks after now. The first number is n, a level.
    Level(u32, i8),
    BeforeEnd(u64),
    Any(u64),
}

impl At {
    fn tick(self, now: u64) -> u64 {
        match self {
            At::Past(ticks) => now.saturating_sub(ticks),
            At::In(ticks) => now.saturating_add(ticks),
            At::Turn(digits, by) => {
                let low = u64::MAX
                    .checked_shl(6 * digits)
                    .map_or(u64::MAX, |high| !high);
                (now | low).saturating_add_signed(by.into())
            }
            At::Level(level, by) => now
                .saturating_add(1 << (6 * level))
                .saturating_add_signed(by.into()),
            At::BeforeEnd(ticks) => u64::MAX - ticks,
            At::Any(tick) => tick,
        }
    }
}

fn at() -> impl Strategy<Value = At> {
    prop_oneof![
        1 => (0..100u64).prop_map(At::Past),
        4 => (0..10u64).prop_map(At::In),
        3 => (0..5000u64).prop_map(At::In),
        4 => (1..4u32, -2..70i8).prop_map(|(digits, by)| At::Turn(digits, by)),
        1 => (4..12u32, -2..4i8).prop_map(|(digits, by)| At::Turn(digits, by)),
        3 => (0..11u32, -2..4i8).prop_map(|(level, by)| At::Level(level, by)),
        1 => (0..70u64).prop_map(At::BeforeEnd),
        1 => any::<u64>().prop_map(At::Any),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Case {
    Insert(At),
    Reset(usize, At),
    Step(At),
    Pop(At),
    Advance(At),
    Op(Op),
}

fn near() -> impl Strategy<Value = At> {
    prop_oneof![
        20 => (0..100u64).prop_map(At::In),
        6 => (1..4u32, -2..3i8).prop_map(|(digits, by)| At::Turn(digits, by)),
        1 => at(),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    prop_oneof![
        12 => at().prop_map(Case::Insert),
        2 => any::<usize>().prop_map(|n| Case::Op(Op::Remove(n))),
        2 => Just(Case::Op(Op::RemoveFirst)),
        1 => (0..40usize).prop_map(|n| Case::Op(Op::RemoveGone(n))),
        2 => (any::<usize>(), at()).prop_map(|(n, at)| Case::Reset(n, at)),
        3 => near().prop_map(Case::Step),
        2 => near().prop_map(Case::Pop),
        2 => near().prop_map(Case::Advance),
        2 => Just(Case::Op(Op::Before)),
        2 => Just(Case::Op(Op::Next)),
    ]
}

fn run<S: Subject>(cases: &[Case]) {
    let mut compared = Compared::<S>::default();
    for &case in cases {
        let now = compared.now();
        compared.apply(match case {
            Case::Insert(at) => Op::Insert(at.tick(now)),
            Case::Reset(n, at) => Op::Reset(n, at.tick(now)),
            Case::Step(at) => Op::Step(at.tick(now)),
            Case::Pop(at) => Op::Pop(at.tick(now)),
            Case::Advance(at) => Op::Advance(at.tick(now)),
            Case::Op(op) => op,
        });
    }
    compared.finish();
}

proptest! {
    #[test]
    fn wheel_behaves_as_a_sorted_map(cases in prop::collection::vec(case(), 0..120)) {
        run::<Boxes>(&cases);
    }
}

#[cfg(feature = "alloc")]
proptest! {
    #[test]
    fn timers_behave_as_a_sorted_map(cases in prop::collection::vec(case(), 0..120)) {
        run::<compared::Values>(&cases);
    }
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Runs random operations with about `most` entries at a time, so that a slot has more entries than
/// a step moves. With a small `distance`, the deadlines are within so few ticks that many entries
/// share one.
fn long<S: Subject>(seed: u64, operations: usize, most: usize, distance: u64) {
    let mut random = Random(seed);
    let mut compared = Compared::<S>::default();
    for _ in 0..operations {
        let now = compared.now();
        let deadline = now + random.below(distance);
        let near = now + random.below(distance / 64);
        let n = random.next() as usize;
        let full = compared.len() > most;
        compared.apply(match random.below(if full { 30 } else { 100 }) {
            0 => Op::Advance(near),
            1..5 => Op::RemoveFirst,
            5..12 => Op::Remove(n),
            12..18 => Op::Reset(n, deadline),
            18..24 => Op::Step(near),
            24..28 => Op::Pop(near),
            28 => Op::Before,
            29 => Op::Next,
            30..32 => Op::Insert(now.saturating_sub(deadline)),
            32 => Op::Insert(u64::MAX - random.below(3)),
            _ => Op::Insert(deadline),
        });
    }
    compared.finish();
}

#[test]
fn wheel_over_a_long_run_matches_a_sorted_map() {
    long::<Boxes>(0x9E37_79B9_7F4A_7C15, 4_000, 400, 300);
    long::<Boxes>(0x2545_F491_4F6C_DD1D, 4_000, 400, 5_000);
    long::<Boxes>(0xD1B5_4A32_D192_ED03, 4_000, 400, 1 << 19);
}

#[cfg(feature = "alloc")]
#[test]
fn timers_over_a_long_run_match_a_sorted_map() {
    long::<compared::Values>(0x9E37_79B9_7F4A_7C15, 4_000, 400, 300);
    long::<compared::Values>(0xD1B5_4A32_D192_ED03, 4_000, 400, 1 << 19);
}
