//! References to a pool that its threads can keep: counted ones, and those to statics.
use crate::{Job, Pool};
use std::ops::Deref;
use sync_shim::sync::Arc;

/// A reference to a pool that the pool's threads can keep: `&Arc<Pool<J>>` or `&'static Pool<J>`.
///
/// Sealed: no other type implements it.
pub trait SharedPool<J: Job>: sealed::Shared<J> {}

pub(crate) use sealed::Keep;

mod sealed {
    use super::{Deref, Job, Pool};

    /// The reference that a thread keeps.
    pub trait Keep<J: Job>: Deref<Target = Pool<J>> + Clone + Send + 'static {}

    pub trait Shared<J: Job> {
        type Keep: Keep<J>;

        fn keep(&self) -> &Self::Keep;
    }
}

impl<J: Job> Keep<J> for Arc<Pool<J>> {}

impl<J: Job> sealed::Shared<J> for &Arc<Pool<J>> {
    type Keep = Arc<Pool<J>>;

    fn keep(&self) -> &Self::Keep {
        self
    }
}

impl<J: Job> SharedPool<J> for &Arc<Pool<J>> {}

impl<J: Job> Keep<J> for &'static Pool<J> {}

impl<J: Job> sealed::Shared<J> for &'static Pool<J> {
    type Keep = Self;

    fn keep(&self) -> &Self::Keep {
        self
    }
}

impl<J: Job> SharedPool<J> for &'static Pool<J> {}
