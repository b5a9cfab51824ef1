//! Mistakes of programs. Each is behind a flag in a scenario of several hosts, and `--mistake NAME`
//! sets the flag: the scenario must fail with some seed then, and with none otherwise.
use std::sync::OnceLock;

static PLANTED: OnceLock<String> = OnceLock::new();

/// Each mistake, with the scenario that has it.
pub const ALL: &[(&str, &str)] = &[
    ("answer before the write", "requests"),
    ("retry has a new number", "requests"),
    ("part of a stream is taken for the whole", "transfers"),
    ("leases are forgotten at a restart", "leases"),
    ("answer to an earlier question is taken", "datagrams"),
    ("due time is one of the clock since the start", "alarms"),
    ("one read is taken for a message", "frames_of_a_stream"),
    ("datagram that comes twice counts twice", "increments"),
    ("two connections are taken to keep their order", "orders"),
    ("write does not compare the version", "updates"),
    ("lease ends at a date of the server's clock", "dated_leases"),
    ("job that fails is retried at once for ever", "jobs"),
    ("write is acknowledged before the quorum has it", "quorums"),
    ("leader reads without asking the others", "leaders"),
    ("restarted node keeps its number", "actors"),
    ("version and value are in two files", "kv_replicated"),
];

/// Returns whether this mistake is planted.
pub fn is_planted(name: &str) -> bool {
    let is_known = ALL.iter().any(|(known, _)| *known == name);
    assert!(is_known, "there is no mistake {name}");
    PLANTED.get().is_some_and(|planted| planted == name)
}

/// Plants a mistake in this process. Returns its scenario.
pub fn plant(name: String) -> Result<&'static str, String> {
    let known = ALL.iter().find(|(known, _)| *known == name);
    let (_, scenario) =
        known.ok_or(format!("there is no mistake {name}; --mistakes names them"))?;
    PLANTED.set(name).expect("one mistake is planted");
    Ok(scenario)
}
