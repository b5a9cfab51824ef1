//! The frames of a stack that belong to the task, and not to the runtime around it.
use sched_monitor::{Frame, Stack};
use std::{path::Component, sync::Arc};

/// The functions that capture a stack: packages, each with a folder or file of its sources.
const CAPTURE: &[(&str, &str)] = &[
    ("backtrace", ""),
    ("sched-monitor", ""),
    ("coop-budget", ""),
    ("selvedge-executor", "observe/dump/request"),
];

/// The functions between the worker's loop and the task's future.
const RUN: &[(&str, &str)] = &[
    ("task-header", ""),
    ("coop-budget", ""),
    ("sync-shim", ""),
    ("selvedge-executor", "observe/dump/request"),
    ("selvedge-executor", "observe/listed_future"),
    ("selvedge-executor", "worker/"),
    ("selvedge-executor", "handle"),
    ("selvedge-executor", "local/"),
    ("task-set", "local_set"),
];

const STD: &[(&str, &str)] = &[("core", ""), ("alloc", ""), ("std", "")];

/// Looks up the functions of a stack that was captured where an operation waits. Leaves out those
/// at both ends that belong to the runtime.
pub(super) fn of_task(stack: &Stack) -> Arc<[Frame]> {
    cut(stack.resolve()).into()
}

fn cut(mut frames: Vec<Frame>) -> Vec<Frame> {
    let own = own_sources(&frames);
    let own = own.as_deref();
    let is_capture = |frame: &Frame| is_of(frame, CAPTURE, own) || is_of_std(frame);
    let begin = frames.iter().take_while(|frame| is_capture(frame)).count();
    let begin = begin.min(frames.len().saturating_sub(1));
    frames.drain(..begin);
    let is_run = |frame: &Frame| is_of(frame, RUN, own) || is_of_std(frame);
    let end = frames
        .iter()
        .rev()
        .take_while(|frame| is_run(frame))
        .count();
    // The innermost function stays, as it may be the poll of a join handle.
    frames.truncate((frames.len() - end).max(1));
    frames
}

/// Returns the folder of this crate's sources, whose name differs from the crate's in this
/// repository: the function that captures the stack is in it.
fn own_sources(frames: &[Frame]) -> Option<String> {
    let mut files = frames
        .iter()
        .filter_map(|frame| frame.file.as_deref()?.to_str());
    files.find_map(|file| Some(file.strip_suffix("observe/dump/request.rs")?.to_owned()))
}

fn is_of_std(frame: &Frame) -> bool {
    frame.function.as_deref() == Some("__rust_try") || is_of(frame, STD, None)
}

/// Returns whether a function belongs to one of these parts. Its path names the crate and the
/// module. An inlined function may have no path in its name, but then it has a file. `own` is the
/// folder of this crate's sources.
fn is_of(frame: &Frame, parts: &[(&str, &str)], own: Option<&str>) -> bool {
    let function = frame.function.as_deref().unwrap_or_default();
    let path = function.trim_start_matches(['<', '&', '*', '(']);
    let path_in_own = || frame.file.as_deref()?.to_str()?.strip_prefix(own?);
    let file = match path_in_own() {
        Some(rest) => Some(("selvedge-executor".to_owned(), rest.to_owned())),
        None => frame.file.as_deref().and_then(in_package),
    };
    parts.iter().any(|&(package, part)| {
        let is_name = path.split_once("::").is_some_and(|(name, rest)| {
            same_name(name, package) && rest.starts_with(&part.replace('/', "::"))
        });
        let is_file = |(folder, rest): &(String, String)| {
            is_folder_of(folder, package) && rest.starts_with(part)
        };
        is_name || file.as_ref().is_some_and(is_file)
    })
}

fn same_name(krate: &str, package: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || (a, b) == (b'_', b'-');
    krate.len() == package.len() && krate.bytes().zip(package.bytes()).all(same)
}

/// Splits the path of a file at its last folder `src`: the folder around that, and the rest.
fn in_package(file: &std::path::Path) -> Option<(String, String)> {
    let names: Vec<_> = file
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let src = names.iter().rposition(|name| *name == "src")?;
    let folder = *names.get(src.checked_sub(1)?)?;
    Some((folder.to_owned(), names[src + 1..].join("/")))
}

fn is_folder_of(folder: &str, package: &str) -> bool {
    let version = folder.strip_prefix(package);
    version.is_some_and(|rest| {
        rest.is_empty()
            || rest
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
