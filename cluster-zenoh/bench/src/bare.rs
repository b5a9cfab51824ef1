//! Bare zenoh: puts and subscribers.
use crate::measure::{BYTES, Calls, print_rate, serve_until_the_end};
use std::{
    sync::{Arc, Mutex, mpsc},
    time::Instant,
};
use zenoh::{Session, Wait, pubsub::Publisher, qos::CongestionControl, sample::Locality};

fn open(listen: Option<u16>, connect: Option<u16>) -> Session {
    let list = |port: Option<u16>| match port {
        Some(port) => format!("[\"tcp/127.0.0.1:{port}\"]"),
        None => "[]".to_owned(),
    };
    let mut config = zenoh::Config::default();
    for (key, value) in [
        ("listen/endpoints", list(listen)),
        ("connect/endpoints", list(connect)),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
    ] {
        config.insert_json5(key, &value).unwrap();
    }
    zenoh::open(config).wait().unwrap()
}

fn publisher(session: &Session, key: String, is_express: bool) -> Publisher<'static> {
    let publisher = session.declare_publisher(key);
    let publisher = publisher.congestion_control(CongestionControl::Block);
    let publisher = publisher.allowed_destination(Locality::Remote);
    publisher.express(is_express).wait().unwrap()
}

/// Waits until the other side subscribes.
fn wait_for_subscriber(publisher: &Publisher<'_>) {
    while !publisher.matching_status().wait().unwrap().matching() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

pub fn serve(port: u16, pairs: usize) {
    let session = open(Some(port), None);
    let pong = publisher(&session, "bench/pong".to_owned(), true);
    let ping = session
        .declare_subscriber("bench/ping")
        .callback(move |sample| {
            pong.put(sample.payload().clone()).wait().unwrap();
        });
    ping.background().wait().unwrap();
    let done = Arc::new(publisher(&session, "bench/done".to_owned(), true));
    // How many messages are missing.
    let left = Arc::new(Mutex::new(0_u64));
    for pair in 0..pairs {
        let (left, done) = (left.clone(), done.clone());
        let key = format!("bench/flood/{pair}");
        let subscriber = session.declare_subscriber(key).callback(move |sample| {
            let bytes = sample.payload().to_bytes();
            let mut left = left.lock().unwrap();
            if bytes.len() == 8 {
                *left = u64::from_le_bytes((&*bytes).try_into().unwrap());
                return;
            }
            *left -= 1;
            if *left == 0 {
                done.put(vec![]).wait().unwrap();
            }
        });
        subscriber.background().wait().unwrap();
    }
    serve_until_the_end();
}

fn answers(session: &Session, key: &str) -> mpsc::Receiver<()> {
    let (sender, answers) = mpsc::channel();
    let subscriber = session.declare_subscriber(key).callback(move |_| {
        let _ = sender.send(());
    });
    subscriber.background().wait().unwrap();
    answers
}

pub fn call(port: u16, millis: u64) {
    let session = open(None, Some(port));
    let pongs = answers(&session, "bench/pong");
    let ping = publisher(&session, "bench/ping".to_owned(), true);
    wait_for_subscriber(&ping);
    // Until the other side knows the subscriber for the answers.
    while pongs
        .recv_timeout(std::time::Duration::from_millis(10))
        .is_err()
    {
        ping.put(vec![0; 8]).wait().unwrap();
    }
    while pongs
        .recv_timeout(std::time::Duration::from_millis(50))
        .is_ok()
    {}
    let mut calls = Calls::of(millis);
    loop {
        let begun = Instant::now();
        ping.put(vec![0; 8]).wait().unwrap();
        pongs.recv().unwrap();
        if !calls.note(begun) {
            break;
        }
    }
    calls.print();
}

pub fn flood(port: u16, pairs: usize, messages: u64) {
    let session = open(None, Some(port));
    let done = answers(&session, "bench/done");
    let publishers: Vec<_> = (0..pairs)
        .map(|pair| publisher(&session, format!("bench/flood/{pair}"), false))
        .collect();
    publishers.iter().for_each(wait_for_subscriber);
    std::thread::sleep(std::time::Duration::from_millis(200));
    publishers[0]
        .put(messages.to_le_bytes().to_vec())
        .wait()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let begun = Instant::now();
    for message in 0..messages {
        let publisher = &publishers[message as usize % pairs];
        publisher.put(vec![7; BYTES]).wait().unwrap();
    }
    done.recv().unwrap();
    print_rate(messages, begun);
}
