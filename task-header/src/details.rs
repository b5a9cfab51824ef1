//! What a task was given beside its future: a name, the place it was spawned at, data of the user's.
//!
//! Each is a type around the last, so that a task holds what its builder was told and not a byte more. The types
//! are the builder's alone: whoever holds a task sees a `dyn Details`.
use alloc::borrow::Cow;
use core::{any::Any, panic::Location};

/// Keeps [`Details`] to the types of this module.
pub trait Sealed {}

impl Sealed for () {}
impl<D> Sealed for Named<D> {}
impl<D> Sealed for Located<D> {}
impl<M, D> Sealed for With<M, D> {}

/// What a [`Builder`](crate::Builder) was told of a task: its own types, and no others.
pub trait Details: Sealed + 'static {
    /// The name.
    fn name(&self) -> Option<&str>;
    /// Where it was spawned.
    fn location(&self) -> Option<&'static Location<'static>>;
    /// The user's data.
    fn metadata(&self) -> Option<&dyn Any>;
}

impl Details for () {
    fn name(&self) -> Option<&str> {
        None
    }
    fn location(&self) -> Option<&'static Location<'static>> {
        None
    }
    fn metadata(&self) -> Option<&dyn Any> {
        None
    }
}

/// A name around the rest.
#[derive(Debug)]
pub struct Named<D> {
    pub(crate) name: Cow<'static, str>,
    pub(crate) rest: D,
}

impl<D: Details> Details for Named<D> {
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
    fn location(&self) -> Option<&'static Location<'static>> {
        self.rest.location()
    }
    fn metadata(&self) -> Option<&dyn Any> {
        self.rest.metadata()
    }
}

/// A place in the source around the rest.
#[derive(Debug)]
pub struct Located<D> {
    pub(crate) location: &'static Location<'static>,
    pub(crate) rest: D,
}

impl<D: Details> Details for Located<D> {
    fn name(&self) -> Option<&str> {
        self.rest.name()
    }
    fn location(&self) -> Option<&'static Location<'static>> {
        Some(self.location)
    }
    fn metadata(&self) -> Option<&dyn Any> {
        self.rest.metadata()
    }
}

/// Data of the user's around the rest.
#[derive(Debug)]
pub struct With<M, D> {
    pub(crate) metadata: M,
    pub(crate) rest: D,
}

impl<M: Any, D: Details> Details for With<M, D> {
    fn name(&self) -> Option<&str> {
        self.rest.name()
    }
    fn location(&self) -> Option<&'static Location<'static>> {
        self.rest.location()
    }
    fn metadata(&self) -> Option<&dyn Any> {
        Some(&self.metadata)
    }
}
