//! A node of the bank: its accounts, a teller that makes transfers, and an office that answers.
use crate::{
    account::{Account, Branch, name_of},
    journal::Journal,
};
use process_cluster::{Cluster, DecodeError, Decoder, Encoder, Engine, Message, place_among};
use process_scheduler::{Inbox, Reply, Scheduler};
use std::{
    error::Error,
    io::Read,
    path::Path,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

pub const NODES: [&str; 3] = ["a", "b", "c"];
pub const OPENING: u64 = 1_000;

/// How many transfers of a node may be unfinished before its teller waits.
const MOST_UNFINISHED: usize = 100;

/// How many transfers in a row are refused before the teller gives up.
const MOST_REFUSED: usize = 200;

/// The figures of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    pub accounts: u64,
    pub balance: u64,
    pub made: u64,
    pub unfinished: u64,
    /// The node makes no more transfers.
    pub is_closed: bool,
}

impl Message for Audit {
    fn encode(self, out: &mut Encoder<'_>) {
        let Self {
            accounts,
            balance,
            made,
            unfinished,
            is_closed,
        } = self;
        let numbers = [accounts, balance, made, unfinished];
        numbers.into_iter().for_each(|number| out.u64(number));
        out.bool(is_closed);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            accounts: input.u64()?,
            balance: input.u64()?,
            made: input.u64()?,
            unfinished: input.u64()?,
            is_closed: input.bool()?,
        })
    }
}

/// Asks a node for its audit.
pub struct Ask(pub Reply<Audit>);

impl Message for Ask {
    fn encode(self, out: &mut Encoder<'_>) {
        out.reply(self.0);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self(input.reply()?))
    }
}

/// Joins the cluster of the bank.
pub fn join(
    scheduler: &Scheduler,
    name: &str,
    engine: impl Engine,
) -> Result<Cluster, Box<dyn Error>> {
    let builder = Cluster::builder(name)
        .codec::<Account>("account/1")
        .codec::<Ask>("ask/1")
        .lease(Duration::from_secs(1));
    Ok(builder.join(scheduler, engine)?)
}

/// Runs a node until its standard input ends.
pub fn run(
    name: &str,
    folder: &Path,
    accounts: u32,
    transfers: u64,
    engine: impl Engine,
) -> Result<(), Box<dyn Error>> {
    let scheduler = Scheduler::builder().workers(2).build();
    let journal = Arc::new(Journal::open(&folder.join(name).with_extension("journal"))?);
    // The home of an account does not depend on the nodes that are reached: its money is on a disk.
    let is_home = |account: &u32| place_among(NODES, account.to_le_bytes()) == Some(name);
    for account in (0..accounts).filter(is_home) {
        if journal.look(|ledger| !ledger.accounts.contains_key(&account)) {
            journal.opened(account, OPENING);
        }
    }
    let branch = Branch {
        handle: scheduler.handle(),
        cluster: Arc::new(join(&scheduler, name, engine)?),
        journal,
        is_closed: Arc::default(),
    };
    let own: Vec<_> = branch
        .journal
        .look(|ledger| ledger.accounts.keys().copied().collect());
    for account in &own {
        branch.start(*account)?;
    }
    let left = branch.journal.look(|ledger| ledger.unfinished.clone());
    for transfer in left.into_values() {
        branch.send(transfer)?;
    }
    let (journal, is_closed) = (branch.journal.clone(), branch.is_closed.clone());
    let office = scheduler.spawn_fn(move |Ask(reply), _| {
        // Before the transfers are counted: none comes after that.
        let is_closed = is_closed.load(SeqCst);
        let _ = reply.send(journal.look(|ledger| {
            Audit {
                is_closed,
                accounts: ledger.accounts.len() as u64,
                balance: ledger
                    .accounts
                    .values()
                    .map(|account| account.balance)
                    .sum(),
                made: ledger.made,
                unfinished: ledger.unfinished.len() as u64,
            }
        }));
    })?;
    branch.cluster.register(&office_of(name), office.pid())?;
    let teller = branch.clone();
    scheduler.spawn_async(move |_: Inbox<()>| teller.make(own, accounts, transfers))?;
    // The command that has started the node ends it so, also if that command is killed.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

pub fn office_of(node: &str) -> String {
    format!("office/{node}")
}

impl Branch {
    /// Makes transfers until the node has made so many in all of its lives, or its accounts have no
    /// money for one.
    async fn make(self, own: Vec<u32>, accounts: u32, transfers: u64) {
        let mut random = 1 + self.journal.look(|ledger| ledger.made);
        let mut pick = |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let mut refused = 0;
        while refused < MOST_REFUSED && self.journal.look(|ledger| ledger.made) < transfers {
            self.handle.sleep(Duration::from_millis(1)).await;
            if self.journal.look(|ledger| ledger.unfinished.len()) >= MOST_UNFINISHED {
                continue;
            }
            refused += 1;
            let Some(from) = own.get(pick(own.len().max(1) as u64) as usize) else {
                continue;
            };
            let (to, amount) = (pick(accounts.into()) as u32, 1 + pick(OPENING / 50));
            let Some(pid) = self.cluster.whereis(&name_of(*from)) else {
                continue;
            };
            if let Some(from) = self.handle.address::<Account>(pid) {
                let transfer = |done| Account::Transfer { to, amount, done };
                if from.call(transfer, Duration::from_secs(2)).await == Ok(true) {
                    refused = 0;
                }
            }
        }
        self.is_closed.store(true, SeqCst);
    }
}
