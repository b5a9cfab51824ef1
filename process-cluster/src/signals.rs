//! The encodings of signals.
use crate::{
    decode_error::DecodeError,
    wire::{Decoder, Encoder},
};
use process_scheduler::{CancelReason, ExitReason, Pid, Signal};

/// Writes a signal for a process.
pub(crate) fn write(signal: &Signal, out: &mut Encoder<'_>) -> bool {
    match signal {
        Signal::Cancel(reason) => {
            out.u8(0);
            out.u8(match reason {
                CancelReason::Shutdown => 1,
                CancelReason::Supervisor => 2,
                _ => 0,
            });
        }
        Signal::Kill => out.u8(1),
        Signal::Exit {
            pid,
            reason,
            linked,
        } => {
            out.u8(2);
            out.pid(*pid);
            out.bool(*linked);
            write_reason(reason, out);
        }
        Signal::Monitor { by } => write_with(3, *by, out),
        Signal::Demonitor { by } => write_with(4, *by, out),
        Signal::Watch { target } => write_with(5, *target, out),
        Signal::Unwatch { target } => write_with(6, *target, out),
        Signal::Link { with } => write_with(7, *with, out),
        Signal::Unlink { with } => write_with(8, *with, out),
        // One that a later version of the scheduler has.
        _ => return false,
    }
    true
}

fn write_with(kind: u8, pid: Pid, out: &mut Encoder<'_>) {
    out.u8(kind);
    out.pid(pid);
}

pub(crate) fn read(input: &mut Decoder<'_>) -> Result<Signal, DecodeError> {
    Ok(match input.u8()? {
        0 => Signal::Cancel(match input.u8()? {
            1 => CancelReason::Shutdown,
            2 => CancelReason::Supervisor,
            _ => CancelReason::Requested,
        }),
        1 => Signal::Kill,
        2 => {
            let (pid, linked) = (input.pid()?, input.bool()?);
            Signal::Exit {
                pid,
                linked,
                reason: read_reason(input)?,
            }
        }
        3 => Signal::Monitor { by: input.pid()? },
        4 => Signal::Demonitor { by: input.pid()? },
        5 => Signal::Watch {
            target: input.pid()?,
        },
        6 => Signal::Unwatch {
            target: input.pid()?,
        },
        7 => Signal::Link { with: input.pid()? },
        8 => Signal::Unlink { with: input.pid()? },
        _ => return Err(DecodeError::Invalid),
    })
}

fn write_reason(reason: &ExitReason, out: &mut Encoder<'_>) {
    match reason {
        ExitReason::Normal => out.u8(0),
        ExitReason::Cancelled => out.u8(1),
        ExitReason::Killed => out.u8(2),
        ExitReason::Failed(why) => {
            out.u8(3);
            out.str(shortened(why));
        }
        ExitReason::Panicked(why) => {
            out.u8(4);
            out.str(shortened(why));
        }
        ExitReason::NoProcess => out.u8(5),
        _ => out.u8(6),
    }
}

fn read_reason(input: &mut Decoder<'_>) -> Result<ExitReason, DecodeError> {
    Ok(match input.u8()? {
        0 => ExitReason::Normal,
        1 => ExitReason::Cancelled,
        2 => ExitReason::Killed,
        3 => ExitReason::Failed(input.str()?.into()),
        4 => ExitReason::Panicked(input.str()?.into()),
        5 => ExitReason::NoProcess,
        6 => ExitReason::NodeDown,
        _ => return Err(DecodeError::Invalid),
    })
}

/// Returns the begin of a text that may be long, such as that of a panic.
fn shortened(text: &str) -> &str {
    const MOST: usize = 1_000;
    match text.char_indices().find(|(at, _)| *at >= MOST) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}
