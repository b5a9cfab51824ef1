//! Tests that a sample's client does not outlive the sample.
#![cfg(target_os = "linux")]
use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// Returns a process that this one has started and that has not ended.
fn child_of(process: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.find(|id| parent_of(*id) == Some(process))
}

/// Returns the parent of a process that has not ended.
fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    if field("State:")?.contains('Z') {
        return None;
    }
    field("PPid:")?.trim().parse().ok()
}

#[test]
fn client_of_a_killed_sample_ends() {
    let mut sample = Command::new(env!("CARGO_BIN_EXE_bench"));
    // This sample does not end by itself.
    sample.args("sample --rt tokio --row tcp_1 --millis 3600000 --limit 3600".split(' '));
    let mut sample = sample.stdout(Stdio::null()).spawn().unwrap();
    let client = loop {
        if let Some(client) = child_of(sample.id()) {
            break client;
        }
        thread::sleep(Duration::from_millis(5));
    };
    sample.kill().unwrap();
    sample.wait().unwrap();
    while parent_of(client).is_some() {
        thread::sleep(Duration::from_millis(5));
    }
}
