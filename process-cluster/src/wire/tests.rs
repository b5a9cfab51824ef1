//! Tests of values that are written and read, and of bytes that nobody has written.
use super::*;
use crate::{frame, signals};
use process_scheduler::{CancelReason, ExitReason, Scheduler, Signal};
use proptest::{collection::vec, prelude::*};

fn identities() -> Arc<Identities> {
    Arc::new(Identities::new(Incarnation(77), 0))
}

/// The way of answers that nobody takes.
struct Nobody;

impl Answers for Nobody {
    fn answer(&self, _: &AnswerTo, _: u8, _: Answer) {}

    fn unanswered(&self) -> &Mutex<usize> {
        unreachable!("there is no such value")
    }
}

fn nobody() -> AnswerTo {
    AnswerTo {
        way: Weak::<Nobody>::new(),
        session: 0,
        sequence: 0,
    }
}

fn encoded(identities: &Identities, write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Encoder::new(identities);
    write(&mut out);
    out.bytes
}

proptest! {
    #[test]
    fn values_are_read_as_they_were_written(
        numbers in any::<(u8, u16, u32, u64, i64, bool)>(),
        text in ".{0,40}",
        bytes in vec(any::<u8>(), 0..40),
    ) {
        let identities = identities();
        let (a, b, c, d, e, f) = numbers;
        let written = encoded(&identities, |out| {
            out.u8(a);
            out.u16(b);
            out.u32(c);
            out.u64(d);
            out.i64(e);
            out.bool(f);
            out.f64(1.5);
            Some(text.clone()).encode(out);
            bytes.clone().encode(out);
            None::<u8>.encode(out);
        });
        let mut input = Decoder::new(&written, nobody(), &identities);
        let read = (input.u8(), input.u16(), input.u32(), input.u64(), input.i64(), input.bool());
        prop_assert_eq!(read, (Ok(a), Ok(b), Ok(c), Ok(d), Ok(e), Ok(f)));
        prop_assert_eq!(input.f64(), Ok(1.5));
        prop_assert_eq!(Option::<String>::decode(&mut input), Ok(Some(text)));
        prop_assert_eq!(Vec::<u8>::decode(&mut input), Ok(bytes));
        prop_assert_eq!(Option::<u8>::decode(&mut input), Ok(None));
        prop_assert_eq!(input.end(), Ok(()));
        for short in 0..written.len() {
            let mut input = Decoder::new(&written[..short], nobody(), &identities);
            let mut read = || {
                let numbers = (input.u8()?, input.u16()?, input.u32()?, input.u64()?);
                let others = (input.i64()?, input.bool()?, input.f64()?);
                let text = Option::<String>::decode(&mut input)?;
                let bytes = Vec::<u8>::decode(&mut input)?;
                Ok((numbers, others, text, bytes, Option::<u8>::decode(&mut input)?))
            };
            prop_assert_eq!(read(), Err(DecodeError::Short));
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..80)) {
        let identities = identities();
        let input = || Decoder::new(&bytes, nobody(), &identities);
        let _ = signals::read(&mut input());
        let _ = frame::Hello::read(&bytes);
        let _ = frame::Header::read(&bytes);
        let _ = (input().pid(), input().str(), input().bytes(), input().reply::<u64>());
        let _ = Option::<Vec<u8>>::decode(&mut input());
    }
}

