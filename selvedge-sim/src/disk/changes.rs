//! The changes of a file that no sync has made durable, and what a crash leaves of them.
use super::data::Data;
use crate::choice::Dice;
use std::{collections::BTreeSet, ops::RangeInclusive};

/// The size of what a disk writes as a whole.
const SECTOR: u64 = 512;

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write {
        at: u64,
        bytes: Vec<u8>,
    },
    /// The length became another one.
    Length {
        from: u64,
        to: u64,
    },
}

/// The changes of a file, each with its number, in their order.
pub(super) type Changes = Vec<(u64, Change)>;

/// The rest of a change after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    /// These sectors of a write are left, and perhaps its length.
    Torn(BTreeSet<u64>, bool),
}

impl Change {
    pub(super) fn apply(&self, data: &mut Data) {
        match self {
            Self::Write { at, bytes } => data.write(*at, bytes),
            Self::Length { to, .. } => data.set_len(*to),
        }
    }

    /// Returns the sectors of a write. A write has a byte at least.
    fn sectors(&self) -> Option<RangeInclusive<u64>> {
        match self {
            Self::Write { at, bytes } => Some(at / SECTOR..=(at + bytes.len() as u64 - 1) / SECTOR),
            Self::Length { .. } => None,
        }
    }

    /// Applies a part of a write.
    fn apply_torn(&self, data: &mut Data, kept: &BTreeSet<u64>, with_length: bool) {
        let Self::Write { at, bytes } = self else {
            return;
        };
        let end = at + bytes.len() as u64;
        for sector in kept {
            let (from, to) = (
                (sector * SECTOR).max(*at),
                (sector * SECTOR + SECTOR).min(end),
            );
            data.write(from, &bytes[(from - at) as usize..(to - at) as usize]);
        }
        if with_length && end > data.len() {
            data.set_len(end);
        }
    }
}

/// Applies the changes that a crash leaves. Returns how many of them are lost, or torn.
///
/// A disk writes sectors, from the page cache. So of the changes of one sector the last ones are
/// lost, not earlier ones alone.
pub(super) fn leave(data: &mut Data, changes: &Changes, tears: bool, dice: &dyn Dice) -> u64 {
    if changes.is_empty() {
        return 0;
    }
    let count = changes.len() as u32;
    let fates = match dice.below(4) {
        0 => vec![Fate::Kept; changes.len()],
        1 => vec![Fate::Lost; changes.len()],
        2 => {
            let kept = (count - 1 - dice.below(count)) as usize;
            let mut fates = vec![Fate::Lost; changes.len()];
            fates[..kept].fill(Fate::Kept);
            let sectors = changes[kept].1.sectors().filter(|_| tears);
            if let Some(sectors) = sectors {
                fates[kept] = torn(sectors, &BTreeSet::new(), dice);
            }
            fates
        }
        _ => scatter(changes, tears, dice),
    };
    let mut lost = 0;
    for ((_, change), fate) in changes.iter().zip(fates) {
        lost += u64::from(fate != Fate::Kept);
        match fate {
            Fate::Kept => change.apply(data),
            Fate::Lost => {}
            Fate::Torn(kept, with_length) => change.apply_torn(data, &kept, with_length),
        }
    }
    lost
}

/// Chooses sectors of a write that are left, beside those that must be.
fn torn(sectors: RangeInclusive<u64>, needed: &BTreeSet<u64>, dice: &dyn Dice) -> Fate {
    let is_kept = |sector: &u64| needed.contains(sector) || dice.below(2) == 0;
    let kept = sectors.filter(is_kept).collect();
    Fate::Torn(kept, dice.below(2) == 0)
}

/// Chooses for each change, from the last one on.
fn scatter(changes: &Changes, tears: bool, dice: &dyn Dice) -> Vec<Fate> {
    let mut fates = Vec::new();
    // The sectors of which a later change is left.
    let mut needed = BTreeSet::new();
    for (_, change) in changes.iter().rev() {
        let fate = match (change, change.sectors()) {
            (Change::Length { from, to }, _) => {
                let first = from.min(to) / SECTOR;
                let must_stay = needed.range(first..).next().is_some();
                match must_stay || dice.below(2) == 0 {
                    true => Fate::Kept,
                    false => Fate::Lost,
                }
            }
            (_, None) => Fate::Kept,
            (_, Some(sectors)) => {
                let must_stay = needed.range(sectors.clone()).next().is_some();
                match dice.below(if tears { 3 } else { 2 }) {
                    0 => Fate::Kept,
                    1 if !must_stay => Fate::Lost,
                    _ if tears => torn(sectors, &needed, dice),
                    _ => Fate::Kept,
                }
            }
        };
        match (&fate, change.sectors()) {
            (Fate::Kept, Some(sectors)) => needed.extend(sectors),
            (Fate::Torn(kept, _), _) => needed.extend(kept),
            _ => {}
        }
        fates.push(fate);
    }
    fates.reverse();
    fates
}
