//! Packets: the frames of one put.
//!
//! Frames of one session begin alike: with their sender and their receiver. So the two ends of a
//! link keep a frame, the *template*, and a packet leaves out what its frames have in common with
//! it.
//!
//! | bytes | part |
//! |---|---|
//! | 1 | the kind in the lower 2 bits, and the number of the template |
//!
//! | kind | behind it |
//! |---|---|
//! | `WHOLE` | one frame, which is the template of this number from now on |
//! | `ONE` | one frame that begins as the template: how many bytes, and the rest |
//! | `MANY` | frames: how many bytes each shares with the one before it, how many follow, and these |
//!
//! The frame before the first one of `MANY` is the template. How many bytes are left out is one
//! byte. How many follow has 7 bits a byte, the lowest first, and the highest bit says that another
//! byte follows.
//!
//! 1. A sender takes a frame as a new template, with the next number, if it has none, if the frame
//!    begins otherwise, or if the template is older than `AGE`.
//! 2. A packet whose template the receiver has not is malformed: the packet with the template was
//!    lost. Its frames are lost, too, until the next template. A node says hello again and again,
//!    so it is heard in the end.
//! 3. A number comes again after 63 templates. A receiver that has lost all of these makes frames
//!    that begin as an old one: their session is an old one, too, and they are dropped.

use std::time::{Duration, Instant};

const WHOLE: u8 = 0;
const ONE: u8 = 1;
const MANY: u8 = 2;

/// Frames that have fewer bytes in common with the template are a new one.
const ALIKE: u8 = 16;

/// How long a sender keeps a template.
const AGE: Duration = Duration::from_millis(100);

/// The template of one end of a link.
#[derive(Default)]
pub(crate) struct Template {
    /// From 1 to 63, and 0 at the beginning.
    number: u8,
    frame: Vec<u8>,
    /// When the sender took it.
    since: Option<Instant>,
}

impl Template {
    /// Returns how many bytes a frame leaves out, unless it is to be a new template.
    fn left_out(&self, frame: &[u8]) -> Option<u8> {
        let is_old = self.since.is_none_or(|since| since.elapsed() > AGE);
        let shared = shared(&self.frame, frame);
        (shared >= ALIKE && !is_old).then_some(shared)
    }

    fn first(&self, kind: u8) -> u8 {
        kind | self.number << 2
    }

    /// Makes a packet of one frame.
    pub(crate) fn pack(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(2 + frame.len());
        if let Some(shared) = self.left_out(frame) {
            packet.extend_from_slice(&[self.first(ONE), shared]);
            packet.extend_from_slice(&frame[usize::from(shared)..]);
        } else {
            self.since = Some(Instant::now());
            self.number = self.number % 63 + 1;
            self.frame.clear();
            self.frame.extend_from_slice(frame);
            packet.push(self.first(WHOLE));
            packet.extend_from_slice(frame);
        }
        packet
    }

