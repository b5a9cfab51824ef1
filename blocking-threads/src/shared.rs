//! What keeps a pool alive for its threads: a count, or that it is a static.
use crate::{Job, Pool};
use std::ops::Deref;
use sync_shim::sync::Arc;

/// A reference to a pool that its threads can keep: `&Arc<Pool<J>>` or `&'static Pool<J>`.
///
/// Sealed: these are all there are.
pub trait SharedPool<J: Job>: sealed::Shared<J> {}

pub(crate) use sealed::Keep;

mod sealed {
    use super::{Deref, Job, Pool};

    /// What a thread keeps.
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
