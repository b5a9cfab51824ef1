//! The query of an address: `name=value` pairs with escapes.

/// Returns the value of the first pair with this name.
pub(crate) fn value(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), value)
    });
    let (_, value) = pairs.find(|(found, _)| found == name)?;
    Some(decode(value))
}

/// Decodes `+` and `%XX`. An escape that is malformed stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        let escaped = digit(0).zip(digit(1)).filter(|_| first == b'%');
        (rest, _) = match escaped {
            Some((high, low)) => (&after[2..], bytes.push((high * 16 + low) as u8)),
            None if first == b'+' => (after, bytes.push(b' ')),
            None => (after, bytes.push(first)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_decoded_and_found_by_name() {
        let query = "search=a%20b+c%26&sort=since&empty&search=second";
        assert_eq!(value(query, "search").unwrap(), "a b c&");
        assert_eq!(value(query, "sort").unwrap(), "since");
        assert_eq!(value(query, "empty").unwrap(), "");
        assert_eq!(value(query, "sor"), None);
        assert_eq!(value("", "a"), None);
    }

    #[test]
    fn malformed_escape_stays_as_it_is() {
        assert_eq!(value("a=%", "a").unwrap(), "%");
        assert_eq!(value("a=%4", "a").unwrap(), "%4");
        assert_eq!(value("a=%zz%41", "a").unwrap(), "%zzA");
        assert_eq!(value("a=%ff", "a").unwrap(), "\u{fffd}");
        assert_eq!(value("a=%+1", "a").unwrap(), "% 1");
        assert_eq!(value("a=ü%c3%bc", "a").unwrap(), "üü");
    }
}
