//! The loop of a row whose answers are large.
use super::load::{LOST, Load, Run};
use crate::message::{LARGE, MEBIBYTE};
use std::{io, time::Instant};

impl Load {
    /// Asks for large answers, one after the other. Each mebibyte counts as a request. Returns the
    /// number of those that did not come.
    pub(super) fn large(&mut self, run: &mut Run) -> io::Result<usize> {
        while run.took.is_empty() || Instant::now() < run.end {
            let mut begun = Instant::now();
            self.request(0, 0, None, begun)?;
            let mut left = LARGE;
            while left > 0 {
                let until = (left - 1) % MEBIBYTE + 1;
                let count = self.peers[0].skip(until)?;
                left -= count;
                if count == 0 {
                    if begun.elapsed() > LOST {
                        return Ok(left.div_ceil(MEBIBYTE));
                    }
                    self.wait(LOST).for_each(drop);
                } else if left.is_multiple_of(MEBIBYTE) {
                    let now = Instant::now();
                    run.took.push((now - begun).as_nanos() as u64);
                    begun = now;
                }
            }
        }
        Ok(0)
    }
}
