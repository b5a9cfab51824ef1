//! A string that grows by bytes, which need not be text until they are all there.
use std::{io, mem, str};

/// The bytes of a borrowed string, and those that a read has appended.
///
/// Meanwhile the string is empty. The drop puts its former text back, without the bytes that were
/// appended.
#[derive(Debug)]
pub(super) struct Text<'a> {
    /// `None` once the text is back in the string.
    string: Option<&'a mut String>,
    bytes: Vec<u8>,
    /// How many of the bytes were in the string at first, and are therefore text.
    start: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(string: &'a mut String) -> Self {
        let bytes = mem::take(string).into_bytes();
        Self {
            start: bytes.len(),
            string: Some(string),
            bytes,
        }
    }

    /// Returns the bytes, to append to them.
    ///
    /// # Panics
    /// If the text is back in the string, as the future that owns this has ended then.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        assert!(self.string.is_some(), "polled after it was ready");
        &mut self.bytes
    }

    /// Puts the text into the string, and returns how many bytes were appended.
    ///
    /// # Errors
    /// If the appended bytes are not UTF-8. They are dropped then.
    pub(super) fn finish(&mut self) -> io::Result<usize> {
        let appended = &self.bytes[self.start..];
        let mut result = Ok(appended.len());
        if str::from_utf8(appended).is_ok() {
            self.start = self.bytes.len();
        } else {
            // The error says where in the whole string it is.
            let error = str::from_utf8(&self.bytes).err();
            let error = error.expect("the appended bytes are not UTF-8");
            result = Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        self.put_back();
        result
    }

    /// Gives the string the bytes up to `start`, if it does not have them.
    fn put_back(&mut self) {
        let Some(string) = self.string.take() else {
            return;
        };
        let mut bytes = mem::take(&mut self.bytes);
        bytes.truncate(self.start);
        // SAFETY: the first `start` bytes were a `String`, followed by bytes that were checked to
        // be UTF-8, if any. A caller of `bytes` only appends.
        *string = unsafe { String::from_utf8_unchecked(bytes) };
    }
}

impl Drop for Text<'_> {
    fn drop(&mut self) {
        self.put_back();
    }
}
