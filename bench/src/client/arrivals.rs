//! The clock of an open loop: a Poisson process, by a seeded generator.
use std::time::Duration;

/// A generator of random numbers: splitmix64, by Steele, Lea and Flood.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number from 0 to 1, without 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number from 0 to `end`, without `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.part() * end as f64) as u64
    }
}

/// The gaps between arrivals, so many a second on average. A gap does not depend on the gaps before
/// it.
pub(crate) struct Arrivals {
    rate: f64,
    random: Random,
}

impl Arrivals {
    pub(crate) fn new(rate: f64, seed: u64) -> Self {
        let random = Random(seed);
        Self { rate, random }
    }

    pub(crate) fn gap(&mut self) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.random.part()).ln() / self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_deviation_of_a_poisson_process() {
        let mut arrivals = Arrivals::new(1_000.0, 7);
        let gaps: Vec<_> = (0..100_000).map(|_| arrivals.gap().as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        let deviation = (square / gaps.len() as f64).sqrt();
        // Both are a millisecond. The mean of so many gaps is off by 0.3 % in one case of three.
        assert!((mean - 0.001).abs() < 0.000_02, "{mean}");
        assert!((deviation - 0.001).abs() < 0.000_03, "{deviation}");
    }

    #[test]
    fn generator_with_the_same_seed_repeats_its_numbers() {
        let numbers = |seed| {
            let mut random = Random(seed);
            [(); 50].map(|()| random.below(100))
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert!(numbers(1).iter().all(|number| *number < 100));
    }
}
