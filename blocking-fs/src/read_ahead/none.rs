//! Systems on which no file is read ahead.
use std::{fs::File, io};

pub(crate) const MOST_IN_A_JOB: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Never {}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(Never);

pub(crate) struct Chunk(Never);

pub(crate) struct Piece(Never);

pub(crate) struct Stream(Never);

#[allow(dead_code)] // Nothing finds anything here.
pub(crate) enum Found {
    Chunk(Chunk),
    Empty,
    Stopped,
}

impl Stamp {
    pub(crate) fn of(_: &File) -> Option<Self> {
        None
    }
}

impl Chunk {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.0 {}
    }
}

impl Piece {
    pub(crate) fn read(&mut self, _: &File) -> usize {
        match self.0 {}
    }
}

pub(crate) fn is_worthwhile(_: usize, _: usize) -> bool {
    false
}

impl Stream {
    pub(crate) fn open(_: &File, _: usize, _: usize) -> Option<Self> {
        None
    }

    pub(crate) fn close(self, _: &File) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn stamp(&self) -> Stamp {
        match self.0 {}
    }

    pub(crate) fn has_bytes(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn find(&mut self, _: usize) -> Found {
        match self.0 {}
    }

    pub(crate) fn give_back(&mut self, _: Chunk, _: usize) {
        match self.0 {}
    }

    pub(crate) fn stop(&mut self) {
        match self.0 {}
    }

    pub(crate) fn is_low(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn widen(&mut self) {
        match self.0 {}
    }

    pub(crate) fn has_window(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn extend(&mut self) {
        match self.0 {}
    }

    pub(crate) fn next_piece(&mut self, _: bool) -> Option<Piece> {
        match self.0 {}
    }

    pub(crate) fn add(&mut self, _: Piece, _: usize) {
        match self.0 {}
    }
}
