//! The choices of a run: from the seed, or from a recorded list.
use crate::net_settings::Chance;

/// The choices of the simulated system. The simplest choice is the first: no fault, and the least
/// time.
pub(crate) trait Dice {
    /// Returns a number below `count`, which is not 0.
    fn below(&self, count: u32) -> u32;
    /// Returns whether something of this probability happens.
    fn once(&self, chance: Chance) -> bool;
}

/// A generator of random numbers (SplitMix64, by Steele, Lea and Flood).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut next = self.0;
        next = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        next = (next ^ (next >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        next ^ (next >> 31)
    }

    /// Returns a number below `count`, which is not 0.
    #[inline]
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(count)) >> 64) as u64
    }

    /// Returns true once in `times`, on average.
    #[inline]
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// The source of a run's choices. The choice 0 is always the simplest one: the thread goes on, or
/// the thread that has waited longest runs, or a poll takes no time.
#[derive(Debug)]
pub(crate) struct Choices {
    /// The choices to make, instead of new ones. Beyond their end each choice is 0.
    replayed: Option<Vec<u32>>,
    made: usize,
    /// The choices that were made, if they are recorded.
    recorded: Option<Vec<u32>>,
}

impl Choices {
    pub(crate) fn new(replayed: Option<Vec<u32>>, records: bool) -> Self {
        let recorded = records.then(Vec::new);
        Self {
            replayed,
            made: 0,
            recorded,
        }
    }

    /// Returns the next choice, which is below `count`. `choose` makes a new one.
    #[inline]
    pub(crate) fn next(&mut self, count: u32, choose: impl FnOnce() -> u32) -> u32 {
        if self.replayed.is_none() && self.recorded.is_none() {
            return choose();
        }
        let choice = match &self.replayed {
            None => choose(),
            Some(replayed) => replayed.get(self.made).copied().unwrap_or(0).min(count - 1),
        };
        self.made += 1;
        if let Some(recorded) = &mut self.recorded {
            recorded.push(choice);
        }
        choice
    }

    pub(crate) fn take_recorded(&mut self) -> Vec<u32> {
        self.recorded.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, Random};

    #[test]
    fn numbers_below_a_bound_are_all_reached() {
        let mut random = Random::new(7);
        let mut seen = [0_u32; 5];
        (0..1_000).for_each(|_| seen[random.below(5) as usize] += 1);
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    }

    #[test]
    fn replayed_choices_are_limited_and_end_with_zeros() {
        let mut choices = Choices::new(Some(vec![9, 1]), true);
        let made = [4, 4, 4].map(|count| choices.next(count, || unreachable!("it is replayed")));
        assert_eq!(made, [3, 1, 0]);
        assert_eq!(choices.take_recorded(), [3, 1, 0]);
    }
}
