//! The accounts of a node, each a process, and the couriers that bring transfers to other accounts.
//!
//! A message comes at most once, and a call whose node is lost may have been served. So a courier
//! asks until it has an answer, and an account takes a transfer once: it knows the node and the
//! number of each.
use crate::journal::{Journal, Transfer};
use process_cluster::{Cluster, DecodeError, Decoder, Encoder, Message};
use process_scheduler::{Handle, Inbox, Reply, SpawnError};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// How long a courier waits for an answer, and before it asks again.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

pub enum Account {
    /// Takes the amount from this account for another one. Answers whether it was there.
    Transfer {
        to: u32,
        amount: u64,
        done: Reply<bool>,
    },
    /// Brings the transfer of a node, which may have come before. Answers when it has come.
    Credit {
        node: String,
        number: u64,
        amount: u64,
        done: Reply<bool>,
    },
}

impl Message for Account {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Transfer { to, amount, done } => {
                out.u8(0);
                out.u32(to);
                out.u64(amount);
                out.reply(done);
            }
            Self::Credit {
                node,
                number,
                amount,
                done,
            } => {
                out.u8(1);
                out.str(&node);
                out.u64(number);
                out.u64(amount);
                out.reply(done);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Self::Transfer {
                to: input.u32()?,
                amount: input.u64()?,
                done: input.reply()?,
            },
            1 => Self::Credit {
                node: input.str()?.to_owned(),
                number: input.u64()?,
                amount: input.u64()?,
                done: input.reply()?,
            },
            _ => return Err(DecodeError::Invalid),
        })
    }
}

pub fn name_of(account: u32) -> String {
    format!("account/{account}")
}

/// The parts of a node that its processes share.
#[derive(Clone)]
pub struct Branch {
    pub handle: Handle,
    pub cluster: Arc<Cluster>,
    pub journal: Arc<Journal>,
    /// The teller makes no more transfers.
    pub is_closed: Arc<AtomicBool>,
}

impl Branch {
    /// Starts the process of an account, which the journal has.
    pub fn start(&self, account: u32) -> Result<(), Box<dyn std::error::Error>> {
        let branch = self.clone();
        let process = self
            .handle
            .spawn_fn(move |message, _| branch.serve(account, message))?;
        self.cluster.register(&name_of(account), process.pid())?;
        Ok(())
    }

    fn serve(&self, account: u32, message: Account) {
        match message {
            Account::Transfer { to, amount, done } => {
                let balance = self
                    .journal
                    .look(|ledger| ledger.accounts[&account].balance);
                let is_there = amount <= balance;
                if is_there {
                    let transfer = self.journal.leaves(account, to, amount);
                    // One that does not start now starts with the node's next life.
                    let _ = self.send(transfer);
                }
                let _ = done.send(is_there);
            }
            Account::Credit {
                node,
                number,
                amount,
                done,
            } => {
                let key = (node, number);
                let has_come = |taken: &std::collections::HashSet<_>| taken.contains(&key);
                if !self
                    .journal
                    .look(|ledger| has_come(&ledger.accounts[&account].taken))
                {
                    self.journal.came(&key.0, number, account, amount);
                }
                let _ = done.send(true);
            }
        }
    }

    /// Starts the courier of a transfer, which asks until the other account has it.
    pub fn send(&self, transfer: Transfer) -> Result<(), SpawnError> {
        let branch = self.clone();
        let courier = self.handle.spawn_async(move |_: Inbox<()>| async move {
            while !branch.brings(transfer).await {
                branch.handle.sleep(PAUSE).await;
            }
            branch.journal.is_done(transfer.number);
        });
        courier.map(drop)
    }

    /// Asks the other account once. Returns whether it has the transfer for sure.
    async fn brings(&self, transfer: Transfer) -> bool {
        let Some(pid) = self.cluster.whereis(&name_of(transfer.to)) else {
            return false;
        };
        let Some(to) = self.handle.address::<Account>(pid) else {
            return false;
        };
        let node = self.cluster.name().to_owned();
        let credit = |done| Account::Credit {
            node,
            number: transfer.number,
            amount: transfer.amount,
            done,
        };
        to.call(credit, PATIENCE).await == Ok(true)
    }
}
