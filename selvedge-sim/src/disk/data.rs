//! The content of a file: pages, and a length.
use std::{collections::BTreeMap, sync::Arc};

/// The size of a page.
pub(crate) const PAGE: u64 = 4_096;

type Page = [u8; PAGE as usize];

/// The bytes of a file. A page that was never written is a hole, which reads as zeros. The pages
/// are shared with other states of the file.
///
/// The bytes of the last page beyond the length are zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    len: u64,
    pages: BTreeMap<u64, Arc<Page>>,
}

/// Returns the parts of a range, each within a page: the page's number, the first byte in it, and
/// the length.
fn parts(at: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = at + len;
    let mut next = at;
    std::iter::from_fn(move || {
        if next == end {
            return None;
        }
        let (page, from) = (next / PAGE, next % PAGE);
        let count = (PAGE - from).min(end - next);
        next += count;
        Some((page, from as usize, count as usize))
    })
}

impl Data {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the number of pages that are not holes.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns how many pages a write would add.
    pub(crate) fn missing_pages(&self, at: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let (first, last) = (at / PAGE, (at + len - 1) / PAGE);
        last - first + 1 - self.pages.range(first..=last).count() as u64
    }

    /// Reads up to `most` bytes. `to` gets them in parts.
    pub(crate) fn read(&self, at: u64, most: u64, mut to: impl FnMut(&[u8])) -> u64 {
        let len = self.len.saturating_sub(at).min(most);
        for (page, from, count) in parts(at, len) {
            match self.pages.get(&page) {
                Some(page) => to(&page[from..from + count]),
                None => to(&[0; PAGE as usize][..count]),
            }
        }
        len
    }

    pub(crate) fn write(&mut self, at: u64, mut bytes: &[u8]) {
        self.len = self.len.max(at + bytes.len() as u64);
        for (page, from, count) in parts(at, bytes.len() as u64) {
            let page = self.pages.entry(page);
            let page = page.or_insert_with(|| Arc::new([0; PAGE as usize]));
            let (now, rest) = bytes.split_at(count);
            Arc::make_mut(page)[from..from + count].copy_from_slice(now);
            bytes = rest;
        }
    }

    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pages.split_off(&len.div_ceil(PAGE));
            if let Some(last) = self.pages.get_mut(&(len / PAGE)) {
                Arc::make_mut(last)[(len % PAGE) as usize..].fill(0);
            }
        }
        self.len = len;
    }
}
