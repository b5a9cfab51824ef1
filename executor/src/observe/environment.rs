//! `SELVEDGE_OBSERVE`: the environment turns views of a runtime on, in a program that was built
//! without them.
//!
//! The variable has words with commas between them: `list`, `dump` and `record`. It is read when a
//! runtime is built. A simulation and the models do not read it.
use crate::{Handle, worker::shared::Settings};

/// The views that the environment asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Views {
    list: bool,
    dump: bool,
    record: bool,
}

impl Views {
    pub(crate) fn of_environment() -> Self {
        if cfg!(any(selvedge_sim, selvedge_loom, selvedge_shuttle)) {
            return Self::default();
        }
        let text = std::env::var("SELVEDGE_OBSERVE").unwrap_or_default();
        let (views, others) = Self::parse(&text);
        for other in others {
            complain(&format!("knows no `{other}`"));
        }
        views
    }

    /// Returns the views, and the words that name none.
    fn parse(text: &str) -> (Self, Vec<&str>) {
        let (mut views, mut others) = (Self::default(), Vec::new());
        for word in text.split(',').map(str::trim) {
            match word {
                "" => {}
                "list" => views.list = true,
                "dump" => (views.list, views.dump) = (true, true),
                "record" => views.record = true,
                other => others.push(other),
            }
        }
        (views, others)
    }

    /// Changes the settings of a runtime that is about to be made.
    pub(crate) fn change(self, settings: &mut Settings) {
        settings.lists_tasks |= self.list;
    }

    /// Begins the views that need the runtime.
    pub(crate) fn begin(self, handle: &Handle) {
        if self.dump {
            #[cfg(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle))))]
            if let Err(error) = handle.dump_on_signal(net_driver::signal::unix::SignalKind::quit())
            {
                complain(&format!("cannot listen to SIGQUIT: {error}"));
            }
            #[cfg(not(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle)))))]
            complain("has `dump`, which needs Unix and the feature `signal`");
        }
        if self.record {
            #[cfg(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle))))]
            handle.trace().start();
            #[cfg(not(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle)))))]
            complain("has `record`, which needs the feature `recorder`");
        }
        let _ = handle;
    }
}

/// Writes a line to the standard error, whose failure nobody sees.
fn complain(what: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "selvedge: SELVEDGE_OBSERVE {what}");
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::Views;

    #[test]
    fn words_of_the_environment_turn_views_on() {
        let views = |list, dump, record| Views { list, dump, record };
        assert_eq!(Views::parse(""), (views(false, false, false), vec![]));
        assert_eq!(Views::parse("list"), (views(true, false, false), vec![]));
        assert_eq!(Views::parse(" dump ,"), (views(true, true, false), vec![]));
        let unknown = vec!["lists", "1"];
        assert_eq!(
            Views::parse("lists,record,1"),
            (views(false, false, true), unknown)
        );
    }
}
