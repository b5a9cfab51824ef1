//! The published crates that have no models, each with the reason.
use super::stored::Models;
use crate::loom::Model;
use anyhow::{Context, Result, ensure};
use project::{source, workspace::Package};

/// The crates, and the reasons. None of the crates names an atomic.
const REASONS: &[(&str, &str)] = &[
    (
        "sched-group",
        "It has no atomics. A queue belongs to one worker, and changes only by `&mut`.",
    ),
    (
        "timer-wheel",
        "It has no atomics. A wheel changes only by `&mut`, so its user has a lock around it. The \
         models of `net-driver` arm, fire, reset and drop timers of such wheels.",
    ),
    (
        "blocking-fs",
        "It has no atomics. The state of a file is under one lock of std, and the models of \
         `blocking-threads` check the hand-over of the results.",
    ),
    (
        "child-process",
        "It has no atomics. What its threads share is under locks of std, which the checker does \
         not know. The models of `net-driver` check the wait for a descriptor.",
    ),
    (
        "process-cluster",
        "It has no atomics. Its threads share sessions and queues under locks of std, which the \
         checker does not know. Its sessions are values without threads, which random runs check, \
         and a scenario of `selvedge-sim` has whole nodes.",
    ),
    ("selvedge-macros", "It runs only in the compiler."),
    (
        "selvedge",
        "It has no atomics. It gives the items of other crates their names, and its own items have \
         no shared state.",
    ),
    (
        "selvedge-hyper",
        "It has no atomics. Its threads share the list of connections, by a lock and two `OnceLock` \
         of std, which the checker does not know. Tests on real threads cover the list.",
    ),
    (
        "selvedge-top",
        "It has no atomics. One thread serves the page, and what that thread shares with the \
         monitor and with blocking threads is under locks of std.",
    ),
    (
        "selvedge-sim",
        "It has no atomics. All threads that it simulates run on one thread of the system.",
    ),
];

/// Returns the published crates that have no models, with the reasons. Fails if a reason is
/// missing or needless, or if a crate without models has an atomic.
pub(super) fn rows(
    packages: &[Package],
    models: &Models,
    missing: &[&Model],
) -> Result<Vec<(&'static str, &'static str)>> {
    let has_models = |name: &str| {
        let mut missing = missing.iter();
        models.keys().any(|(package, _)| package == name)
            || missing.any(|model| model.package == name)
    };
    let published: Vec<_> = packages.iter().filter(|p| p.is_publishable()).collect();
    for package in &published {
        let name = &package.name;
        let has_reason = REASONS.iter().any(|(known, _)| known == name);
        ensure!(
            has_reason != has_models(name),
            "{name}: a published crate has models, or a reason in verify/src/report/without.rs"
        );
    }
    for (name, _) in REASONS {
        let package = published.iter().find(|package| package.name == *name);
        let lib = package.and_then(|package| package.lib());
        let lib = lib.with_context(|| format!("{name}: a reason for a crate that is not there"))?;
        for module in source::modules(lib, "selvedge_loom")? {
            ensure!(
                !has_atomics(&module.code),
                "{}: an atomic, in a crate without models",
                module.file.display()
            );
        }
    }
    Ok(REASONS.to_vec())
}

fn has_atomics(code: &str) -> bool {
    ["atomic", "Atomic"].iter().any(|word| code.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::workspace;

    /// Returns the published packages, and results of a model for each but those of [`REASONS`].
    fn all() -> (Vec<Package>, Models) {
        let (mut packages, _) = workspace::load().unwrap();
        packages.retain(Package::is_publishable);
        let with_models = packages.iter().map(|package| package.name.clone());
        let with_models =
            with_models.filter(|name| !REASONS.iter().any(|(known, _)| known == name));
        let models = with_models.map(|name| {
            let json = serde_json::json!({
                "crate": name, "model": "m", "executions": 2, "seconds": 0.1, "bound": null,
                "status": "ok"
            });
            ((name, "m".into()), serde_json::from_value(json).unwrap())
        });
        let models = models.collect();
        (packages, models)
    }

    #[test]
    fn crate_without_models_and_without_a_reason_is_an_error() {
        let (packages, mut models) = all();
        assert!(rows(&packages, &models, &[]).is_ok());
        let (key, outcome) = models.pop_first().unwrap();
        assert!(rows(&packages, &models, &[]).is_err(), "{}", key.0);
        models.insert(key, outcome.clone());
        models.insert(("timer-wheel".into(), "m".into()), outcome);
        let error = rows(&packages, &models, &[]).unwrap_err();
        assert!(error.to_string().contains("timer-wheel"), "{error}");
    }

    #[test]
    fn atomic_in_code_is_found() {
        assert!(has_atomics("use core::sync::atomic::fence;"));
        assert!(has_atomics("x: AtomicU8,") && !has_atomics("x: u8,"));
    }
}
