//! Copies the standard input to the standard output, as `cat` does.
use blocking_fs::stdio::{stdin, stdout};
use blocking_threads::{Boxed, Pool, Settings};
use futures_lite::{AsyncWriteExt, future::block_on, io::copy};

fn main() -> std::io::Result<()> {
    let pool: Pool<Boxed> = Pool::new(Settings::default());
    let _entered = pool.enter();
    block_on(async {
        let mut stdout = stdout();
        copy(stdin(), &mut stdout).await?;
        stdout.flush().await
    })
}
