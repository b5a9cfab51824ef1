//! Children in the tasks of `async-executor`.
//!
//! The threads of the executor enter a driver, so that their tasks may spawn children. The thread
//! of `main` parks in the driver: it waits for the pipes and for the ends of all children.
//!
//! `cargo run -p child-process --example async_executor_children`

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    unix::main()
}

#[cfg(not(unix))]
fn main() {
    println!("there are children on Unix alone");
}

#[cfg(unix)]
mod unix {
    use async_executor::Executor;
    use child_process::Command;
    use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
    use net_driver::{Driver, time};
    use std::{future::pending, io, process::Stdio, thread, time::Duration};

    static EXECUTOR: Executor<'_> = Executor::new();

    /// Has a child compute a square, and returns the square.
    async fn square(n: i32) -> io::Result<i32> {
        let mut command = Command::new("sh");
        command.args(["-c", "read n; echo $((n * n)); exit $n"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(format!("{n}\n").as_bytes()).await?;
        let mut answer = String::new();
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut answer).await?;
        let status = child.wait().await?;
        assert_eq!(status.code(), Some(n));
        answer.trim().parse().map_err(io::Error::other)
    }

    /// Waits a little for a child that sleeps, and kills the child.
    async fn give_up() -> io::Result<()> {
        let mut child = Command::new("sleep").arg("1000").spawn()?;
        let limit = Duration::from_millis(20);
        assert!(time::timeout(limit, child.wait()).await.is_err());
        child.kill().await?;
        assert!(!child.wait().await?.success());
        Ok(())
    }

    pub(super) fn main() -> io::Result<()> {
        let driver = Driver::new(1);
        for _ in 0..2 {
            let driver = driver.clone();
            // These threads end with the process.
            thread::spawn(move || {
                let _entered = driver.enter(None);
                future::block_on(EXECUTOR.run(pending::<()>()));
            });
        }
        driver.park(0).block_on(async {
            let gives_up = EXECUTOR.spawn(give_up());
            let squares: Vec<_> = (1..=5).map(|n| (n, EXECUTOR.spawn(square(n)))).collect();
            for (n, square) in squares {
                let square = square.await?;
                println!("a child says that the square of {n} is {square}");
                assert_eq!(square, n * n);
            }
            gives_up.await?;
            println!("a child that slept was killed");
            Ok(())
        })
    }
}
