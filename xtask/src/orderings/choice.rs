#[doc(hidden)]
#[allow(warnings, clippy::all)]
pub mod __orderings {
    extern crate std;
    use self::std::{
        env,
        fs::OpenOptions,
        io::Write,
        string::String,
        sync::OnceLock,
        sync::atomic::{AtomicBool, Ordering},
    };

    pub const RELEASE: Ordering = Ordering::Release;
    static SEEN: [AtomicBool; SITES] = [const { AtomicBool::new(false) }; SITES];
    static MUTANT: OnceLock<Option<(usize, String)>> = OnceLock::new();
    static LOG: OnceLock<Option<String>> = OnceLock::new();

    /// What is to be done at this site, when it is the mutant's.
    fn mutant(site: usize) -> Option<&'static str> {
        if !SEEN[site].swap(true, Ordering::Relaxed) {
            reached(site);
        }
        let chosen = MUTANT.get_or_init(|| {
            let said = env::var("ORDERINGS_MUTANT").ok()?;
            let (site, how) = said.split_once(':')?;
            Some((site.parse().ok()?, how.into()))
        });
        match chosen {
            Some((chosen, how)) if *chosen == site => Some(how),
            _ => None,
        }
    }

    fn reached(site: usize) {
        let log = LOG.get_or_init(|| env::var("ORDERINGS_REACHED").ok());
        if let Some(log) = log {
            let mut file = OpenOptions::new().create(true).append(true).open(log).unwrap();
            writeln!(file, "{site}").unwrap();
        }
    }

    /// Whether a structural mutant is on.
    pub fn on(site: usize) -> bool {
        mutant(site).is_some()
    }

    pub fn pick(site: usize, written: Ordering) -> Ordering {
        match mutant(site) {
            Some("Relaxed") => Ordering::Relaxed,
            Some("Acquire") => Ordering::Acquire,
            Some("Release") => Ordering::Release,
            Some("AcqRel") => Ordering::AcqRel,
            _ => written,
        }
    }

    pub fn fenced(site: usize, fence: impl FnOnce(Ordering), written: Ordering) {
        if mutant(site) != Some("dropped") {
            fence(pick(site, written));
        }
    }
}
