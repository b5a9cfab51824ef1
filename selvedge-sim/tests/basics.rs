//! Simulated programs.
#![cfg(selvedge_sim)]
use selvedge_sim::Sim;
use std::time::Duration;

async fn app() {
    let tasks: Vec<_> = (0..6_u64)
        .map(|n| {
            selvedge_executor::spawn(async move {
                for _ in 0..5 {
                    selvedge_executor::yield_now().await;
                }
                net_driver::time::sleep(Duration::from_millis(n * 3)).await;
                selvedge_executor::spawn(async move { n }).await.unwrap()
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    assert_eq!(sum, 15);
}

#[test]
fn same_seed_has_the_same_hash() {
    for seed in 0..300 {
        let run = || Sim::new(seed).workers(3).run(app);
        let (one, other) = (run(), run());
        one.unwrap();
        if seed < 20 {
            println!("{} {:?} {:x}", one.count_events(), one.stats(), one.hash());
        }
        if one.hash() != other.hash() {
            let run = || Sim::new(seed).workers(3).keep_events(100_000).run(app);
            let (one, other) = (run(), run());
            for (a, b) in one.events().iter().zip(other.events()) {
                if a != b {
                    panic!("{seed}\n{a}\n{b}");
                } else {
                    println!("{a}");
                }
            }
        }
    }
}
