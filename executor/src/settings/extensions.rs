//! Values that parts put into a runtime, found by their type.
use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

/// One value of each type.
#[derive(Clone, Default)]
pub(crate) struct Extensions(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Replaces an earlier value of the type.
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.0.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// The values, to be dropped one by one.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Arc<dyn Any + Send + Sync>> + use<> {
        std::mem::take(&mut self.0).into_values()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions")
            .field("values", &self.0.len())
            .finish_non_exhaustive()
    }
}
