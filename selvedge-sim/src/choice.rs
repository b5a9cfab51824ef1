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

/// The matter of a choice. The choices of one matter are a list of their own: if one of them
/// becomes a simpler one, so that the run takes another course, the others still decide what they
/// did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The time of a poll.
    Polls,
    /// The thread that runs next.
    Threads,
    /// The fate of a packet, and how long it takes.
    Packets,
    /// The time and the errors of a disk.
    Disks,
    /// The changes that a crash leaves on a disk.
    Losses,
    /// The faults that happen, and their times.
    Faults,
}

/// The number of lists.
pub(crate) const MATTERS: usize = 6;

/// The choices of a run, by their matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists(pub(crate) [Vec<u32>; MATTERS]);

impl Lists {
    /// Reads what [`flatten`](Self::flatten) returns. Choices that are not there are the simplest.
    pub(crate) fn from_flat(flat: &[u32]) -> Self {
        let (lens, mut rest) = flat.split_at(flat.len().min(MATTERS));
        let mut lists = Self::default();
        for (list, len) in lists.0.iter_mut().zip(lens) {
            let (own, others) = rest.split_at(rest.len().min(*len as usize));
            list.extend_from_slice(own);
            rest = others;
        }
        lists
    }

    /// Returns the lengths of the lists, and then the lists. Nothing if all are empty.
    pub(crate) fn flatten(&self) -> Vec<u32> {
        if self.len() == 0 {
            return Vec::new();
        }
        let lens = self.0.iter().map(|list| list.len() as u32);
        lens.chain(self.0.iter().flatten().copied()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Returns how many choices are not the simplest.
    pub(crate) fn others(&self) -> usize {
        let choices = self.0.iter().flatten();
        choices.filter(|choice| **choice > 0).count()
    }

    pub(crate) fn about(&mut self, about: About) -> &mut Vec<u32> {
        &mut self.0[about as usize]
    }
}

/// A choice of the time at which a fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Its place among the choices about faults.
    pub(crate) at: usize,
    /// The time of choice 0, in milliseconds, and the number of times.
    pub(crate) first: u64,
    pub(crate) count: u32,
}

/// The source of a run's choices. The choice 0 is always the simplest one: the thread goes on, or
/// the thread that has waited longest runs, or a poll takes no time.
#[derive(Debug)]
pub(crate) struct Choices {
    /// The choices to make, instead of new ones. Beyond the end of a list each choice is 0.
    replayed: Option<Lists>,
    made: [usize; MATTERS],
    /// The choices that were made, if they are recorded.
    recorded: Option<Lists>,
    begins: Vec<Begin>,
}

impl Choices {
    pub(crate) fn new(replayed: Option<Vec<u32>>, records: bool) -> Self {
        Self {
            replayed: replayed.map(|flat| Lists::from_flat(&flat)),
            made: [0; MATTERS],
            recorded: records.then(Lists::default),
            begins: Vec::new(),
        }
    }

    /// Returns the next choice, which is below `count`. `choose` makes a new one.
    #[inline]
    pub(crate) fn next(&mut self, about: About, count: u32, choose: impl FnOnce() -> u32) -> u32 {
        if self.replayed.is_none() && self.recorded.is_none() {
            return choose();
        }
        let at = &mut self.made[about as usize];
        let choice = match &self.replayed {
            None => choose(),
            Some(replayed) => {
                let list = &replayed.0[about as usize];
                list.get(*at).copied().unwrap_or(0).min(count - 1)
            }
        };
        *at += 1;
        if let Some(recorded) = &mut self.recorded {
            recorded.about(about).push(choice);
        }
        choice
    }

    /// Notes that the next choice about faults is the time at which one begins.
    pub(crate) fn note_begin(&mut self, first: u64, count: u32) {
        let at = self.made[About::Faults as usize];
        self.begins.push(Begin { at, first, count });
    }

    pub(crate) fn take_recorded(&mut self) -> (Lists, Vec<Begin>) {
        let recorded = self.recorded.take().unwrap_or_default();
        (recorded, std::mem::take(&mut self.begins))
    }
}

#[cfg(test)]
mod tests {
    use super::{About, Choices, Lists, Random};

    #[test]
    fn numbers_below_a_bound_are_all_reached() {
        let mut random = Random::new(7);
        let mut seen = [0_u32; 5];
        (0..1_000).for_each(|_| seen[random.below(5) as usize] += 1);
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    }

    #[test]
    fn replayed_choices_are_limited_and_end_with_zeros() {
        let mut lists = Lists::default();
        lists.about(About::Packets).extend([9, 1]);
        lists.about(About::Faults).push(2);
        let mut choices = Choices::new(Some(lists.flatten()), true);
        let mut next = |about| choices.next(about, 4, || unreachable!("it is replayed"));
        let made = [
            About::Packets,
            About::Faults,
            About::Packets,
            About::Packets,
        ]
        .map(&mut next);
        assert_eq!(made, [3, 2, 1, 0]);
        let (recorded, _) = choices.take_recorded();
        assert_eq!(recorded.0[About::Packets as usize], [3, 1, 0]);
        assert_eq!(recorded.0[About::Faults as usize], [2]);
    }

    #[test]
    fn flat_choices_are_read_again_whatever_they_are() {
        let mut lists = Lists::default();
        assert!(lists.flatten().is_empty());
        lists.about(About::Polls).extend([1, 2]);
        lists.about(About::Faults).push(3);
        assert_eq!(Lists::from_flat(&lists.flatten()), lists);
        for wrong in [&[][..], &[7], &[u32::MAX; 9], &[0; 6]] {
            assert!(Lists::from_flat(wrong).len() <= wrong.len());
        }
    }
}