    /// Makes packets of frames: one, or two if the first is a new template.
    pub(crate) fn pack_all(&mut self, frames: &[Vec<u8>]) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let Some((first, rest)) = frames.split_first() else {
            return (None, None);
        };
        if rest.is_empty() {
            return (Some(self.pack(first)), None);
        }
        match self.left_out(first).is_some() {
            true => (None, Some(self.pack_many(frames))),
            false => (Some(self.pack(first)), Some(self.pack_many(rest))),
        }
    }

    fn pack_many(&self, frames: &[Vec<u8>]) -> Vec<u8> {
        let bytes: usize = frames.iter().map(|frame| frame.len() + 3).sum();
        let mut packet = Vec::with_capacity(1 + bytes);
        packet.push(self.first(MANY));
        let mut before = &*self.frame;
        for frame in frames {
            let shared = shared(before, frame);
            packet.push(shared);
            let rest = &frame[usize::from(shared)..];
            write_length(rest.len(), &mut packet);
            packet.extend_from_slice(rest);
            before = frame;
        }
        packet
    }

    /// Gives each frame of a packet to `take`, in their order.
    ///
    /// # Errors
    /// If the packet is none. The frames before the mistake were taken.
    pub(crate) fn unpack(
        &mut self,
        packet: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        let (first, mut rest) = packet.split_first().ok_or(Malformed)?;
        let (kind, number) = (first & 3, first >> 2);
        if kind == WHOLE {
            self.number = number;
            self.frame.clear();
            // No frame leaves out more.
            let kept = rest.len().min(u8::MAX.into());
            self.frame.extend_from_slice(&rest[..kept]);
            take(rest);
            return Ok(());
        }
        if number != self.number || number == 0 {
            return Err(Malformed);
        }
        let mut frame = self.frame.clone();
        match kind {
            ONE => {
                let (shared, bytes) = rest.split_first().ok_or(Malformed)?;
                follow(&mut frame, *shared, bytes)?;
                take(&frame);
            }
            MANY => {
                while let Some((shared, behind)) = rest.split_first() {
                    rest = behind;
                    let length = read_length(&mut rest).ok_or(Malformed)?;
                    let (bytes, behind) = rest.split_at_checked(length).ok_or(Malformed)?;
                    rest = behind;
                    follow(&mut frame, *shared, bytes)?;
                    take(&frame);
                }
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }
}

/// Makes the frame that begins as the one before it.
fn follow(frame: &mut Vec<u8>, shared: u8, bytes: &[u8]) -> Result<(), Malformed> {
    if usize::from(shared) > frame.len() {
        return Err(Malformed);
    }
    frame.truncate(shared.into());
    frame.extend_from_slice(bytes);
    Ok(())
}

/// Returns how many bytes two frames have in common at their beginnings.
fn shared(one: &[u8], other: &[u8]) -> u8 {
    let alike = one.iter().zip(other).take(usize::from(u8::MAX));
    alike.take_while(|(one, other)| one == other).count() as u8
}

fn write_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

fn read_length(packet: &mut &[u8]) -> Option<usize> {
    let mut length = 0;
    for place in 0..5 {
        let (byte, rest) = packet.split_first()?;
        *packet = rest;
        length |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}

/// A packet is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn unpack(to: &mut Template, packets: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut frames = Vec::new();
        for packet in packets {
            to.unpack(packet, |frame| frames.push(frame.to_vec()))?;
        }
        Ok(frames)
    }

    fn pack(from: &mut Template, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (one, other) = from.pack_all(frames);
        one.into_iter().chain(other).collect()
    }

    proptest! {
        #[test]
        fn frames_of_packets_are_those_they_were_made_of(
            batches in vec(vec((0..4_u8, vec(any::<u8>(), 0..300)), 0..8), 0..80),
        ) {
            let (mut from, mut to) = (Template::default(), Template::default());
            for batch in batches {
                let alike = |(same, mut frame): (u8, Vec<u8>)| {
                    frame.splice(0..0, vec![7; usize::from(same) * 100]);
                    frame
                };
                let frames: Vec<_> = batch.into_iter().map(alike).collect();
                let packets = pack(&mut from, &frames);
                prop_assert_eq!(unpack(&mut to, &packets), Ok(frames));
            }
        }

        /// Fails if bytes make the reader panic, or give a frame that is longer than they are with
        /// what may be left out.
        #[test]
        fn random_packets_give_bounded_frames(packets in vec(vec(any::<u8>(), 0..100), 0..20)) {
            let mut to = Template::default();
            let mut longest = 0;
            for packet in packets {
                let _ = to.unpack(&packet, |frame| longest = longest.max(frame.len()));
            }
            prop_assert!(longest <= 255 + 100);
        }

        /// Fails if a lost packet makes a frame that nobody has sent, before a number comes again.
        #[test]
        fn lost_packets_make_no_frames(
            frames in vec((0..3_u8, vec(any::<u8>(), 0..40)), 1..40),
            is_lost in vec(any::<bool>(), 80),
        ) {
            let (mut from, mut to) = (Template::default(), Template::default());
            let alike = |(begin, rest): (u8, Vec<u8>)| [vec![begin; 20], rest].concat();
            let frames: Vec<_> = frames.into_iter().map(alike).collect();
            for (pair, is_lost) in frames.chunks(2).zip(is_lost.chunks(2)) {
                for (packet, is_lost) in pack(&mut from, pair).iter().zip(is_lost) {
                    if !is_lost {
                        let _ = to.unpack(packet, |frame| {
                            assert!(frames.iter().any(|sent| sent == frame));
                        });
                    }
                }
            }
        }
    }

    /// Fails if a frame that is said again and again is never heard, as its template was lost.
    #[test]
    fn repeated_frame_is_heard_after_a_loss() {
        let (mut from, mut to) = (Template::default(), Template::default());
        let hello = [3; 60];
        from.pack(&hello);
        let begun = Instant::now();
        let mut heard = 0;
        while heard == 0 {
            let _ = to.unpack(&from.pack(&hello), |_| heard += 1);
            assert!(begun.elapsed() < 100 * AGE);
        }
    }

    #[test]
    fn cut_packets_are_malformed() {
        let (mut from, frames) = (Template::default(), [[1; 40], [2; 40]].map(Vec::from));
        let like = |end: &[u8]| [&[1; 30], end].concat();
        let whole = from.pack(&frames[0]);
        let many = from.pack_many(&[like(b"ab"), like(b"xyz")]);
        for end in 1..many.len() {
            let mut to = Template::default();
            to.unpack(&whole, |_| ()).unwrap();
            // A packet that ends behind its first frame, or before it, is whole.
            let is_whole = [1, 5].contains(&end);
            assert_eq!(to.unpack(&many[..end], |_| ()).is_ok(), is_whole, "{end}");
        }
        // Without the template.
        assert_eq!(Template::default().unpack(&many, |_| ()), Err(Malformed));
        assert_eq!(Template::default().unpack(&[], |_| ()), Err(Malformed));
        assert_eq!(Template::default().unpack(&[3], |_| ()), Err(Malformed));
    }

    #[test]
    fn message_leaves_out_what_its_session_repeats() {
        let mut from = Template::default();
        let frame = |sequence: u8| [&[9; 18][..], &[sequence], &[0; 17], &[7; 64]].concat();
        assert_eq!(from.pack(&frame(0)).len(), 1 + 100);
        assert_eq!(from.pack(&frame(1)).len(), 2 + 100 - 18);
        let many = from.pack_many(&[frame(2), frame(3)]);
        assert_eq!(many.len(), 1 + 2 * (2 + 100 - 18));
    }
}
