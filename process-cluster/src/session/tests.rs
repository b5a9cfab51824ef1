//! Two sessions over a network that loses, repeats and reorders frames, and restarts nodes.
use super::*;
use crate::frame::MESSAGE;
use proptest::{collection::vec, prelude::*};
use std::collections::VecDeque;

const LEASE: Duration = Duration::from_millis(100);
const WINDOW: u32 = 4;

/// A node, and the frames on their way to it.
struct Side {
    session: Session,
    coming: VecDeque<Vec<u8>>,
    /// The bodies that it has sent, and those that it has taken, in its session that is up.
    sent: Vec<Vec<u8>>,
    taken: Vec<Vec<u8>>,
    ups: usize,
    downs: usize,
}

impl Side {
    fn new(incarnation: u64) -> Self {
        Self {
            session: Session::new(Incarnation(incarnation), 1, WINDOW),
            coming: VecDeque::new(),
            sent: Vec::new(),
            taken: Vec::new(),
            ups: 0,
            downs: 0,
        }
    }

    fn hello(&self) -> Vec<u8> {
        let mut frame = self.session.header(HELLO);
        let hello = Hello {
            name: "node".to_owned(),
            heard: self.session.heard_of(),
            window: WINDOW,
            limit: 4_096,
            codecs: Vec::new(),
        };
        hello.write(&mut frame);
        frame
    }
}

/// Takes a frame of any kind.
fn take<'a>(
    session: &mut Session,
    frame: &'a [u8],
    now: Duration,
    changes: &mut Vec<Change>,
) -> Result<Taken<'a>, DecodeError> {
    let (header, rest) = Header::read(frame)?;
    if header.kind != HELLO {
        return session.take(header, rest, now, changes);
    }
    session.take_hello(header, Hello::read(rest)?, now, changes);
    Ok(Taken::Nothing)
}

struct Pair {
    sides: [Side; 2],
    now: Duration,
    incarnations: u64,
    bodies: u32,
}

#[derive(Clone, Debug)]
enum Op {
    Send(usize),
    Deliver(usize),
    Lose(usize),
    Repeat(usize),
    Swap(usize),
    Tick(usize),
    Wait(u64),
    Restart(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let side = 0..2_usize;
    prop_oneof![
        4 => side.clone().prop_map(Op::Send),
        8 => side.clone().prop_map(Op::Deliver),
        1 => side.clone().prop_map(Op::Lose),
        1 => side.clone().prop_map(Op::Repeat),
        1 => side.clone().prop_map(Op::Swap),
        2 => side.clone().prop_map(Op::Tick),
        1 => (0..80_u64).prop_map(Op::Wait),
        1 => side.prop_map(Op::Restart),
    ]
}

impl Pair {
    fn new() -> Self {
        Self {
            sides: [1, 2].map(Side::new),
            now: Duration::ZERO,
            incarnations: 2,
            bodies: 0,
        }
    }

    fn apply(&mut self, at: usize, changes: &[Change]) {
        for change in changes {
            match change {
                Change::SayHello => {
                    let hello = self.sides[at].hello();
                    self.sides[1 - at].coming.push_back(hello);
                }
                Change::Up => {
                    let side = &mut self.sides[at];
                    side.ups += 1;
                    side.sent.clear();
                    side.taken.clear();
                }
                Change::Down(_) => self.sides[at].downs += 1,
            }
        }
        let side = &self.sides[at];
        assert_eq!(side.ups - side.downs, usize::from(side.session.is_up()));
    }

    fn deliver(&mut self, at: usize) {
        let Some(frame) = self.sides[at].coming.pop_front() else {
            return;
        };
        let mut changes = Vec::new();
        let (now, side) = (self.now, &mut self.sides[at]);
        let taken = take(&mut side.session, &frame, now, &mut changes);
        let taken = taken.expect("it is a frame");
        let taken = match taken {
            Taken::Frame { body, sequence, .. } => Some((body.to_vec(), sequence)),
            Taken::Nothing => None,
        };
        self.apply(at, &changes);
        if let Some((body, sequence)) = taken {
            let side = &mut self.sides[at];
            assert_eq!(sequence, side.taken.len() as u64);
            side.taken.push(body);
        }
        if self.sides[at].session.owes_acknowledgement() {
            let alive = self.sides[at].session.alive();
            self.sides[1 - at].coming.push_back(alive);
        }
        self.check();
    }

