//! The processes of `process-scheduler` beside actors of other crates and processes of Erlang:
//! `cargo run --release -p bench --example processes [ROW] [PEER] [PROCESSES]`.
//!
//! `PROCESSES` is the number of processes in `proc_spawn` and `proc_idle`. It is 100,000 by
//! default, because some peers take more than 6 GB for a million processes.
//!
//! Each sample is a fresh scheduler or runtime of two workers; the samples of the peers take turns.
//! A figure is the median of 5 samples: the nanoseconds of a hop, a round trip, a process, a
//! message or a call. The figure of `proc_idle` is the heap bytes of an idle process. Erlang takes
//! part if it is installed.
mod actix_peer;
mod erlang_peer;
mod kameo_peer;
mod ours;
mod ractor_peer;

use std::{env, time::Duration};

/// The workloads of a peer. A function returns `None` if the peer does not support its workload.
pub trait Peer {
    /// Runs `processes` processes in a ring, with `tokens` tokens, each of which makes `hops` hops.
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration>;
    /// Runs pairs, each of which makes `trips` round trips.
    fn pingpong(pairs: usize, trips: usize) -> Option<Duration>;
    /// Spawns processes that get one message and end.
    fn spawn(processes: usize) -> Option<Duration>;
    /// Runs senders, each of which sends `each` messages to one mailbox.
    fn fanin(senders: usize, each: usize) -> Option<Duration>;
    /// Makes calls, one after the other.
    fn call(calls: usize) -> Option<Duration>;
    /// As `fanin`, but the mailbox holds at most `_room` messages, and the senders await room.
    fn fanin_bounded(_senders: usize, _each: usize, _room: usize) -> Option<Duration> {
        None
    }
    /// Returns the heap bytes of all `_processes` idle processes together.
    fn idle(_processes: usize) -> Option<u64> {
        None
    }
}

/// Returns the heap bytes that are allocated now, with the allocator's overhead. Returns `None`
/// without glibc.
pub fn heap() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallinfo2` only reads the allocator's counts, under the allocator's locks.
        let info = unsafe { libc::mallinfo2() };
        Some((info.uordblks + info.hblkhd) as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

const ROUNDS: usize = 5;
const PEERS: [&str; 5] = ["process-scheduler", "ractor", "kameo", "actix", "erlang"];

fn sample<P: Peer>(row: &str, processes: usize) -> Option<f64> {
    let (time, n) = match row {
        "proc_ring_1" => (P::ring(1_000, 1, 200_000)?, 200_000),
        "proc_ring_100" => (P::ring(1_000, 100, 5_000)?, 500_000),
        "proc_pingpong" => (P::pingpong(1_000, 200)?, 200_000),
        "proc_spawn" => (P::spawn(processes)?, processes),
        "proc_fanin" => (P::fanin(100, 5_000)?, 500_000),
        "proc_fanin_bounded" => (P::fanin_bounded(100, 5_000, 64)?, 500_000),
        "proc_call" => (P::call(50_000)?, 50_000),
        "proc_idle" => return Some(P::idle(processes)? as f64 / processes as f64),
        _ => return None,
    };
    Some(time.as_nanos() as f64 / n as f64)
}

fn main() {
    let (row, peer) = (env::args().nth(1), env::args().nth(2));
    let processes = env::args().nth(3);
    let processes = processes.map_or(100_000, |n| n.parse().expect("a number of processes"));
    let rows = [
        "proc_ring_1",
        "proc_ring_100",
        "proc_pingpong",
        "proc_spawn",
        "proc_fanin",
        "proc_fanin_bounded",
        "proc_call",
        "proc_idle",
    ];
    for name in rows {
        if row.as_ref().is_some_and(|row| !name.contains(row.as_str())) {
            continue;
        }
        let mut samples = [const { Vec::new() }; PEERS.len()];
        for _ in 0..ROUNDS {
            for (i, name_of) in PEERS.iter().enumerate() {
                if peer.as_ref().is_some_and(|peer| peer != name_of) {
                    continue;
                }
                samples[i].extend(match i {
                    0 => sample::<ours::Ours>(name, processes),
                    1 => sample::<ractor_peer::Ractor>(name, processes),
                    2 => sample::<kameo_peer::Kameo>(name, processes),
                    3 => sample::<actix_peer::Actix>(name, processes),
                    _ => sample::<erlang_peer::Erlang>(name, processes),
                });
            }
        }
        print!("{name:18}");
        for (peer, samples) in PEERS.iter().zip(&mut samples) {
            samples.sort_by(f64::total_cmp);
            match samples.get(samples.len() / 2) {
                Some(median) => print!("  {peer} {median:.0}"),
                None => print!("  {peer} -"),
            }
        }
        println!();
    }
}
