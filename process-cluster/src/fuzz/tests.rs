//! Frames that are mutated at random, and the fuzzer's inputs.
use super::*;
use crate::frame::{self, ALIVE, BYE};
use process_scheduler::{CancelReason, ExitReason, Signal};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    /// Changes bytes, cuts, repeats, lengthens or joins an input.
    fn mutate(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(input.len());
            match self.below(7) {
                0 => input.truncate(at),
                1 => input.extend_from_slice(&other[self.below(other.len())..]),
                2 => input.push(self.below(256) as u8),
                3 if !input.is_empty() => input[at] ^= 1 << self.below(8),
                // A length, or a part of one.
                4 if !input.is_empty() => input[at] = [0, 1, 0x7F, 0x80, 0xFF][self.below(5)],
                5 if input.len() >= at + 4 => {
                    let length = [0, 1, 1 << 20, u32::MAX / 2, u32::MAX][self.below(5)];
                    input[at..at + 4].copy_from_slice(&length.to_le_bytes());
                }
                _ if !input.is_empty() => input[at] = self.below(256) as u8,
                _ => {}
            }
        }
    }
}

/// Returns a valid body of each kind.
fn bodies(identities: &Identities, codecs: &Codecs) -> Vec<Vec<u8>> {
    let pid = Pid::from_bits(7 << 32 | 3).unwrap();
    let far = pid.with_node(identities.number_of(OTHER));
    let written = |write: &dyn Fn(&mut Encoder<'_>)| {
        let mut out = Encoder::new(identities);
        write(&mut out);
        out.bytes
    };
    let mut all = vec![
        written(&|out| {
            let text = "text".to_owned();
            let reply = Reply::from_fn(|_| ());
            let message = Everything(1, vec![2; 9], text, Some(3), far, reply);
            codecs.encode(0, Box::new(message), out);
        }),
        written(&|out| Outcome::Spawned(far).encode(out)),
        written(&|out| Outcome::Refused("no".to_owned()).encode(out)),
    ];
    let exit = |reason, linked| Signal::Exit {
        pid: far,
        reason,
        linked,
    };
    let signals = [
        Signal::Cancel(CancelReason::Requested),
        Signal::Kill,
        Signal::Monitor { by: far },
        Signal::Watch { target: pid },
        Signal::Link { with: far },
        exit(ExitReason::Normal, false),
        exit(ExitReason::failed("why"), true),
    ];
    for signal in signals {
        all.push(written(&|out| assert!(signals::write(&signal, out))));
    }
    all
}

/// Returns frames that the other node may send to [`session`].
fn frames(bodies: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let header = |kind| Header {
        incarnation: OTHER,
        session: 1,
        to: frame::address(OWN, 1),
        kind,
    };
    let begun = |kind| {
        let mut frame = Vec::new();
        header(kind).write(&mut frame);
        frame
    };
    let mut all = vec![begun(BYE), begun(ALIVE), begun(HELLO)];
    all[1].extend_from_slice(&[0; 16]);
    hello().write(&mut all[2]);
    for (at, body) in bodies.iter().enumerate() {
        let mut frame = begun(3 + at as u8 % 7);
        frame.extend_from_slice(&(at as u64 % 2).to_le_bytes());
        frame.extend_from_slice(body);
        all.push(frame);
    }
    all
}

fn run(inputs: u64) {
    let Fed {
        identities, codecs, ..
    } = Fed::default();
    let bodies = bodies(&identities, &codecs);
    let frames = frames(&bodies);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut fed, mut ups) = (0, 0);
    while fed < inputs {
        // A session takes some inputs in a row.
        let mut takes = Fed::default();
        for _ in 0..1 + random.below(8) {
            let corpus = if random.below(2) == 0 {
                &bodies
            } else {
                &frames
            };
            let mut input = corpus[random.below(corpus.len())].clone();
            if random.below(16) > 0 {
                let other = &frames[random.below(frames.len())];
                random.mutate(&mut input, other);
            }
            fed += 1;
            takes.feed(&input);
            ups += u64::from(takes.session.is_up());
        }
    }
    assert!(ups > inputs / 2, "most sessions end at once");
}

/// Fails if an input makes a decoder or a session panic, or yields more bytes than it has.
#[test]
fn mutated_frames_do_no_harm() {
    run(50_000);
}

#[test]
#[ignore = "it takes some seconds when it is optimised"]
fn mutated_frames_do_no_harm_ten_million() {
    run(10_000_000);
}

/// Each file holds parts, as for [`Fed::feed_parts`].
#[test]
fn inputs_of_the_fuzzer_do_no_harm() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fuzz/corpus");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        Fed::default().feed_parts(&bytes);
        files += 1;
    }
    assert!(files > 30, "the fuzzer's inputs are missing");
}
