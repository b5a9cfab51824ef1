//! The list of a driver's guests: see `guest.rs`.
use crate::token::Token;
use std::sync::Arc;
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    count::shared,
    sync::Mutex,
};

/// The tokens of a driver's guests.
pub(crate) struct Guests {
    tokens: Mutex<Vec<Option<Arc<Token>>>>,
    count: AtomicUsize,
}

impl Guests {
    pub(crate) fn new() -> Self {
        Self {
            tokens: Mutex::new(Vec::new()),
            count: shared(AtomicUsize::new(0)),
        }
    }

    /// Returns whether there are no guests. The caller's fence orders the load.
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed; see `Threads::recruit_standby`.
        self.count.load(Relaxed) == 0
    }

    /// Adds a guest, and returns its place.
    pub(crate) fn add(&self, token: Arc<Token>) -> usize {
        let mut guests = self.tokens.lock();
        let place = guests.iter().position(Option::is_none);
        let place = place.unwrap_or_else(|| {
            guests.push(None);
            guests.len() - 1
        });
        guests[place] = Some(token);
        // Ordering: Relaxed. The guest makes a fence before it waits.
        self.count.fetch_add(1, Relaxed);
        place
    }

    pub(crate) fn remove(&self, place: usize) {
        let mut guests = self.tokens.lock();
        guests[place] = None;
        // Ordering: Relaxed. A thread that reads the old count takes the lock in vain.
        self.count.fetch_sub(1, Relaxed);
        while let Some(None) = guests.last() {
            guests.pop();
        }
    }

    /// Returns the token of the guest at this place, unless it has left.
    pub(crate) fn token(&self, place: usize) -> Option<Arc<Token>> {
        self.tokens.lock().get(place).cloned().flatten()
    }

    /// Returns the tokens of all guests.
    pub(crate) fn tokens(&self) -> Vec<Arc<Token>> {
        self.tokens.lock().iter().flatten().cloned().collect()
    }

    /// Returns the token of a guest that waits on its thread, and is not at the place `but`.
    pub(crate) fn in_thread(&self, but: Option<usize>) -> Option<Arc<Token>> {
        let guests = self.tokens.lock();
        let mut others = guests
            .iter()
            .enumerate()
            .filter(|(place, _)| Some(*place) != but);
        others.find_map(|(_, token)| token.clone().filter(|token| token.is_in_thread()))
    }

    /// Returns whether `test` is true of each guest's token.
    #[cfg(feature = "test-util")]
    pub(crate) fn all(&self, test: impl Fn(&Token) -> bool) -> bool {
        self.tokens.lock().iter().flatten().all(|token| test(token))
    }
}
