//! The command: starts the nodes, shows them, kills some, and counts the money.
use crate::{
    cli::{Usage, parse},
    node::{self, Ask, Audit, NODES, OPENING, office_of},
};
use process_cluster::{Cluster, Engine};
use process_scheduler::{Handle, Inbox, Scheduler};
use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

pub const HELP: &str = "\
Runs a bank on three nodes, each a process of the system, and kills nodes with kill -9.

Usage: cluster_bank [OPTIONS]

Each account belongs to one node, by its number. The nodes make transfers between
accounts of all nodes. Nodes that are killed are started again from their journals.
At the end the sum of all balances is what it was at the beginning.

--accounts N   the accounts of all nodes [300]
--transfers N  the transfers that each node makes, if its accounts have the money [2000]
--kills N      how many nodes are killed, one after the other [1]
--folder F     the folder of the journals, to go on later [a new one, removed at the end]

Ctrl-C stops the nodes; with --folder, the same command then goes on.";

/// The longest time without progress.
const LIMIT: Duration = Duration::from_secs(60);

struct Options {
    accounts: u32,
    transfers: u64,
    kills: u64,
    folder: Option<PathBuf>,
    /// The node to be, if this is a process of one.
    node: Option<String>,
}

fn options(arguments: &[String]) -> Result<Options, Usage> {
    let mut options = Options {
        accounts: 300,
        transfers: 2_000,
        kills: 1,
        folder: None,
        node: None,
    };
    let mut words = arguments.iter();
    while let Some(option) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| Usage(format!("{option} has no value")))?;
        match &**option {
            "--accounts" => options.accounts = parse(option, value)?,
            "--transfers" => options.transfers = parse(option, value)?,
            "--kills" => options.kills = parse(option, value)?,
            "--folder" => options.folder = Some(value.into()),
            "--node" => options.node = Some(value.clone()),
            _ => return Err(Usage(format!("no option {option}"))),
        }
    }
    Ok(options)
}

/// Runs the command, or one of its nodes.
pub fn run<E: Engine>(
    arguments: &[String],
    engine: impl Fn(&str, &Path) -> E,
) -> Result<(), Box<dyn Error>> {
    let options = options(arguments)?;
    if let (Some(name), Some(folder)) = (&options.node, &options.folder) {
        let Options {
            accounts,
            transfers,
            ..
        } = options;
        return node::run(name, folder, accounts, transfers, engine(name, folder));
    }
    let folder = match &options.folder {
        Some(folder) => folder.clone(),
        None => env::temp_dir().join(format!("cluster_bank-{}", std::process::id())),
    };
    fs::create_dir_all(&folder)?;
    let scheduler = Scheduler::builder().workers(1).build();
    let cluster = node::join(&scheduler, "view", engine("view", &folder))?;
    let (sender, interrupts) = mpsc::channel();
    scheduler.spawn_async(|_: Inbox<()>| async move {
        let _ = net_driver::signal::ctrl_c().await;
        let _ = sender.send(());
    })?;
    let mut bank = Bank {
        handle: scheduler.handle(),
        cluster,
        processes: NODES.map(|_| None),
        interrupts,
        folder,
        options,
    };
    for at in 0..NODES.len() {
        bank.start(at)?;
    }
    let result = bank.watch();
    for process in bank.processes.iter_mut().filter_map(Option::take) {
        end(process)?;
    }
    if bank.options.folder.is_none() {
        fs::remove_dir_all(&bank.folder)?;
    }
    result
}

struct Bank {
    handle: Handle,
    cluster: Cluster,
    processes: [Option<Child>; 3],
    interrupts: mpsc::Receiver<()>,
    folder: PathBuf,
    options: Options,
}

/// Ends a node, and waits for its process.
fn end(mut process: Child) -> io::Result<()> {
    drop(process.stdin.take());
    process.wait().map(drop)
}

impl Drop for Bank {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().filter_map(Option::take) {
            let _ = end(process);
        }
    }
}