    fn tick(&mut self, at: usize) {
        let mut changes = Vec::new();
        let since = self.now.saturating_sub(LEASE);
        self.sides[at].session.check_lease(since, &mut changes);
        self.apply(at, &changes);
        if self.sides[at].session.is_up() {
            let alive = self.sides[at].session.alive();
            self.sides[1 - at].coming.push_back(alive);
        } else if changes.is_empty() {
            self.apply(at, &[Change::SayHello]);
        }
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Send(at) => {
                let side = &mut self.sides[at];
                if side.session.has_room() {
                    self.bodies += 1;
                    let body = self.bodies.to_le_bytes().to_vec();
                    let (sequence, frame) = side.session.message(MESSAGE, &body);
                    assert_eq!(sequence, side.sent.len() as u64);
                    side.sent.push(body);
                    self.sides[1 - at].coming.push_back(frame);
                }
            }
            Op::Deliver(at) => self.deliver(at),
            Op::Lose(at) => drop(self.sides[at].coming.pop_front()),
            Op::Repeat(at) => {
                let frames = &mut self.sides[at].coming;
                frames.extend(frames.front().cloned());
            }
            Op::Swap(at) => {
                let frames = &mut self.sides[at].coming;
                if frames.len() > 1 {
                    frames.swap(0, 1);
                }
            }
            Op::Tick(at) => self.tick(at),
            Op::Wait(millis) => self.now += Duration::from_millis(millis),
            Op::Restart(at) => {
                self.incarnations += 1;
                let coming = std::mem::take(&mut self.sides[at].coming);
                self.sides[at] = Side::new(self.incarnations);
                // The frames that were on their way to the old life reach the new one.
                self.sides[at].coming = coming;
                let hello = self.sides[at].hello();
                self.sides[1 - at].coming.push_back(hello);
            }
        }
    }

    /// If each side is in a session with the present one of the other, what one has taken is what
    /// the other has sent, from the first frame on.
    fn check(&self) {
        for at in 0..2 {
            let (to, from) = (&self.sides[at], &self.sides[1 - at]);
            let present = (from.session.own, from.session.number);
            let meets = to
                .session
                .other()
                .map(|other| (other.incarnation, other.session));
            if meets == Some(present) && from.session.is_up() {
                assert!(
                    from.sent.starts_with(&to.taken),
                    "{:?}, {:?}",
                    from.sent,
                    to.taken
                );
            }
            assert!(from.session.messages.len() <= WINDOW as usize);
        }
    }
}

#[test]
fn frames_are_as_short_as_the_readme_says() {
    let mut session = Session::new(Incarnation(1), 1, WINDOW);
    assert_eq!(session.alive().len(), 34);
    session.is_up = true;
    let (_, frame) = session.frame(MESSAGE, b"content");
    assert_eq!((frame.len(), ORDERED), (26 + 7, 26));
}

proptest! {
    /// Fails if a frame of another session is taken, a gap is not seen, a frame is taken twice, or
    /// two nodes that hear each other again do not meet again.
    #[test]
    fn frames_are_taken_in_order_and_nodes_meet_again(ops in vec(op(), 0..300)) {
        let mut pair = Pair::new();
        ops.iter().for_each(|op| pair.run(op));
        // From now on the network is reliable.
        for _ in 0..40 {
            for at in 0..2 {
                pair.tick(at);
                while !pair.sides[at].coming.is_empty() {
                    pair.deliver(at);
                }
            }
            pair.now += LEASE / 4;
        }
        let [a, b] = pair.sides.each_ref().map(|side| &side.session);
        prop_assert!(a.is_up() && b.is_up());
        prop_assert_eq!(a.heard_of(), Some((b.own, b.number)));
        prop_assert_eq!(b.heard_of(), Some((a.own, a.number)));
        // Each frame that is sent now is taken.
        for at in 0..2 {
            let before = pair.sides[1 - at].taken.len();
            pair.run(&Op::Send(at));
            while !pair.sides[1 - at].coming.is_empty() {
                pair.deliver(1 - at);
            }
            prop_assert_eq!(pair.sides[1 - at].taken.len(), before + 1);
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_an_error(bytes in vec(any::<u8>(), 0..64), kind in 0..8_u8) {
        let mut session = Session::new(Incarnation(1), 1, WINDOW);
        let mut changes = Vec::new();
        let _ = take(&mut session, &bytes, Duration::ZERO, &mut changes);
        let mut frame = session.header(kind);
        frame.extend_from_slice(&bytes);
        let _ = take(&mut session, &frame, Duration::ZERO, &mut changes);
        prop_assert!(!session.is_up());
    }
}
