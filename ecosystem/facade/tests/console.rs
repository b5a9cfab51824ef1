//! tokio's console sees the tasks: a client gets them from `console-subscriber`, as the console
//! does. Run it with RUSTFLAGS="--cfg console_without_tokio_unstable"; else there is nothing here.
#![cfg(console_without_tokio_unstable)]
use console_api::instrument::{InstrumentRequest, instrument_client::InstrumentClient};
use std::{collections::HashMap, net, time::Duration};
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn console_gets_the_polls_of_a_task() {
    let free = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    console_subscriber::ConsoleLayer::builder()
        .server_addr(address)
        .publish_interval(Duration::from_millis(100))
        .init();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let line = line!() + 1;
        let ticking = tokio::spawn(async {
            loop {
                sleep(Duration::from_millis(10)).await;
            }
        });
        timeout(LIMIT, polled(address, line))
            .await
            .expect("the console has the task");
        ticking.abort();
    });
}

/// Waits until the console says that the task spawned in this file's `line` was polled ten times.
async fn polled(address: net::SocketAddr, line: u32) {
    let mut client = loop {
        match InstrumentClient::connect(format!("http://{address}")).await {
            Ok(client) => break client,
            // Its thread has yet to listen.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    };
    let updates = client.watch_updates(InstrumentRequest {}).await.unwrap();
    let mut updates = updates.into_inner();
    let mut lines = HashMap::new();
    loop {
        let update = updates
            .message()
            .await
            .unwrap()
            .expect("the stream goes on");
        let Some(tasks) = update.task_update else {
            continue;
        };
        for task in tasks.new_tasks {
            let place = task.location.unwrap_or_default();
            if place.file().ends_with("tests/console.rs") {
                lines.insert(task.id.unwrap().id, place.line());
            }
        }
        let polls = |stats: &console_api::tasks::Stats| stats.poll_stats.as_ref().unwrap().polls;
        let mut seen = tasks.stats_update.iter();
        if seen.any(|(id, stats)| lines.get(id) == Some(&line) && polls(stats) >= 10) {
            return;
        }
    }
}
