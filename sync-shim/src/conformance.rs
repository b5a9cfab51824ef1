//! What the parts' conformance kits stand on: items that are accounted for, and a way to run a kit's checks. Feature `conformance`, for tests.
//!
//! A kit checks somebody else's implementation of a part's trait. It sends [`Token`]s through it: each must come out once, or be dropped
//! once; none may be lost, doubled or leaked. What is wrong is a panic that begins with the check's name.
#[cfg(selvedge_tsan)]
use crate::sync::{Mutex as Lock, MutexGuard as Guard};
#[cfg(not(selvedge_tsan))]
use std::sync::{Mutex as Lock, MutexGuard as Guard, PoisonError};
use std::{
    mem::ManuallyDrop,
    sync::Arc,
    time::{Duration, Instant},
};

/// A lock for what a check knows and is no step of a model: the model doesn't see it, while ThreadSanitizer does. It can't be poisoned.
#[derive(Debug, Default)]
pub struct Unseen<T>(Lock<T>);

impl<T> Unseen<T> {
    /// Of a value.
    pub const fn new(value: T) -> Self {
        Self(Lock::new(value))
    }

    /// Waits for it.
    pub fn lock(&self) -> Guard<'_, T> {
        #[cfg(selvedge_tsan)]
        let guard = self.0.lock();
        #[cfg(not(selvedge_tsan))]
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard
    }
}

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Out,
    Back,
    Dropped,
}

/// The tokens of one check.
///
#[derive(Clone, Debug)]
pub struct Account {
    check: &'static str,
    fates: Arc<Unseen<Vec<Fate>>>,
}

/// An item that is missed when it is lost. It is neither `Clone` nor anything that could be made from nothing.
#[derive(Debug)]
pub struct Token {
    number: usize,
    /// Let go of by whoever sees the token end for the first time: a broken implementation may have made two of one.
    account: ManuallyDrop<Account>,
}

/// In which order things are promised to come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In that of their way in.
    Fifo,
    /// The newest first.
    Lifo,
    /// In any.
    Any,
}

impl Account {
    /// Of the check of that name.
    pub fn new(check: &'static str) -> Self {
        Self {
            check,
            fates: Arc::default(),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Vec<Fate>) -> R) -> R {
        f(&mut self.fates.lock())
    }

    /// The next token; they count from 0.
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

    /// Takes a token that came out, and tells its number.
    ///
    /// # Panics
    /// When it has come out before, or was dropped, or is another check's.
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

    /// Tokens that are neither settled nor dropped.
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
    /// When one was lost, or dropped on the way.
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
    /// When one is left somewhere.
    pub fn assert_none_left(&self) {
        let missing = self.missing();
        assert!(
            missing.is_empty(),
            "{}: leaked: tokens {missing:?} were never dropped",
            self.check
        );
    }

    /// Asserts that the numbers of what came out, of tokens that went in by their numbers, are in the promised order.
    ///
    /// # Panics
    /// When they are not.
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
    /// Its number in its account.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Gives what had become of it before. The account is not to be used after that.
    fn end(&mut self, fate: Fate) -> Fate {
        let number = self.number;
        let before = self
            .account
            .with(|fates| std::mem::replace(&mut fates[number], fate));
        if before == Fate::Out {
            // SAFETY: once for a token, as its fate is never `Out` again.
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

/// Keeps something for ever, within reach of a leak checker: what a broken implementation has made two of is not to be dropped.
pub fn bury(what: impl Send + 'static) {
    static GRAVES: Unseen<Vec<Box<dyn Send>>> = Unseen::new(Vec::new());
    let mut graves = GRAVES.lock();
    graves.push(Box::new(what));
}

/// A check, by its name.
pub type Check = (&'static str, Box<dyn Fn() + Send + Sync>);

/// One of a kit's checks.
pub fn check(name: &'static str, run: impl Fn() + Send + Sync + 'static) -> Check {
    (name, Box::new(run))
}

/// How long [`explore`] waits.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Runs a kit's checks as one model: under loom all executions of each with up to `bound` preemptions; else each a few hundred times, and all no longer than `limit`.
///
/// # Panics
/// When a check fails, or when the time is over: then one waits for ever.
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
            // The thread is left alone.
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
