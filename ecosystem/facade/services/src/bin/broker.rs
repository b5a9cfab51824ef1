//! The MQTT broker of rumqttd. Each of its listeners has a thread with a runtime of its own.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/facade/Cargo.toml -p services --bin broker -- 127.0.0.1:1884
//! mosquitto_sub -p 1884 -t news
//! ```
use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};
use std::{
    collections::HashMap,
    env,
    error::Error,
    net::{SocketAddr, TcpListener},
    process, thread,
    time::Duration,
};
use tokio::net::TcpStream;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or("127.0.0.1:1884".into());
    // The broker drops the error of its own `bind`. This one also finds a port for port 0.
    let address: SocketAddr = TcpListener::bind(address)?.local_addr()?;
    let server = ServerSettings {
        name: "v4".into(),
        listen: address,
        tls: None,
        next_connection_delay_ms: 1,
        connections: ConnectionSettings {
            connection_timeout_ms: 60_000,
            max_payload_size: 20 << 10,
            max_inflight_count: 100,
            auth: None,
            external_auth: None,
            dynamic_filters: true,
        },
    };
    let config = Config {
        // A topic keeps its last 1,280 KiB.
        router: RouterConfig {
            max_connections: 1_000,
            max_outgoing_packet_count: 200,
            max_segment_size: 128 << 10,
            max_segment_count: 10,
            ..RouterConfig::default()
        },
        v4: Some(HashMap::from([("v4".into(), server)])),
        ..Config::default()
    };
    thread::spawn(move || {
        if let Err(error) = Broker::new(config).start() {
            eprintln!("the broker: {error}");
            process::exit(1);
        }
    });
    // The broker does not say when it listens.
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("listens on {address}");
    services::ended().await?;
    Ok(())
}
