//! A pool of sqlx, with SQLite: our tasks insert rows and read them.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin sqlx -- squares.db
//! ```
//!
//! sqlx needs tokio's runtime: its pool sleeps there, and a connection that is dropped returns to
//! the pool by a task of tokio. So the handle of a tokio runtime is entered by each worker, and by
//! `main` for the thread in `block_on`. One thread drives tokio's sockets and sleeps, and wakes our
//! tasks, which run on our workers. If such a task calls `tokio::spawn`, the new task runs on
//! tokio's thread. By the façade, none of this is needed: see `facade/src/bin/service.rs`.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;

use futures_util::TryStreamExt;
use selvedge::{Builder, JoinSet};
use sqlx::{
    Row, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{error::Error, future::pending, io, mem, process::ExitCode, thread, time::Duration};
use tokio::runtime::Handle;

/// How long a task waits for a connection, and a connection for its turn to write: a disk may be
/// slow.
const PATIENCE: Duration = Duration::from_secs(600);

const HELP: &str = "\
Fills a table of SQLite by 100 tasks, and reads it.

Usage: sqlx [FILE]

FILE  the database, which is made if there is none [a database in memory]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let tokio = tokio_thread()?;
        // Dropped after the runtime, whose end drops tasks.
        let _entered = tokio.enter();
        let enter = tokio.clone();
        let runtime = Builder::new()
            // A drop of the guard would undo the `enter`. It is forgotten, so the worker's thread
            // stays inside tokio's runtime until it ends.
            .on_thread_start(move || mem::forget(enter.enter()))
            .build()?;
        runtime.block_on(run(arguments.first().map(String::as_str)))
    })
}

/// Starts a thread that drives a tokio runtime until the process ends.
fn tokio_thread() -> io::Result<Handle> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build()?;
    let handle = runtime.handle().clone();
    let driver = thread::Builder::new().name("tokio".into());
    driver.spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}

async fn run(file: Option<&str>) -> Result<(), Box<dyn Error>> {
    // Each connection with the option `in_memory` opens a database of its own. So the pool has
    // only one connection then.
    let (options, connections) = match file {
        None => (SqliteConnectOptions::new().in_memory(true), 1),
        Some(file) => (SqliteConnectOptions::new().filename(file), 4),
    };
    let options = options
        .create_if_missing(true)
        // One file synchronisation for many rows.
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(PATIENCE);
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .connect_with(options)
        .await?;
    let table = "create table if not exists squares (n integer primary key, square integer)";
    sqlx::query(table).execute(&pool).await?;

    let mut inserts = JoinSet::new();
    for n in 1..=100 {
        inserts.spawn(insert(pool.clone(), n));
    }
    while let Some(inserted) = inserts.join_next().await {
        inserted??;
    }

    // A transaction that is dropped changes nothing.
    let mut transaction = pool.begin().await?;
    let emptied = sqlx::query("delete from squares");
    emptied.execute(&mut *transaction).await?;
    drop(transaction);

    let mut squares = sqlx::query("select square from squares").fetch(&pool);
    let (mut rows, mut sum) = (0, 0);
    while let Some(row) = squares.try_next().await? {
        (rows, sum) = (rows + 1, sum + row.try_get::<i64, _>(0)?);
    }
    drop(squares);
    println!("{rows} rows, whose squares are {sum} together");
    pool.close().await;
    Ok(())
}

/// Waits for a connection, and inserts a row.
async fn insert(pool: SqlitePool, n: i64) -> sqlx::Result<()> {
    let insert = sqlx::query("insert or replace into squares values (?, ?)");
    insert.bind(n).bind(n * n).execute(&pool).await?;
    Ok(())
}
