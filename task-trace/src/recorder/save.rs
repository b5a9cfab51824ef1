//! The files of a capture: Chrome's JSON, or a page of HTML.
use super::{Capture, chrome, page::page};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

impl Capture {
    /// Writes the events as Chrome's trace-event JSON, which Perfetto opens, too.
    ///
    /// Polls and sleeps are slices in their lanes. Wakes, spawns and notifications are arrows to
    /// the polls, or to the ends of sleeps, that they led to. All other events are instants. Times
    /// are microseconds since the start.
    ///
    /// # Errors
    /// If the writer returns an error.
    pub fn write_chrome(&self, to: &mut impl Write) -> io::Result<()> {
        chrome::write(self, to)
    }

    /// Writes the events as a page of HTML, which needs no network to show them.
    ///
    /// # Errors
    /// If the writer returns an error.
    pub fn write_html(&self, to: &mut impl Write) -> io::Result<()> {
        let mut json = Vec::new();
        self.write_chrome(&mut json)?;
        to.write_all(page(&json).as_bytes())
    }

    /// Saves the events in a file: a page of HTML if the name ends in `.html`, or else JSON.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut file = BufWriter::new(File::create(path)?);
        if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            self.write_html(&mut file)?;
        } else {
            self.write_chrome(&mut file)?;
        }
        file.flush()
    }
}
