//! What the parts' conformance kits stand on: items that are accounted for, and a way to run a kit's checks. Feature `conformance`, for tests.
//!
//! A kit checks somebody else's implementation of a part's trait. It sends [`Token`]s through it: each must come out once, or be dropped
//! once; none may be lost, doubled or leaked. What is wrong is a panic that begins with the check's name.
use std::{
    mem::ManuallyDrop,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Out,
    Back,
    Dropped,
}

/// The tokens of one check.
///
/// Not by the backend's lock: an account is no step of a model.
#[derive(Clone, Debug)]
pub struct Account {
    check: &'static str,
    fates: Arc<Mutex<Vec<Fate>>>,
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
        f(&mut self.fates.lock().unwrap_or_else(PoisonError::into_inner))
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
    static GRAVES: Mutex<Vec<Box<dyn Send>>> = Mutex::new(Vec::new());
    let mut graves = GRAVES.lock().unwrap_or_else(PoisonError::into_inner);
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
    let now = Arc::new(Mutex::new(""));
    let named = |(name, run): Check| -> Box<dyn Fn() + Send + Sync> {
        let running = now.clone();
        Box::new(move || {
            *running.lock().unwrap_or_else(PoisonError::into_inner) = name;
            run();
        })
    };
    let checks: Vec<_> = checks.into_iter().map(named).collect();
    let model = crate::Model::new().bound(bound).branches(20_000);
    if cfg!(any(selvedge_loom, selvedge_shuttle)) {
        return model.check_each(checks);
    }
    let (ended, ends) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let _ended = ended;
        model.check_each(checks);
    });
    if ends.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
        // The thread is left alone.
        let name = *now.lock().unwrap_or_else(PoisonError::into_inner);
        panic!("{name}: hung: it has not ended in {limit:?}");
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests;
