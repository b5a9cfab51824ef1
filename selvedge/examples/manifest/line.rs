//! One line of a manifest, as GNU `sha256sum` writes it.
use std::io::{self, Write};

/// Formats a line: digest, two spaces, path.
///
/// A path with a backslash, a newline or a carriage return is escaped, and the line then begins
/// with a backslash. All other bytes stay as they are.
pub fn write(out: &mut impl Write, path: &[u8], digest: &[u8]) -> io::Result<()> {
    let escape = path
        .iter()
        .any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'));
    if escape {
        out.write_all(b"\\")?;
    }
    for byte in digest {
        write!(out, "{byte:02x}")?;
    }
    out.write_all(b"  ")?;
    for byte in path {
        match byte {
            b'\\' if escape => out.write_all(b"\\\\")?,
            b'\n' => out.write_all(b"\\n")?,
            b'\r' => out.write_all(b"\\r")?,
            byte => out.write_all(&[*byte])?,
        }
    }
    out.write_all(b"\n")
}