/// A node on a big-endian machine understands the others.
#[test]
fn numbers_are_little_endian_on_each_machine() {
    let mut written = encoded(&identities(), |out| {
        out.u16(0x0201);
        out.u32(0x0403_0201);
        out.u64(0x0807_0605_0403_0201);
        out.i64(-2);
        out.f64(1.5);
        out.str("a");
    });
    let header = frame::Header {
        incarnation: Incarnation(0x0807_0605_0403_0201),
        session: 0x0403_0201,
        to: 0x0807_0605,
        kind: frame::LEAVING,
    };
    let mut expected = vec![1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8];
    expected.extend([0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    expected.extend([0, 0, 0, 0, 0, 0, 0xF8, 0x3F, 1, 0, 0, 0, b'a']);
    assert_eq!(written, expected);
    written.clear();
    header.write(&mut written);
    let rest = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(written[1..17], rest);
}

/// A length that is larger than what is there is no reason to allocate.
#[test]
fn huge_length_is_an_error() {
    let identities = identities();
    let bytes = [0xFF; 12];
    let mut input = Decoder::new(&bytes, nobody(), &identities);
    assert_eq!(Vec::<u8>::decode(&mut input), Err(DecodeError::Short));
    assert_eq!(
        Decoder::new(&bytes, nobody(), &identities).end(),
        Err(DecodeError::Long)
    );
}

#[test]
fn signals_are_read_as_they_were_written() {
    let identities = identities();
    let scheduler = Scheduler::builder().workers(1).build();
    let own = scheduler.spawn_fn(|(): (), _| ()).unwrap().pid();
    let far = own.with_node(identities.number_of(Incarnation(9)));
    let exit = |reason| Signal::Exit {
        pid: far,
        reason,
        linked: true,
    };
    let signals = [
        Signal::Cancel(CancelReason::Requested),
        Signal::Cancel(CancelReason::Shutdown),
        Signal::Cancel(CancelReason::Supervisor),
        Signal::Kill,
        exit(ExitReason::Normal),
        exit(ExitReason::Cancelled),
        exit(ExitReason::Killed),
        exit(ExitReason::failed("why")),
        exit(ExitReason::Panicked("why".into())),
        exit(ExitReason::NoProcess),
        exit(ExitReason::NodeDown),
        Signal::Monitor { by: own },
        Signal::Demonitor { by: far },
        Signal::Watch { target: own },
        Signal::Unwatch { target: far },
        Signal::Link { with: own },
        Signal::Unlink { with: far },
    ];
    for signal in signals {
        let written = encoded(&identities, |out| assert!(signals::write(&signal, out)));
        let mut input = Decoder::new(&written, nobody(), &identities);
        assert_eq!(signals::read(&mut input), Ok(signal));
        assert_eq!(input.end(), Ok(()));
    }
}

/// The text of a panic may be as long as its author likes.
#[test]
fn long_reason_is_shortened() {
    let identities = identities();
    let reason = ExitReason::Panicked("ä".repeat(100_000).into());
    let exit = Signal::Exit {
        pid: Pid::of_node(0),
        reason,
        linked: false,
    };
    let written = encoded(&identities, |out| assert!(signals::write(&exit, out)));
    assert!(written.len() < 1_100, "{}", written.len());
    let mut input = Decoder::new(&written, nobody(), &identities);
    assert!(signals::read(&mut input).is_ok());
}

/// Each node numbers the others by itself.
#[test]
fn pid_keeps_its_node_between_nodes() {
    let [a, b] = [1, 2].map(|own| Arc::new(Identities::new(Incarnation(own), 0)));
    b.number_of(Incarnation(50));
    let scheduler = Scheduler::builder().workers(1).build();
    let of_a = scheduler.spawn_fn(|(): (), _| ()).unwrap().pid();
    let third = of_a.with_node(a.number_of(Incarnation(3)));
    let written = encoded(&a, |out| {
        out.pid(of_a);
        out.pid(third);
        out.pid(of_a.with_node(a.number_of(Incarnation(2))));
    });
    let mut input = Decoder::new(&written, nobody(), &b);
    let read = [(); 3].map(|()| input.pid().unwrap());
    let numbers = [1, 3, 2].map(|of| b.number_of(Incarnation(of)));
    assert_eq!(read.map(Pid::node), numbers);
    assert_eq!(read[2], of_a);
    let back = encoded(&b, |out| read.iter().for_each(|pid| out.pid(*pid)));
    assert_eq!(back, written);
}
