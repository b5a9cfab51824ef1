//! Measures closures that block, beside the crate `blocking`: one thread each.
use crate::Row;
use adopt::blocking::Blocking;
use futures_lite::future::block_on;

const JOBS: usize = 10_000;

macro_rules! burst {
    ($unblock:expr) => {{
        let jobs: Vec<_> = (0..JOBS).map(|n| $unblock(move || n)).collect();
        let sum = block_on(async {
            let mut sum = 0;
            for job in jobs {
                sum += job.await;
            }
            sum
        });
        assert_eq!(sum, JOBS * (JOBS - 1) / 2);
    }};
}

pub fn burst() -> Row {
    let ours = Blocking::new(1);
    let ours = move || burst!(|job| ours.unblock(job));
    let theirs = || burst!(blocking::unblock);
    let (ours, theirs) = (Box::new(ours), Box::new(theirs));
    Row {
        name: "blocking_burst_10000",
        host: "blocking",
        ours,
        theirs,
    }
}
