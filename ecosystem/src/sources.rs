//! An error's message, with those of its sources.
use std::error::Error;

/// Returns the messages of the error and of its sources. The error of a client says little; one of
/// its sources says which step of the connection failed.
pub fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        // Some errors show the message of their source as theirs.
        let message = source.to_string();
        if !text.ends_with(&message) {
            text += &format!(": {message}");
        }
        next = source.source();
    }
    text
}
