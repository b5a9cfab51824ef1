//! The tree of supervision, as text.
use crate::{Info, Pid};
use std::{collections::BTreeMap, fmt};

/// The live processes under their supervisors: see [`Handle::tree`](crate::Handle::tree).
#[derive(Clone, Debug)]
pub struct Tree {
    infos: Vec<Info>,
    children: BTreeMap<Option<Pid>, Vec<usize>>,
}

impl Tree {
    pub(crate) fn new(mut infos: Vec<Info>) -> Self {
        infos.sort_by_key(|info| info.pid);
        let there = |pid: Pid| infos.binary_search_by_key(&pid, |info| info.pid).is_ok();
        let mut children = BTreeMap::<_, Vec<_>>::new();
        for (i, info) in infos.iter().enumerate() {
            let parent = info.supervisor.filter(|pid| there(*pid));
            children.entry(parent).or_default().push(i);
        }
        Self { infos, children }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, of: Option<Pid>, indent: usize) -> fmt::Result {
        for &i in self.children.get(&of).into_iter().flatten() {
            let info = &self.infos[i];
            write!(f, "{:indent$}{}", "", info.pid)?;
            for name in &info.names {
                write!(f, " {name:?}")?;
            }
            write!(f, " {:?}", info.phase)?;
            if info.restarts > 0 {
                write!(f, ", restarted {} times", info.restarts)?;
            }
            writeln!(f, ", {}", short(info.kind))?;
            self.write(f, Some(info.pid), indent + 2)?;
        }
        Ok(())
    }
}

/// Returns a type's name without paths and parameters.
fn short(name: &str) -> &str {
    let end = name.find('<').unwrap_or(name.len());
    let path = &name[..end];
    path.rsplit("::").next().unwrap_or(path)
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None, 0)
    }
}
