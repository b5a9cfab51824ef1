//! The views that a program turns on by words: in `SELVEDGE_OBSERVE`, or by
//! [`Builder::observe`](crate::Builder::observe).
//!
//! | word | turns on |
//! |---|---|
//! | `list` | the list of tasks |
//! | `dump` | the list of tasks, and dumps at SIGQUIT |
//! | `record` | a flight recorder of 30 s, saved at stalls, panics and SIGQUIT |
//! | `record=FOLDER` | the same, with another folder than `selvedge-recordings` |
//! | `all` | each of them that the features of the build have |
//!
//! Words have commas between them. The variable is read when a runtime is built. A simulation and
//! the models do not read it. A setting of the builder comes before that of a word.
use crate::{Handle, observe::trace::RecorderSettings, worker::shared::Settings};
use std::path::PathBuf;

/// Whether the build has dumps at signals.
const DUMPS: bool = cfg!(all(
    unix,
    feature = "signal",
    not(any(selvedge_loom, selvedge_shuttle))
));

/// Whether the build has the recorder.
const RECORDS: bool = cfg!(all(
    feature = "recorder",
    not(any(selvedge_loom, selvedge_shuttle))
));

/// The views of a runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Views {
    list: bool,
    dump: bool,
    record: bool,
    /// The folder of the recordings, if a word has named one.
    folder: Option<PathBuf>,
}

impl Views {
    /// Adds those that the environment turns on.
    pub(crate) fn with_environment(self) -> Self {
        if cfg!(any(selvedge_sim, selvedge_loom, selvedge_shuttle)) {
            return self;
        }
        let text = std::env::var("SELVEDGE_OBSERVE").unwrap_or_default();
        let (views, others) = self.with_words(&text);
        for other in others {
            complain(&format!("knows no `{other}`"));
        }
        views
    }

    /// Adds those of the words. Returns also the words that name none.
    pub(crate) fn with_words(mut self, text: &str) -> (Self, Vec<&str>) {
        let mut others = Vec::new();
        for word in text.split(',').map(str::trim) {
            match word {
                "" => {}
                "list" => self.list = true,
                "dump" => (self.list, self.dump) = (true, true),
                "record" => self.record = true,
                "all" => {
                    self.list = true;
                    self.dump |= DUMPS;
                    self.record |= RECORDS;
                }
                _ => match word.strip_prefix("record=") {
                    None | Some("") => others.push(word),
                    Some(folder) => (self.record, self.folder) = (true, Some(folder.into())),
                },
            }
        }
        (self, others)
    }

    /// Changes the settings of a runtime that is about to be made.
    pub(crate) fn change(&self, settings: &mut Settings, recorder: &mut RecorderSettings) {
        settings.lists_tasks |= self.list;
        #[cfg(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle))))]
        if self.record {
            let keep = std::time::Duration::from_secs(30);
            recorder.keep.get_or_insert(keep);
            recorder.recordings.get_or_insert_with(|| {
                let folder = self.folder.clone();
                let folder = folder.unwrap_or_else(|| "selvedge-recordings".into());
                let recordings = crate::Recordings::new(folder);
                #[cfg(all(unix, feature = "signal"))]
                let recordings = recordings.on_signal(net_driver::signal::unix::SignalKind::quit());
                recordings
            });
        }
        let _ = recorder;
    }

    /// Begins the views that need the runtime.
    pub(crate) fn begin(&self, handle: &Handle) {
        if self.dump {
            #[cfg(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle))))]
            if let Err(error) = handle.dump_on_signal(net_driver::signal::unix::SignalKind::quit())
            {
                complain(&format!("cannot listen to SIGQUIT: {error}"));
            }
            if !DUMPS {
                complain("has `dump`, which needs Unix and the feature `signal`");
            }
        }
        if self.record && !RECORDS {
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
    use super::{DUMPS, RECORDS, Views};

    #[test]
    fn words_turn_views_on() {
        let views = |list, dump, record| Views {
            list,
            dump,
            record,
            folder: None,
        };
        let parse = |text| Views::default().with_words(text);
        assert_eq!(parse(""), (views(false, false, false), vec![]));
        assert_eq!(parse("list"), (views(true, false, false), vec![]));
        assert_eq!(parse(" dump ,"), (views(true, true, false), vec![]));
        assert_eq!(parse("all"), (views(true, DUMPS, RECORDS), vec![]));
        let unknown = vec!["lists", "1", "dump=x", "=", "record="];
        assert_eq!(
            parse("lists,record,1,dump=x,=,record="),
            (views(false, false, true), unknown)
        );
    }

    #[test]
    fn record_has_the_folder_that_a_word_names() {
        let (views, others) = Views::default().with_words("record=/tmp/a b,record");
        assert_eq!(views.folder.as_deref(), Some("/tmp/a b".as_ref()));
        assert!(views.record && !views.list && others.is_empty());
    }
}
