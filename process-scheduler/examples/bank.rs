//! Transfers between accounts, each of which is a process. The sum of all balances never changes.
//!
//! `cargo run --release -p process-scheduler --example bank [ACCOUNTS] [TRANSFERS]`
#[path = "../../selvedge/examples/cli/mod.rs"]
mod cli;

use process_scheduler::{Address, Flow, Reply, Scheduler};
use std::{
    error::Error,
    process::ExitCode,
    sync::mpsc,
    time::{Duration, Instant},
};

const OPENING: u64 = 100;

enum Account {
    /// Takes the amount from this account and deposits it in `to`, if the balance is large enough.
    Transfer {
        amount: u64,
        to: Address<Account>,
        done: mpsc::Sender<bool>,
    },
    Deposit {
        amount: u64,
        done: mpsc::Sender<bool>,
    },
    Balance(Reply<u64>),
    Close,
}

fn open(scheduler: &Scheduler) -> Result<Address<Account>, Box<dyn Error>> {
    let mut balance = OPENING;
    let account = scheduler.spawn_fn(move |message, _| {
        match message {
            Account::Transfer { amount, to, done } if amount <= balance => {
                balance -= amount;
                let refused = to.try_send(Account::Deposit { amount, done });
                // The other account is closed, so this account keeps the money.
                if let Err(refused) = refused {
                    balance += amount;
                    if let Account::Deposit { done, .. } = refused.into_inner() {
                        let _ = done.send(false);
                    }
                }
            }
            Account::Transfer { done, .. } => {
                let _ = done.send(false);
            }
            Account::Deposit { amount, done } => {
                balance += amount;
                let _ = done.send(true);
            }
            Account::Balance(reply) => {
                let _ = reply.send(balance);
            }
            Account::Close => return Flow::Stop,
        }
        Flow::Continue
    });
    Ok(account?)
}

const HELP: &str = "\
Opens accounts, each a process, and makes transfers among them.

Usage: bank [ACCOUNTS] [TRANSFERS]

ACCOUNTS   1 or more [1000000]
TRANSFERS  [1000000]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 2)?;
        let number = |i: usize| match arguments.get(i) {
            Some(number) => cli::parse("number", number),
            None => Ok(1_000_000),
        };
        let (accounts, transfers) = (number(0)?, number(1)?);
        if accounts == 0 {
            return Err(cli::Usage("1 account or more".to_owned()).into());
        }
        run(accounts, transfers).map(drop)
    })
}

/// Opens the accounts, makes the transfers, and checks the sum of the balances. Returns how many
/// transfers had the money.
pub fn run(accounts: usize, transfers: usize) -> Result<usize, Box<dyn Error>> {
    let scheduler = Scheduler::new();

    let start = Instant::now();
    let bank = (0..accounts).map(|_| open(&scheduler));
    let bank = bank.collect::<Result<Vec<_>, _>>()?;
    println!("{accounts} accounts opened in {:.1?}", start.elapsed());

    let start = Instant::now();
    let (done, results) = mpsc::channel();
    let mut random = 1_u64;
    let mut pick = |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % n as u64) as usize
    };
    for _ in 0..transfers {
        let (from, to) = (pick(accounts), pick(accounts));
        let transfer = Account::Transfer {
            amount: pick(2 * OPENING as usize) as u64,
            to: bank[to].clone(),
            done: done.clone(),
        };
        bank[from].try_send(transfer)?;
    }
    drop(done);
    let made = results.iter().filter(|made| *made).count();
    println!(
        "{made} of {transfers} transfers made in {:.1?}",
        start.elapsed()
    );

    let start = Instant::now();
    let calls: Vec<_> = bank
        .iter()
        .map(|account| account.call(Account::Balance, Duration::from_secs(600)))
        .collect();
    let mut sum = 0;
    for call in calls {
        sum += call.wait()?;
    }
    println!("the balances add up to {sum}, in {:.1?}", start.elapsed());
    assert_eq!(sum, accounts as u64 * OPENING);

    let start = Instant::now();
    for account in &bank {
        account.try_send(Account::Close)?;
    }
    let report = scheduler.shutdown();
    println!("{report:?} in {:.1?}", start.elapsed());
    Ok(made)
}
