//! [`wait_cycles`]: tasks of a dump that wait for each other.
//!
//! An edge leads from a task to one without which its wait does not end: the task that it joins, or
//! that holds the lock. A dump looks at the tasks one after another. So an edge of one may be gone
//! when the next one is asked, and a cycle that never was would be found. Therefore a dump that
//! finds a cycle asks its tasks once more. If none of them made progress meanwhile, and each still
//! waits for the same task, then all waits lasted from the end of the first round to the begin of
//! the second one. So after a second round, no cycle leads through a task that it has not asked.
//!
//! A lock knows the task that has acquired it. A guard may move to another task, and then the edge
//! leads to the wrong one. No dump can tell: the text of a cycle with a lock says so.
use super::{DumpOutcome, TaskDump};
use coop_budget::WaitsOn;
use std::{collections::HashMap, fmt};
use task_header::Id;

/// Tasks that wait for each other in a circle, by locks and joins: see [`wait_cycles`]. `Display`
/// writes a line, and one for each task.
///
/// ```
/// use selvedge_executor::{Builder, TaskState, WaitCycle, wait_cycles};
/// use task_sync::Mutex;
///
/// let runtime = Builder::new().list_tasks(true).build()?;
/// let task = runtime.spawn(async {
///     let mutex = Mutex::new(());
///     let _guard = mutex.lock().await;
///     mutex.lock().await; // It waits for itself.
/// });
/// let handle = runtime.handle();
/// while handle.tasks().unwrap()[0].state != TaskState::Waiting {
///     std::thread::yield_now();
/// }
/// let dump = runtime.block_on(handle.dump()).unwrap();
/// let cycle: &WaitCycle = &wait_cycles(&dump)[0];
/// assert_eq!(cycle.tasks, [task.id()]);
/// assert!(cycle.to_string().contains("a mutex"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitCycle {
    /// The tasks. Each one waits for the next one, and the last one for the first.
    pub tasks: Vec<Id>,
    lines: Vec<String>,
    /// Whether a wait is one for a lock.
    has_lock: bool,
}

impl fmt::Display for WaitCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines.len() {
            1 => write!(f, "a task waits for itself:")?,
            tasks => write!(f, "{tasks} tasks wait for each other:")?,
        }
        for line in &self.lines {
            write!(f, "\n  {line}")?;
        }
        if self.has_lock {
            write!(f, "\n  (unless a task has given a guard of its lock away)")?;
        }
        Ok(())
    }
}

/// Finds the tasks of a [dump](crate::Handle::dump) that wait for each other in a circle: for a
/// lock that another one holds, or for the end of another one. Each task is in one cycle at most.
///
/// The locks are those of `task-sync` that were created after the runtime was built. A lock that is
/// older, and a static one that was used before, does not know its holder until a dump has found a
/// task that waits for it, and it was then acquired again. Nor does a lock that was acquired
/// outside of the listed tasks. Of several readers the lock knows the last one, until that one
/// leaves.
///
/// The holder is the task that has acquired the lock. If the task has given the guard to another
/// task, as it may with an owned guard, then it holds the lock no more, and the circle may be none:
/// the text of a circle with a lock says so. A task that awaits several events at once may go on by
/// another one: then the text says so.
///
/// A `JoinSet` waits for a known task if one task is left in it.
///
/// Waits for messages are not followed, as nobody knows which task would send one.
///
/// ```
/// assert!(selvedge_executor::wait_cycles(&[]).is_empty());
/// ```
pub fn wait_cycles(dump: &[TaskDump]) -> Vec<WaitCycle> {
    let places: HashMap<u64, usize> = dump
        .iter()
        .enumerate()
        .map(|(place, dump)| (dump.task.id.into(), place))
        .collect();
    let waits = |place: usize| {
        let dump: &TaskDump = &dump[place];
        let may_follow = dump.is_steady && dump.outcome == DumpOutcome::Waits;
        dump.waits.iter().filter(move |_| may_follow)
    };
    let awaited = |place| {
        let tasks = waits(place).filter_map(|wait| wait.on.as_ref()?.task());
        let places = tasks.filter_map(|task| places.get(&task).copied());
        places.collect::<Vec<_>>()
    };
    let wait = |place: usize, next: usize| {
        let next = u64::from(dump[next].task.id);
        let mut waits = dump[place].waits.iter();
        waits.find(|wait| wait.on.as_ref().and_then(|on| on.task()) == Some(next))
    };
    let line = |place: usize, next: usize| {
        let TaskDump { task, waits, .. } = &dump[place];
        let wait = wait(place, next);
        let what = wait.and_then(|wait| wait.what.as_deref()).unwrap_or("it");
        let others = match waits.len() {
            1 => String::new(),
            all => format!(" (one of {all} events that it awaits)"),
        };
        format!("{} waits for {what}{others}", name(task))
    };
    let is_lock = |place: usize, next: usize| {
        let on = wait(place, next).and_then(|wait| wait.on.as_ref());
        matches!(on, Some(WaitsOn::Lock { .. }))
    };
    let cycles = find(dump.len(), awaited).into_iter().map(|cycle| {
        let nexts = cycle.iter().cycle().skip(1);
        let edges: Vec<_> = cycle.iter().zip(nexts).collect();
        WaitCycle {
            lines: edges.iter().map(|edge| line(*edge.0, *edge.1)).collect(),
            has_lock: edges.iter().any(|edge| is_lock(*edge.0, *edge.1)),
            tasks: cycle.iter().map(|&place| dump[place].task.id).collect(),
        }
    });
    cycles.collect()
}

