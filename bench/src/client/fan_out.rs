//! The loop of a row in which the server sends one message to many connections.
use super::{
    dialog::Answer,
    load::{LOST, Load, Run},
};
use crate::message::{PUBLISH, SUBSCRIBE};
use std::{io, time::Instant};

impl Load {
    /// Subscribes on each connection but the first one.
    pub(super) fn subscribe(&mut self) -> io::Result<()> {
        let (new, now) = (self.subscribed..self.peers.len(), Instant::now());
        for at in new.clone() {
            self.request(at, 0, Some(SUBSCRIBE), now)?;
        }
        self.subscribed = new.end;
        match self.await_all(new.len())? {
            0 => Ok(()),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Has the server send a message to all connections, and the next one when each has it. A
    /// request's time is that until the last connection has the message.
    pub(super) fn fan_out(&mut self, run: &mut Run) -> io::Result<usize> {
        while run.took.is_empty() || Instant::now() < run.end {
            let begun = Instant::now();
            self.request(0, 0, Some(PUBLISH), begun)?;
            let lost = self.await_all(self.peers.len() - 1)?;
            if lost > 0 {
                return Ok(lost);
            }
            run.took.push(begun.elapsed().as_nanos() as u64);
        }
        Ok(0)
    }

    /// Waits for a message on each of so many connections. Returns the number of those on which
    /// none came.
    fn await_all(&mut self, mut waiting: usize) -> io::Result<usize> {
        let mut heard = Instant::now();
        while waiting > 0 {
            let mut any = false;
            for at in self.wait(LOST) {
                any = true;
                let dialog = self.spec.dialog;
                let peer = &mut self.peers[at as usize];
                let Some(bytes) = peer.receive()? else {
                    continue;
                };
                match dialog.judge(bytes, false) {
                    Answer::Partial => continue,
                    Answer::Whole(_) => {}
                    Answer::Wrong => return Err(io::Error::other("a wrong message")),
                }
                peer.clear();
                waiting -= 1;
            }
            if any {
                heard = Instant::now();
            } else if heard.elapsed() > LOST {
                break;
            }
        }
        Ok(waiting)
    }
}
