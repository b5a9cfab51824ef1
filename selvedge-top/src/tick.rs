//! The state of a runtime at one moment, as the page gets it each second.
use crate::json::Json;
use selvedge::{Snapshot, WorkerSnapshot};
use std::time::Duration;

/// Writes the counters of a runtime. Two of these let the page compute rates.
pub(crate) fn write(json: &mut Json, metrics: &Snapshot) {
    let numbers = [
        ("spawns", metrics.spawns),
        ("ends", metrics.ends),
        ("live_tasks", metrics.live_tasks),
        ("polls", metrics.polls),
        ("remote_wakes", metrics.remote_wakes),
        ("injector_depth", metrics.injector_depth),
        ("blocking_threads", metrics.blocking_threads),
        ("idle_blocking_threads", metrics.idle_blocking_threads),
        ("blocking_queue_depth", metrics.blocking_queue_depth),
        ("reported_stalls", metrics.stalls),
    ];
    for (name, number) in numbers {
        json.key(name).number(number);
    }
    json.key("workers")
        .list(&metrics.per_worker, |json, worker| {
            json.object(|json| write_worker(json, worker));
        });
    #[cfg(feature = "groups")]
    json.key("groups").list(&metrics.groups, |json, group| {
        json.object(|json| write_group(json, group));
    });
    #[cfg(not(feature = "groups"))]
    json.key("groups").raw("[]");
}

fn write_worker(json: &mut Json, worker: &WorkerSnapshot) {
    let numbers = [
        ("polls", worker.polls),
        ("steals", worker.steals),
        ("parks", worker.parks),
        ("ended_slices", worker.ended_slices),
        ("queue", worker.ring_depth),
        ("busy_us", micros(worker.busy_time)),
    ];
    for (name, number) in numbers {
        json.key(name).number(number);
    }
}

#[cfg(feature = "groups")]
fn write_group(json: &mut Json, group: &selvedge::GroupSnapshot) {
    json.key("name").text(&group.name);
    json.key("parent").text_or_null(group.parent.as_ref());
    let numbers = [
        ("shares", group.shares.into()),
        ("tasks", group.tasks),
        ("queued", group.queued),
        ("runtime_us", micros(group.runtime)),
        ("violations", group.violations),
        ("turns", group.per_worker.iter().map(|own| own.turns).sum()),
    ];
    for (name, number) in numbers {
        json.key(name).number(number);
    }
    json.key("starving_us")
        .list(&group.per_worker, |json, own| {
            json.number(micros(own.starving));
        });
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
