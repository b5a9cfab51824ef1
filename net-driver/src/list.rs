//! A list whose values keep their indices until they are removed.
//!
//! A removal makes an entry free, and a later insertion uses the entry again. Each free entry has
//! the index of the next free one, so neither call searches. The removal of the last value empties
//! the list: otherwise each walk would visit all entries of the time with the most values.

/// The number of entries for which an empty list keeps memory.
const KEPT: usize = 32;

#[derive(Debug)]
pub(crate) struct List<T> {
    entries: Vec<Entry<T>>,
    /// The first free entry.
    free: Option<usize>,
    /// The number of entries that are not free.
    values: usize,
}

#[derive(Debug)]
enum Entry<T> {
    /// A free entry, with the index of the next free one.
    Free(Option<usize>),
    Value(T),
}

impl<T> List<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: None,
            values: 0,
        }
    }

    /// Adds a value. Returns its index, which is valid until [`remove`](Self::remove).
    pub(crate) fn insert(&mut self, value: T) -> usize {
        self.values += 1;
        let entry = Entry::Value(value);
        let Some(at) = self.free else {
            self.entries.push(entry);
            return self.entries.len() - 1;
        };
        let Entry::Free(next) = std::mem::replace(&mut self.entries[at], entry) else {
            unreachable!("the free entries lead to each other");
        };
        self.free = next;
        at
    }

    /// Removes the value at an index that [`insert`](Self::insert) returned.
    pub(crate) fn remove(&mut self, at: usize) -> T {
        let free = Entry::Free(self.free.replace(at));
        let Entry::Value(value) = std::mem::replace(&mut self.entries[at], free) else {
            unreachable!("a value is removed once");
        };
        self.values -= 1;
        if self.values == 0 {
            self.entries.clear();
            self.entries.shrink_to(KEPT);
            self.free = None;
        }
        value
    }

    /// Returns the value at an index that [`insert`](Self::insert) returned.
    pub(crate) fn get(&self, at: usize) -> &T {
        match &self.entries[at] {
            Entry::Value(value) => value,
            Entry::Free(_) => unreachable!("the value was removed"),
        }
    }

    /// Returns the value at an index that [`insert`](Self::insert) returned.
    pub(crate) fn get_mut(&mut self, at: usize) -> &mut T {
        match &mut self.entries[at] {
            Entry::Value(value) => value,
            Entry::Free(_) => unreachable!("the value was removed"),
        }
    }

    /// Returns all values. The walk also visits the free entries.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Value(value) => Some(value),
            Entry::Free(_) => None,
        })
    }

    /// Returns the number of values.
    #[cfg(feature = "signal")]
    pub(crate) fn values(&self) -> usize {
        self.values
    }

    /// Returns the number of entries, the free ones included.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
