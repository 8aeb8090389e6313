//! [`Cache`]: what a kernel remembers of the resource manager between steps.

use std::sync::{Arc, PoisonError, RwLock};

use tensorfleet_kernel::ResourceManager;
use tensorfleet_status::Result;

/// Something a kernel found or made in a resource manager, until it is removed from there.
pub(crate) struct Cache<V> {
    found: RwLock<Option<(Arc<ResourceManager>, V)>>,
}

impl<V: Clone> Cache<V> {
    /// Nothing yet.
    pub(crate) fn new() -> Cache<V> {
        Cache {
            found: RwLock::new(None),
        }
    }

    /// What was found before if it is still `live` and of this manager, else what `find` finds.
    pub(crate) fn get(
        &self,
        resources: &Arc<ResourceManager>,
        live: impl Fn(&V) -> bool,
        find: impl FnOnce() -> Result<V>,
    ) -> Result<V> {
        if let Some((of, value)) = &*self.found.read().unwrap_or_else(PoisonError::into_inner)
            && Arc::ptr_eq(of, resources)
            && live(value)
        {
            return Ok(value.clone());
        }
        let value = find()?;
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        *found = Some((resources.clone(), value.clone()));
        Ok(value)
    }
}
