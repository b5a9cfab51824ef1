//! The values that a task carries beside its future: a name, the place of its spawn, user data.
//!
//! Each value is a type that wraps the previous ones, so a task holds what its builder was given
//! and not a byte more. Only the builder sees these types: the holder of a task sees a
//! `dyn Details`.
use alloc::borrow::Cow;
use core::{any::Any, panic::Location};

/// Makes [`Details`] a trait of this module's types only.
pub trait Sealed {}

impl Sealed for () {}
impl<D> Sealed for Named<D> {}
impl<D> Sealed for Located<D> {}
impl<M, D> Sealed for With<M, D> {}

/// The values that a [`Builder`](crate::Builder) was given for a task; implemented by this crate's
/// types only.
pub trait Details: Sealed + 'static {
    /// Returns the task's name.
    fn name(&self) -> Option<&str>;
    /// Returns the place where the task was spawned.
    fn location(&self) -> Option<&'static Location<'static>>;
    /// Returns the user data.
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

/// A name, and the other details.
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

/// A place in the source, and the other details.
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

/// User data, and the other details.
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
