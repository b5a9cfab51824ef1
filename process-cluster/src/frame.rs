//! Frames: what goes from node to node.
//!
//! | bytes | part |
//! |---|---|
//! | 1 | the version of this format |
//! | 8, 4 | the sender's incarnation, and its session with the receiver |
//! | 4 | a hash of the receiver's incarnation and session, or 0 in a hello |
//! | 1 | the kind |
//!
//! Frames of the kinds HELLO, ALIVE and BYE stand outside of the order. All others have a sequence
//! number of 8 bytes next: a gap ends the session.
use crate::{decode_error::DecodeError, identity::Incarnation};

/// The version of the format.
pub(crate) const VERSION: u8 = 1;

/// The bytes in front of a frame that has a sequence number.
pub(crate) const ORDERED: usize = 1 + 8 + 4 + 4 + 1 + 8;

pub(crate) const HELLO: u8 = 0;
pub(crate) const ALIVE: u8 = 1;
pub(crate) const BYE: u8 = 2;
pub(crate) const MESSAGE: u8 = 3;
pub(crate) const SIGNAL: u8 = 4;
pub(crate) const ANSWER: u8 = 5;
pub(crate) const NAME: u8 = 6;
pub(crate) const PUBLISH: u8 = 7;
pub(crate) const SPAWN: u8 = 8;
pub(crate) const LEAVING: u8 = 9;

/// The part in front of each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) incarnation: Incarnation,
    pub(crate) session: u32,
    /// The [`address`] of the receiver.
    pub(crate) to: u32,
    pub(crate) kind: u8,
}

/// Returns a hash of an incarnation and its session. Two that the same nodes have one after the
/// other differ but once in 2^32.
pub(crate) fn address(incarnation: Incarnation, session: u32) -> u32 {
    let mixed = (incarnation.0 ^ u64::from(session) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32 ^ session
}

impl Header {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.incarnation.0.to_le_bytes());
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.to.to_le_bytes());
        out.push(self.kind);
    }

    /// Reads a header. Returns the rest of the frame, too.
    pub(crate) fn read(frame: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let (version, rest) = frame.split_first().ok_or(DecodeError::Short)?;
        if *version != VERSION {
            return Err(DecodeError::Invalid);
        }
        let (incarnation, rest) = rest.split_first_chunk().ok_or(DecodeError::Short)?;
        let (session, rest) = rest.split_first_chunk().ok_or(DecodeError::Short)?;
        let (to, rest) = rest.split_first_chunk().ok_or(DecodeError::Short)?;
        let (kind, rest) = rest.split_first().ok_or(DecodeError::Short)?;
        let header = Self {
            incarnation: Incarnation(u64::from_le_bytes(*incarnation)),
            session: u32::from_le_bytes(*session),
            to: u32::from_le_bytes(*to),
            kind: *kind,
        };
        Ok((header, rest))
    }
}

/// The words of a node about itself when a session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) name: String,
    /// The incarnation and session of the receiver from which the sender has had a hello.
    pub(crate) heard: Option<(Incarnation, u32)>,
    /// How many messages the sender takes before it acknowledges them.
    pub(crate) window: u32,
    /// The most bytes of a frame that the sender takes.
    pub(crate) limit: u32,
    /// The names of the sender's codecs, in the order of its tags.
    pub(crate) codecs: Vec<String>,
}

impl Hello {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let text = |out: &mut Vec<u8>, text: &str| {
            let bytes = text.as_bytes();
            // Names are short: the builder sees to it.
            out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        text(out, &self.name);
        let (incarnation, session) = self.heard.unwrap_or((Incarnation(0), 0));
        out.push(self.heard.is_some().into());
        out.extend_from_slice(&incarnation.0.to_le_bytes());
        out.extend_from_slice(&session.to_le_bytes());
        out.extend_from_slice(&self.window.to_le_bytes());
        out.extend_from_slice(&self.limit.to_le_bytes());
        out.extend_from_slice(&(self.codecs.len() as u16).to_le_bytes());
        self.codecs.iter().for_each(|name| text(out, name));
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a str, DecodeError> {
            let length = u16::from_le_bytes(*chunk(rest)?);
            let (bytes, left) = rest
                .split_at_checked(length.into())
                .ok_or(DecodeError::Short)?;
            *rest = left;
            std::str::from_utf8(bytes).map_err(|_| DecodeError::Invalid)
        }
        fn chunk<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], DecodeError> {
            let (chunk, left) = rest.split_first_chunk().ok_or(DecodeError::Short)?;
            *rest = left;
            Ok(chunk)
        }
        let mut rest = bytes;
        let name = text(&mut rest)?.to_owned();
        let [has_heard] = *chunk(&mut rest)?;
        let incarnation = Incarnation(u64::from_le_bytes(*chunk(&mut rest)?));
        let session = u32::from_le_bytes(*chunk(&mut rest)?);
        let window = u32::from_le_bytes(*chunk(&mut rest)?);
        let limit = u32::from_le_bytes(*chunk(&mut rest)?);
        let codecs = u16::from_le_bytes(*chunk(&mut rest)?);
        let mut names = Vec::new();
        for _ in 0..codecs {
            names.push(text(&mut rest)?.to_owned());
        }
        if !rest.is_empty() {
            return Err(DecodeError::Long);
        }
        Ok(Self {
            name,
            heard: (has_heard != 0).then_some((incarnation, session)),
            window,
            limit,
            codecs: names,
        })
    }
}
