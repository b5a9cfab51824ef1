//! A node's journal: what its accounts have done, a line for each.
//!
//! | line | says |
//! |---|---|
//! | `open ACCOUNT AMOUNT` | an account of the node was opened |
//! | `out NUMBER FROM TO AMOUNT` | a transfer left an account. The number is the node's own |
//! | `in NODE NUMBER TO AMOUNT` | a transfer of a node came to an account |
//! | `done NUMBER` | the other account's node has said that the transfer came |
//!
//! A line is written before anybody learns what it says. So a node that is killed comes back with
//! all that the others know of it. The file is not synced: the journal outlasts a kill of the
//! process, and no loss of power.
use std::{
    collections::{BTreeMap, HashSet},
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

/// A transfer that left an account, and may not have come to the other one.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub number: u64,
    pub to: u32,
    pub amount: u64,
}

/// An account as its journal tells.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    pub balance: u64,
    /// The transfers that have come, by their node and number.
    pub taken: HashSet<(String, u64)>,
}

#[derive(Debug, Default)]
pub struct Ledger {
    pub accounts: BTreeMap<u32, Standing>,
    /// The transfers that nobody has said to have come.
    pub unfinished: BTreeMap<u64, Transfer>,
    /// How many transfers have left the accounts: the number of the next one.
    pub made: u64,
}

pub struct Journal(Mutex<(File, Ledger)>);

impl Journal {
    /// Opens the journal of a node, and reads what it says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // The node was killed while it wrote the last line, which nobody has learnt.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        let mut ledger = Ledger::default();
        for line in text[..whole].lines() {
            let is_line = ledger.read(line).is_some();
            is_line.then_some(()).ok_or_else(|| {
                let why = format!("{}: not a line of a journal: {line:?}", path.display());
                io::Error::new(io::ErrorKind::InvalidData, why)
            })?;
        }
        Ok(Self(Mutex::new((file, ledger))))
    }

    /// Looks at what the journal says.
    pub fn look<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&inner.1)
    }

    /// Writes a line.
    ///
    /// # Panics
    /// If the line cannot be written: a bank without a journal must not go on.
    fn write(&self, line: impl FnOnce(&Ledger) -> String) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line(&inner.1);
        let written = inner.0.write_all(format!("{line}\n").as_bytes());
        written.expect("the journal is writable");
        inner.1.read(&line).expect("it is a line of a journal");
    }

    pub fn opened(&self, account: u32, amount: u64) {
        self.write(|_| format!("open {account} {amount}"));
    }

    /// Notes that a transfer leaves an account. Returns the transfer.
    pub fn leaves(&self, from: u32, to: u32, amount: u64) -> Transfer {
        let mut number = 0;
        self.write(|ledger| {
            number = ledger.made;
            format!("out {number} {from} {to} {amount}")
        });
        Transfer { number, to, amount }
    }

    pub fn came(&self, node: &str, number: u64, to: u32, amount: u64) {
        self.write(|_| format!("in {node} {number} {to} {amount}"));
    }

    pub fn is_done(&self, number: u64) {
        self.write(|_| format!("done {number}"));
    }
}

impl Ledger {
    /// Applies a line. `None` if it is not one.
    fn read(&mut self, line: &str) -> Option<()> {
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let account = |at: usize| words.get(at)?.parse::<u32>().ok();
        match (*words.first()?, words.len()) {
            ("open", 3) => {
                let standing = self.accounts.entry(account(1)?).or_default();
                standing.balance = number(2)?;
            }
            ("out", 5) => {
                let transfer = Transfer {
                    number: number(1)?,
                    to: account(3)?,
                    amount: number(4)?,
                };
                let from = self.accounts.get_mut(&account(2)?)?;
                from.balance = from.balance.checked_sub(transfer.amount)?;
                self.unfinished.insert(transfer.number, transfer);
                self.made = transfer.number + 1;
            }
            ("in", 5) => {
                let to = self.accounts.get_mut(&account(3)?)?;
                let is_new = to.taken.insert((words[1].to_owned(), number(2)?));
                to.balance += is_new.then_some(number(4)?)?;
            }
            ("done", 2) => drop(self.unfinished.remove(&number(1)?)?),
            _ => return None,
        }
        Some(())
    }
}
