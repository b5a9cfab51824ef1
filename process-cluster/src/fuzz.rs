//! Frames that are mutated at random, for the decoders and for a session.
//!
//! A run is a number of inputs from a seed. cargo-fuzz would need a nightly compiler and a build of
//! its own; a run here has the same checks, without its guidance by coverage, and repeats anywhere:
//!
//! ```sh
//! cargo test --release -p process-cluster --lib -- --ignored ten_million
//! ```
use crate::{
    behaviours::Outcome,
    codec::Codecs,
    frame::{self, ALIVE, BYE, HELLO, Header, Hello},
    identity::{Identities, Incarnation},
    session::{Session, Taken},
    signals,
    wire::{Answer, AnswerTo, Answers, Decoder, Encoder, Message},
};
use process_scheduler::{CancelReason, ExitReason, Pid, Reply, Signal};
use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

const OWN: Incarnation = Incarnation(100);
const OTHER: Incarnation = Incarnation(200);

/// No place for answers.
struct Nowhere;

impl Answers for Nowhere {
    fn answer(&self, _: &AnswerTo, _: u8, _: Answer) {}

    fn unanswered(&self) -> &Mutex<usize> {
        static NONE: Mutex<usize> = Mutex::new(0);
        &NONE
    }
}

/// A message that has each kind of value.
struct Everything(u8, Vec<u8>, String, Option<u64>, Pid, Reply<String>);

impl Message for Everything {
    fn encode(self, out: &mut Encoder<'_>) {
        out.u8(self.0);
        self.1.encode(out);
        self.2.encode(out);
        self.3.encode(out);
        out.pid(self.4);
        out.reply(self.5);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, crate::DecodeError> {
        Ok(Self(
            input.u8()?,
            Vec::decode(input)?,
            String::decode(input)?,
            Option::decode(input)?,
            input.pid()?,
            input.reply()?,
        ))
    }
}

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

fn hello() -> Hello {
    Hello {
        name: "other".to_owned(),
        heard: Some((OWN, 1)),
        window: 8,
        limit: 4_096,
        codecs: vec!["account/1".to_owned(), "order/2".to_owned()],
    }
}

/// Returns a side that is up with the other node.
fn session() -> Session {
    let mut session = Session::new(OWN, 1, 8);
    let header = Header {
        incarnation: OTHER,
        session: 1,
        to: 0,
        kind: HELLO,
    };
    session.take_hello(header, hello(), Duration::ZERO, &mut Vec::new());
    assert!(session.is_up());
    session
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

/// Feeds an input to all decoders. They may refuse it, and nothing else.
fn decodes(input: &[u8], identities: &Arc<Identities>, codecs: &Codecs) {
    let way: Weak<Nowhere> = Weak::new();
    let decoder = || {
        let answer_to = AnswerTo {
            way: way.clone(),
            session: 1,
            sequence: 1,
        };
        Decoder::new(input, answer_to, identities)
    };
    let message = codecs.decode(0, &mut decoder());
    if let Ok(message) = message {
        let Everything(_, bytes, text, ..) = &*message.downcast::<Everything>().unwrap();
        assert!(bytes.len() + text.len() <= input.len());
    }
    assert!(codecs.decode(1, &mut decoder()).is_err());
    let _ = signals::read(&mut decoder());
    if let Ok(Outcome::Refused(why)) = Outcome::decode(&mut decoder()) {
        assert!(why.len() <= input.len());
    }
    if let Ok(hello) = Hello::read(input) {
        let names: usize = hello.codecs.iter().map(|name| 2 + name.len()).sum();
        assert!(names + hello.name.len() <= input.len());
        let mut again = Vec::new();
        hello.write(&mut again);
        assert_eq!(Hello::read(&again), Ok(hello));
    }
}

fn run(inputs: u64) {
    let identities = Arc::new(Identities::new(OWN, 0));
    let mut codecs = Codecs::default();
    assert!(codecs.add::<Everything>("everything/1"));
    let bodies = bodies(&identities, &codecs);
    let frames = frames(&bodies);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut fed, mut ups) = (0, 0);
    while fed < inputs {
        // A session takes some inputs in a row.
        let mut session = session();
        let (mut last, mut changes) = (None, Vec::new());
        for at in 0..1 + random.below(8) {
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
            decodes(&input, &identities, &codecs);
            let Ok((header, rest)) = Header::read(&input) else {
                continue;
            };
            let now = Duration::from_millis(at as u64);
            if header.kind == HELLO {
                if let Ok(hello) = Hello::read(rest) {
                    session.take_hello(header, hello, now, &mut changes);
                }
            } else if let Ok(Taken::Frame { sequence, body, .. }) =
                session.take(header, rest, now, &mut changes)
            {
                let session = session.number();
                // In order, and once.
                let expected = match last {
                    Some((of, sequence)) if of == session => sequence + 1,
                    _ => 0,
                };
                assert_eq!(sequence, expected);
                assert!(body.len() < input.len());
                last = Some((session, sequence));
            }
            if session.is_up() {
                ups += 1;
                if session.has_room() {
                    session.message(3, b"content");
                }
                assert!(session.unacknowledged() <= 8);
                drop(session.alive());
            }
        }
    }
    assert!(ups > inputs / 4, "most sessions end at once");
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