fn name(task: &crate::TaskSnapshot) -> String {
    match &task.name {
        Some(name) => format!("task {} {name:?}", task.id),
        None => format!("task {} from {}", task.id, task.location),
    }
}

/// Finds cycles in a graph: each begins with one of the nodes, and no node is in two. A depth-first
/// search finds at least one cycle of each strongly connected component.
fn find(nodes: usize, edges: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut cycles = Vec::new();
    // Where the cycles on the path begin and end.
    let mut on_path = Vec::<(usize, usize)>::new();
    // Where a node is on the path, and `Some(None)` for a node that the search has left.
    let mut seen = vec![None; nodes];
    for root in 0..nodes {
        if seen[root].is_some() {
            continue;
        }
        seen[root] = Some(Some(0));
        let mut path = vec![(root, edges(root))];
        while let Some((node, left)) = path.last_mut() {
            let Some(next) = left.pop() else {
                seen[*node] = Some(None);
                path.pop();
                match on_path.last_mut() {
                    Some((begin, _)) if *begin == path.len() => drop(on_path.pop()),
                    Some((_, end)) => *end = path.len().min(*end + 1) - 1,
                    None => {}
                }
                continue;
            };
            match seen[next] {
                None => {
                    seen[next] = Some(Some(path.len()));
                    path.push((next, edges(next)));
                }
                Some(Some(begin)) => {
                    if on_path.last().is_none_or(|(_, end)| *end < begin) {
                        on_path.push((begin, path.len() - 1));
                        cycles.push(path[begin..].iter().map(|(node, _)| *node).collect());
                    }
                }
                Some(None) => {}
            }
        }
    }
    cycles
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::find;

    fn cycles(edges: &[&[usize]]) -> Vec<Vec<usize>> {
        let mut cycles = find(edges.len(), |node| edges[node].to_vec());
        cycles.sort_unstable();
        cycles
    }

    #[test]
    fn cycles_are_found_once_and_apart() {
        assert!(cycles(&[]).is_empty());
        assert!(cycles(&[&[1], &[2], &[]]).is_empty());
        assert_eq!(cycles(&[&[0]]), [vec![0]]);
        assert_eq!(cycles(&[&[1], &[2], &[1]]), [vec![1, 2]]);
        assert_eq!(
            cycles(&[&[1], &[0, 2], &[3], &[2]]),
            [vec![0, 1], vec![2, 3]]
        );
        // A diamond is no cycle.
        assert!(cycles(&[&[1, 2], &[3], &[3], &[]]).is_empty());
        // Two cycles that share a node: one of them.
        assert_eq!(cycles(&[&[1, 2], &[0], &[0]]).len(), 1);
        // A cycle deep in the path, and larger ones that share its nodes.
        assert_eq!(cycles(&[&[1], &[2], &[3, 1], &[2, 0]]).len(), 1);
        // Self-loops beside each other, under a node that is in no cycle.
        assert_eq!(cycles(&[&[1, 2], &[1], &[2]]), [vec![1], vec![2]]);
    }

    /// Fails if the search recurses.
    #[test]
    fn long_chain_is_one_cycle() {
        const LONG: usize = 200_000;
        let cycles = find(LONG, |node| vec![(node + 1) % LONG]);
        assert_eq!((cycles.len(), cycles[0].len()), (1, LONG));
    }

    /// Fails, by its time, if a look at such an edge costs the length of the path.
    #[test]
    fn chain_with_edges_to_its_root_is_searched_in_a_moment() {
        const LONG: usize = 200_000;
        let cycles = find(LONG, |node| match node {
            0 => vec![1],
            _ if node == LONG - 1 => vec![0, node - 1],
            _ => vec![0, node + 1],
        });
        assert_eq!(cycles.len(), 2, "the last two, and all others");
    }
}
