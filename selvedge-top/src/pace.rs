//! Values that cost time to make, and that all pages share for a while.
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The shortest time between two values.
pub(crate) const LEAST: Duration = Duration::from_secs(1);

/// The longest time between two values.
const MOST: Duration = Duration::from_secs(60);

/// A value is used for so many times the time that it took to make: 0.4 % of a processor makes
/// values.
const REST: u32 = 250;

/// Returns the time for which something that took `cost` is not done again.
pub(crate) fn pause(cost: Duration) -> Duration {
    cost.saturating_mul(REST).clamp(LEAST, MOST)
}

/// A value, made anew at most once in its pause, and only if somebody asks for it.
pub(crate) struct Paced<T> {
    made: Mutex<Option<Made<T>>>,
    pause: fn(Duration) -> Duration,
}

/// A value, and when it was made.
pub(crate) struct Made<T> {
    pub(crate) value: Arc<T>,
    pub(crate) at: Instant,
    pub(crate) cost: Duration,
}

impl<T> Clone for Made<T> {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            ..*self
        }
    }
}

impl<T> Paced<T> {
    /// Makes a place for a value whose pause depends on its cost.
    pub(crate) fn new() -> Self {
        Self {
            made: Mutex::new(None),
            pause,
        }
    }

    /// Makes a place for a value that is cheap: its pause is the shortest one.
    pub(crate) fn cheap() -> Self {
        Self {
            made: Mutex::new(None),
            pause: |_| LEAST,
        }
    }

    /// Returns the value, or makes a new one if its pause is over.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> Made<T> {
        let mut place = self.lock();
        let fresh = place
            .as_ref()
            .filter(|made| made.at.elapsed() < (self.pause)(made.cost));
        if let Some(made) = fresh {
            return made.clone();
        }
        let begun = Instant::now();
        let value = Arc::new(make());
        let made = Made {
            value,
            at: begun,
            cost: begun.elapsed(),
        };
        *place = Some(made.clone());
        made
    }

    /// Drops the value.
    pub(crate) fn clear(&self) {
        let old = self.lock().take();
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Made<T>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_grows_with_the_cost_within_bounds() {
        assert_eq!(pause(Duration::ZERO), LEAST);
        assert_eq!(pause(Duration::from_millis(20)), Duration::from_secs(5));
        assert_eq!(pause(Duration::MAX), MOST);
    }

    #[test]
    fn value_is_made_once_until_it_is_cleared() {
        let paced = Paced::new();
        assert_eq!(*paced.get(|| 1).value, 1);
        // The pause is a second at least: a machine that is busy for so long makes a new value.
        let again = paced.get(|| 2);
        assert!(*again.value == 1 || again.at.elapsed() < LEAST);
        paced.clear();
        assert_eq!(*paced.get(|| 3).value, 3);
    }

    #[test]
    fn cheap_value_is_made_each_second_whatever_it_cost() {
        let cheap = Paced::<()>::cheap();
        assert_eq!((cheap.pause)(Duration::from_secs(9)), LEAST);
        let paced = Paced::<()>::new();
        assert_eq!((paced.pause)(Duration::from_secs(9)), MOST);
    }
}
