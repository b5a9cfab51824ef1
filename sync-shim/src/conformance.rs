//! The base of the conformance kits of this workspace's crates: tokens whose loss is noticed, and a
//! runner for a kit's checks. Feature `conformance`, for tests.
//!
//! # Terms
//!
//! | term | is |
//! |---|---|
//! | *kit* | a set of checks for a trait of this workspace, which any implementation must pass |
//! | *token* | an item that a check sends through the implementation ([`Token`]) |
//! | *account* | the record of the tokens of one check ([`Account`]) |
//!
//! # States of a token
//!
//! | state | meaning |
//! |---|---|
//! | *out* | the implementation under test has the token |
//! | *back* | the token came out, and was settled |
//! | *dropped* | the token was dropped |
//!
//! # Rules
//!
//! 1. A token goes from *out* to *back* or to *dropped*, once.
//! 2. A token that stays *out* was lost or leaked. A token that ends twice was doubled.
//! 3. A failed check panics, with a message that begins with the check's name.
use std::{
    mem::ManuallyDrop,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// A lock for a check's own data. A model does not see the lock, so locking is not a step of the
/// model. The lock cannot be poisoned.
#[derive(Debug, Default)]
pub struct Unseen<T>(Mutex<T>);

impl<T> Unseen<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Out,
    Back,
    Dropped,
}

/// The tokens of one check.
#[derive(Clone, Debug)]
pub struct Account {
    check: &'static str,
    fates: Arc<Unseen<Vec<Fate>>>,
}

/// An item whose loss is noticed. It is not `Clone`, and cannot be made from nothing.
#[derive(Debug)]
pub struct Token {
    number: usize,
    /// Dropped once, when the token's state changes from `Out`. A broken implementation may have
    /// made two tokens of one. The end of the second token must not drop this account again.
    account: ManuallyDrop<Account>,
}

/// The promised order in which items come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In the order in which they went in.
    Fifo,
    /// The newest first.
    Lifo,
    /// In any order.
    Any,
}

impl Account {
    /// Creates the account of the check with this name.
    pub fn new(check: &'static str) -> Self {
        Self {
            check,
            fates: Arc::default(),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Vec<Fate>) -> R) -> R {
        f(&mut self.fates.lock())
    }

    /// Creates the next token. Tokens are numbered from 0.
    pub fn token(&self) -> Token {
        let number = self.with(|fates| {
            fates.push(Fate::Out);
            fates.len() - 1
        });
        Token {
            number,
            account: ManuallyDrop::new(self.clone()),
        }
    }

    /// Records that a token came out, and returns its number.
    ///
    /// # Panics
    /// If the token has come out before, was dropped, or belongs to another check.
    pub fn settle(&self, token: Token) -> usize {
        let ours = Arc::ptr_eq(&self.fates, &token.account.fates);
        assert!(ours, "{}: a token of another check came out", self.check);
        let mut token = ManuallyDrop::new(token);
        match token.end(Fate::Back) {
            Fate::Out => token.number,
            Fate::Back => panic!(
                "{}: doubled: token {} came out twice",
                self.check, token.number
            ),
            Fate::Dropped => panic!(
                "{}: doubled: token {} came out after it was dropped",
                self.check, token.number
            ),
        }
    }

    /// Returns the numbers of the tokens that are neither settled nor dropped.
    pub fn missing(&self) -> Vec<usize> {
        self.with(|fates| {
            let all = fates.iter().enumerate();
            all.filter(|(_, fate)| **fate == Fate::Out)
                .map(|(number, _)| number)
                .collect()
        })
    }

    /// Asserts that every token has come out.
    ///
    /// # Panics
    /// If a token was lost, or dropped on the way.
    pub fn assert_all_back(&self) {
        let fates = self.with(|fates| fates.clone());
        for (number, fate) in fates.iter().enumerate() {
            match fate {
                Fate::Back => {}
                Fate::Out => panic!(
                    "{}: lost: token {number} of {} did not come out",
                    self.check,
                    fates.len()
                ),
                Fate::Dropped => panic!(
                    "{}: lost: token {number} of {} was dropped on the way",
                    self.check,
                    fates.len()
                ),
            }
        }
    }

