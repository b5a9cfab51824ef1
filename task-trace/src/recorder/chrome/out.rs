//! The text of the file: a list of events, which is written event by event.
use std::{
    fmt::{self, Display, Write as _},
    io::{self, Write},
    time::Duration,
};

/// The number of the one process in the file.
pub(super) const PROCESS: u32 = 1;

/// The file's list of events, which is written event by event.
pub(super) struct Out<'a, W> {
    to: &'a mut W,
    first: bool,
}

impl<'a, W: Write> Out<'a, W> {
    /// Begins the file, with these notes.
    pub(super) fn begin(to: &'a mut W, notes: &[(String, String)]) -> io::Result<Self> {
        to.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":{")?;
        for (number, (name, text)) in notes.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(to, "{comma}{}:{}", Text(name), Text(text))?;
        }
        to.write_all(b"},\"traceEvents\":[")?;
        Ok(Self { to, first: true })
    }

    pub(super) fn end(self) -> io::Result<()> {
        self.to.write_all(b"\n]}\n")
    }

    pub(super) fn event(&mut self, fields: impl Display) -> io::Result<()> {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.to, "{comma}\n{{{fields}}}")
    }

    pub(super) fn lane(&mut self, number: usize, name: &str, lost: u64) -> io::Result<()> {
        self.event(format_args!(
            "\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{PROCESS},\"tid\":{number},\"args\":\
             {{\"name\":{},\"lost\":{lost}}}",
            Text(name)
        ))?;
        self.event(format_args!(
            "\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{PROCESS},\"tid\":{number},\
             \"args\":{{\"sort_index\":{number}}}"
        ))
    }

    pub(super) fn slice(
        &mut self,
        category: &str,
        name: &str,
        lane: usize,
        begun: Duration,
        end: Duration,
        args: &str,
    ) -> io::Result<()> {
        self.event(format_args!(
            "\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{},\"pid\":{PROCESS},\"tid\":{lane},\
             \"ts\":{},\"dur\":{},\"args\":{{{args}}}",
            Text(name),
            Micros(begun),
            Micros(end.saturating_sub(begun))
        ))
    }

    pub(super) fn instant(
        &mut self,
        category: &str,
        name: &str,
        lane: usize,
        at: Duration,
        args: &str,
    ) -> io::Result<()> {
        self.event(format_args!(
            "\"ph\":\"i\",\"s\":\"t\",\"cat\":\"{category}\",\"name\":{},\"pid\":{PROCESS},\
             \"tid\":{lane},\"ts\":{},\"args\":{{{args}}}",
            Text(name),
            Micros(at)
        ))
    }
}

/// A time in microseconds, to the nanosecond.
pub(super) struct Micros(pub(super) Duration);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:03}", nanos / 1000, nanos % 1000)
    }
}

/// A string of JSON, with its quotes.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if c < ' ' || c == '<' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_json_and_for_a_page() {
        let text = Text("a\"b\\c\n</script>é").to_string();
        assert_eq!(text, "\"a\\\"b\\\\c\\u000a\\u003c/script>é\"");
    }

    #[test]
    fn time_is_in_microseconds_to_the_nanosecond() {
        assert_eq!(
            Micros(Duration::from_nanos(1_234_005)).to_string(),
            "1234.005"
        );
    }
}
