//! Writes JSON. It has no line breaks, so it is also the data of a server-sent event.
use std::fmt::{self, Write};

/// JSON that is being written. The caller begins and ends objects and lists; commas are written
/// where they belong.
#[derive(Default)]
pub(crate) struct Json(String);

impl Json {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Writes an object.
    pub(crate) fn object(&mut self, write: impl FnOnce(&mut Self)) {
        self.separate();
        self.0.push('{');
        write(self);
        self.0.push('}');
    }

    /// Writes the list of what `write` writes for each item.
    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.separate();
        self.0.push('[');
        items.into_iter().for_each(|item| write(self, item));
        self.0.push(']');
    }

    /// Writes the key of the value that is written next.
    pub(crate) fn key(&mut self, name: &str) -> &mut Self {
        self.text(name);
        self.0.push(':');
        self
    }

    /// Writes a string.
    pub(crate) fn text(&mut self, text: impl fmt::Display) {
        self.separate();
        self.0.push('"');
        let _ = write!(Escaped(&mut self.0), "{text}");
        self.0.push('"');
    }

    /// Writes a string, or `null`.
    pub(crate) fn text_or_null(&mut self, text: Option<impl fmt::Display>) {
        match text {
            Some(text) => self.text(text),
            None => self.raw("null"),
        }
    }

    /// Writes an integer. The script loses digits above 2^53.
    pub(crate) fn number(&mut self, number: u64) {
        self.separate();
        let _ = write!(self.0, "{number}");
    }

    pub(crate) fn boolean(&mut self, is: bool) {
        self.raw(if is { "true" } else { "false" });
    }

    /// Writes a value that is JSON already.
    pub(crate) fn raw(&mut self, json: &str) {
        self.separate();
        self.0.push_str(json);
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// Writes a comma, unless this value is the first one of an object or list, or follows a key.
    fn separate(&mut self) {
        if !matches!(self.0.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push(',');
        }
    }
}

/// Escapes what is written.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '"' | '\\' => {
                    self.0.push('\\');
                    self.0.push(c);
                }
                // `<` is safe where this JSON goes. It costs nothing to be safe elsewhere.
                '\0'..='\x1f' | '\x7f' | '<' | '\u{2028}' | '\u{2029}' => {
                    write!(self.0, "\\u{:04x}", u32::from(c))?;
                }
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_json_is_parsed_to_the_same_values() {
        let hostile = "a\"b\\c\n\r\t\0</script>\u{2028}ü🦀\x7f";
        let mut json = Json::new();
        json.object(|json| {
            json.key(hostile).text(hostile);
            json.key("list").list([1, 2], Json::number);
            json.key("empty").list([(); 0], |_, ()| unreachable!());
            json.key("objects").list([true, false], |json, is| {
                json.object(|json| json.key("is").boolean(is));
            });
            json.key("brace").text("{");
            json.key("null").text_or_null(None::<&str>);
            json.key("raw").raw("[[],{}]");
        });
        let text = json.into_string();
        assert!(!text.contains(['<', '\n', '\r']), "{text}");
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            hostile: hostile,
            "list": [1, 2],
            "empty": [],
            "objects": [{ "is": true }, { "is": false }],
            "brace": "{",
            "null": null,
            "raw": [[], {}],
        });
        assert_eq!(parsed, expected);
    }
}