impl Bank {
    fn start(&mut self, at: usize) -> io::Result<()> {
        let mut command = Command::new(env::current_exe()?);
        command
            .args(["--node", NODES[at], "--folder"])
            .arg(&self.folder)
            .args(["--accounts", &self.options.accounts.to_string()])
            .args(["--transfers", &self.options.transfers.to_string()])
            .stdin(Stdio::piped());
        // Ctrl-C is for this command, which then ends the nodes.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let process = command.spawn()?;
        println!("node {} is process {}", NODES[at], process.id());
        self.processes[at] = Some(process);
        Ok(())
    }

    /// Asks a node for its audit. `None` if it is not reached.
    fn audit(&self, node: &str) -> Option<Audit> {
        let office = self.cluster.whereis(&office_of(node))?;
        let office = self.handle.address::<Ask>(office)?;
        office.call(Ask, Duration::from_secs(2)).wait().ok()
    }

    fn show(&self, audits: &[Option<Audit>; 3]) {
        println!("node  accounts  balance  transfers  unfinished");
        for (node, audit) in NODES.iter().zip(audits) {
            match audit {
                None => println!("{node:<4}  not reached"),
                Some(audit) => println!(
                    "{node:<4}  {:>8}  {:>7}  {:>9}  {:>10}",
                    audit.accounts, audit.balance, audit.made, audit.unfinished
                ),
            }
        }
    }

    /// Shows the nodes, and kills some, until all transfers are made. Counts the money then.
    fn watch(&mut self) -> Result<(), Box<dyn Error>> {
        let mut killed = 0;
        let mut progress = (Instant::now(), None);
        // A transfer that is finished after the audit of its account's node is in the next one.
        let mut were_finished = false;
        loop {
            let audits = NODES.map(|node| self.audit(node));
            self.show(&audits);
            let made: u64 = audits.iter().flatten().map(|audit| audit.made).sum();
            let is_finished = audits
                .iter()
                .all(|audit| audit.is_some_and(|audit| audit.is_closed && audit.unfinished == 0));
            if is_finished && were_finished && killed == self.options.kills {
                return self.count(&audits);
            }
            were_finished = is_finished;
            let due = self.options.transfers * 3 * (killed + 1) / (self.options.kills + 1);
            // The accounts may have no money for all transfers.
            let is_due = is_finished || made >= due && audits.iter().all(Option::is_some);
            if killed < self.options.kills && is_due {
                self.kill((1 + killed as usize) % NODES.len())?;
                killed += 1;
            }
            if progress.1 != Some(audits) {
                progress = (Instant::now(), Some(audits));
            }
            if progress.0.elapsed() > LIMIT {
                return Err("the bank makes no progress".into());
            }
            if self
                .interrupts
                .recv_timeout(Duration::from_millis(100))
                .is_ok()
            {
                println!("interrupted: the journals are in {}", self.folder.display());
                return Ok(());
            }
        }
    }

    /// Kills a node, and starts it again once the others have lost it.
    fn kill(&mut self, at: usize) -> Result<(), Box<dyn Error>> {
        let node = NODES[at];
        let Some(mut process) = self.processes[at].take() else {
            return Ok(());
        };
        process.kill()?;
        let begun = Instant::now();
        while self.cluster.nodes().iter().any(|other| other.name == node) {
            if begun.elapsed() > LIMIT {
                return Err("the loss of a node is not noticed".into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        println!(
            "node {node} was killed, and lost after {:.1?}",
            begun.elapsed()
        );
        process.wait()?;
        thread::sleep(Duration::from_millis(300));
        Ok(self.start(at)?)
    }

    fn count(&self, audits: &[Option<Audit>; 3]) -> Result<(), Box<dyn Error>> {
        let sum: u64 = audits.iter().flatten().map(|audit| audit.balance).sum();
        let due = u64::from(self.options.accounts) * OPENING;
        println!("the balances add up to {sum} of {due}");
        match sum == due {
            true => Ok(()),
            false => Err("money was lost or made".into()),
        }
    }
}