    /// Asserts that every token has come out or was dropped.
    ///
    /// # Panics
    /// If a token is left.
    pub fn assert_none_left(&self) {
        let missing = self.missing();
        assert!(
            missing.is_empty(),
            "{}: leaked: tokens {missing:?} were never dropped",
            self.check
        );
    }

    /// Asserts that tokens came out in the promised order. `came` has the numbers of the tokens, in
    /// the order in which they came out. They must have gone in by increasing numbers.
    ///
    /// # Panics
    /// If the tokens came out in another order than `order`.
    pub fn assert_order(&self, order: Order, came: &[usize]) {
        let right = match order {
            Order::Fifo => came.is_sorted(),
            Order::Lifo => came.iter().rev().is_sorted(),
            Order::Any => true,
        };
        assert!(
            right,
            "{}: order: {order:?} is promised, but {came:?} came",
            self.check
        );
    }
}

impl Token {
    /// Returns the token's number in its account.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Sets the state, and returns the previous state. The token's account must not be used
    /// afterwards.
    fn end(&mut self, fate: Fate) -> Fate {
        let number = self.number;
        let before = self
            .account
            .with(|fates| std::mem::replace(&mut fates[number], fate));
        if before == Fate::Out {
            // SAFETY: this happens once for each token, since its state never is `Out` again.
            unsafe { ManuallyDrop::drop(&mut self.account) };
        }
        before
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let check = self.account.check;
        let before = self.end(Fate::Dropped);
        if before != Fate::Out && !std::thread::panicking() {
            panic!(
                "{check}: doubled: token {} was dropped, and had been {before:?} before",
                self.number
            );
        }
    }
}

/// Keeps a value forever, in a `static`. The value stays reachable, so a leak checker does not
/// report it. Use this for a value that a broken implementation has doubled, and that must not be
/// dropped twice.
pub fn bury(what: impl Send + 'static) {
    static GRAVES: Unseen<Vec<Box<dyn Send>>> = Unseen::new(Vec::new());
    let mut graves = GRAVES.lock();
    graves.push(Box::new(what));
}

/// A check and its name.
pub type Check = (&'static str, Box<dyn Fn() + Send + Sync>);

/// Creates a check of a kit.
pub fn check(name: &'static str, run: impl Fn() + Send + Sync + 'static) -> Check {
    (name, Box::new(run))
}

/// The usual time limit of [`explore`].
pub const LIMIT: Duration = Duration::from_secs(60);

/// Runs a kit's checks as one model. Under loom it explores all executions of each check with up to
/// `bound` preemptions. Under shuttle it runs each check under random schedules. On real threads it
/// runs each check 200 times, all checks within `limit`.
///
/// # Panics
/// If a check fails, or, on real threads, if the checks do not end within `limit`.
pub fn explore(limit: Duration, bound: usize, checks: impl IntoIterator<Item = Check>) {
    let now = Arc::new(Unseen::new(""));
    let named = |(name, run): Check| -> Box<dyn Fn() + Send + Sync> {
        let running = now.clone();
        Box::new(move || {
            *running.lock() = name;
            run();
        })
    };
    let checks: Vec<_> = checks.into_iter().map(named).collect();
    let model = crate::Model::new().bound(bound).branches(20_000);
    if cfg!(any(selvedge_loom, selvedge_shuttle)) {
        return model.check_each(checks);
    }
    let thread = std::thread::spawn(move || model.check_each(checks));
    let begun = Instant::now();
    while !thread.is_finished() {
        if begun.elapsed() > limit {
            // The thread keeps running.
            panic!("{}: hung: it has not ended in {limit:?}", *now.lock());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests;
