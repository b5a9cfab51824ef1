//! Runs the tests of a crate, each in a process of its own.
use super::{
    left::{Counter, Left},
    marked,
    results::{Pass, Results},
    scratch::Built,
};
use crate::{
    cases::{self, End, Failure},
    interrupt,
};
use anyhow::{Context, Result};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::Duration,
};

/// A test to run.
#[derive(Clone)]
pub(super) struct Case<'a> {
    /// The name with the target.
    pub(super) name: String,
    pub(super) test: String,
    pub(super) program: &'a Path,
}

pub(super) struct Runner<'a> {
    pub(super) built: &'a Built,
    pub(super) counter: &'a Counter,
    pub(super) logs: PathBuf,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) limit: Duration,
    /// The results with tokio, if these tests run with the façade.
    pub(super) before: Option<&'a Results>,
}

impl Runner<'_> {
    /// Runs tests, so many at a time. Notes those that pass, and returns the others.
    pub(super) fn run<'c>(
        &self,
        mut tests: Vec<Case<'c>>,
        jobs: u8,
        results: &mut Results,
    ) -> Result<Vec<(Case<'c>, Failure)>> {
        tests.reverse();
        let (tests, failed) = (Mutex::new(tests), Mutex::new(Vec::new()));
        let passed = Mutex::new(&mut results.passed);
        let run_rest = || -> Result<()> {
            while !interrupt::came() {
                let next = tests.lock().expect("no panic").pop();
                let Some(case) = next else {
                    break;
                };
                match self.one(&case)? {
                    Ok(pass) => {
                        let mut passed = passed.lock().expect("no panic");
                        passed.insert(case.name, pass);
                    }
                    Err(failure) => failed.lock().expect("no panic").push((case, failure)),
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(run_rest)).collect();
            let mut ends = threads.into_iter().map(|thread| thread.join());
            ends.try_for_each(|end| end.expect("a thread that runs tests does not panic"))
        })?;
        Ok(failed.into_inner().expect("no panic"))
    }

    /// Runs a test. Returns how it passed, or how it failed.
    fn one(&self, case: &Case<'_>) -> Result<Result<Pass, Failure>> {
        let name = case.name.replace("::", "-").replace('/', "-");
        let file = |kind: &str| self.logs.join(format!("{name}.{kind}"));
        let (log, entered, left) = (file("txt"), file("entered"), file("left"));
        let mut env: Vec<_> = self.env.clone().into_iter().collect();
        env.push((marked::VARIABLE.into(), entered.display().to_string()));
        env.extend(self.counter.variables(&left));
        let folder = &self.built.folder;
        let failure = cases::run(folder, case.program, &case.test, &log, self.limit, &env)?;
        let fail = |end, output| {
            let test = case.test.clone();
            Ok(Err(Failure { test, end, output }))
        };
        let has_entered = entered.exists();
        if has_entered {
            fs::remove_file(entered)?;
        }
        if let Some((end, output)) = failure {
            let _ = fs::remove_file(left);
            return fail(end, output);
        }
        let pass = Pass {
            entered: has_entered,
            left: Left::take(&left).with_context(|| case.name.clone())?,
        };
        match self
            .before
            .and_then(|before| before.excess(&case.name, pass.left))
        {
            Some(excess) => fail(End::LeftMore, excess),
            None => Ok(Ok(pass)),
        }
    }
}
