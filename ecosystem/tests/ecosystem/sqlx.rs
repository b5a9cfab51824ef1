//! `sqlx`: a pool in our tasks by an entered handle, and its panic without.
use crate::program::{Folder, run, stdout};
use sqlx::{Row, sqlite::SqlitePoolOptions};

#[test]
fn sqlx_fills_and_reads_tables_on_entered_workers() {
    let program = env!("CARGO_BIN_EXE_sqlx");
    let expected = "100 rows, whose squares are 338350 together\n";
    assert_eq!(stdout(&run(program, &[])), expected);

    let folder = Folder::new("sqlx");
    let file = folder.0.join("squares.db");
    let file = file.to_str().unwrap();
    // The second time, the file and its rows are there.
    for _ in 0..2 {
        assert_eq!(stdout(&run(program, &[file])), expected);
    }
    let output = run(program, &["/none/squares.db"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("unable to open"), "{errors}");
}

/// Asks a database in memory for a number.
async fn query() -> sqlx::Result<i64> {
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect("sqlite::memory:").await?;
    let row = sqlx::query("select 6 * 7").fetch_one(&pool).await?;
    row.try_get(0)
}

// If this fails, sqlx no longer needs a handle.
#[test]
fn sqlx_without_a_handle_panics() {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let task = runtime.spawn(query());
    let panic = runtime.block_on(task).unwrap_err().into_panic();
    let message = panic.downcast_ref::<&str>();
    assert!(message.unwrap().contains("Tokio context"), "{message:?}");
}
