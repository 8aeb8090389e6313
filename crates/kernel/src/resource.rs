//! [`ResourceManager`]: state that outlives steps and sessions, found by (container, type, name).

use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_status::{Result, already_exists, internal, not_found};
use tensorfleet_tensor::ResourceHandle;

/// Something that lives in a [`ResourceManager`]: a variable, a queue, a table.
pub trait Resource: Any + Send + Sync {
    /// TensorFlow's name for the type, for error texts and handles.
    fn type_name(&self) -> &'static str;

    /// Called when the resource leaves the manager, so that holders of it notice.
    fn on_removed(&self) {}
}

/// A resource as the manager keeps it: once as what it is, once as what it can do.
#[derive(Clone)]
struct Entry {
    object: Arc<dyn Any + Send + Sync>,
    resource: Arc<dyn Resource>,
}

type Container = FxHashMap<(TypeId, String), Entry>;

/// The resources of a device.
#[derive(Default)]
pub struct ResourceManager {
    containers: Mutex<FxHashMap<String, Container>>,
    next_id: AtomicU64,
}

impl ResourceManager {
    /// No resources.
    pub fn new() -> ResourceManager {
        ResourceManager::default()
    }

    /// Finds a resource; NOT_FOUND in TensorFlow's words if it is not there.
    pub fn lookup<T: Resource>(&self, container: &str, name: &str) -> Result<Arc<T>> {
        let containers = self.lock();
        let Some(resources) = containers.get(container) else {
            return Err(not_found!(
                "Container {container} does not exist. (Could not find resource: {container}/{name})"
            ));
        };
        match resources.get(&(TypeId::of::<T>(), name.to_owned())) {
            Some(entry) => downcast(&entry.object),
            None => Err(not_found!(
                "Resource {container}/{name}/{} does not exist.",
                std::any::type_name::<T>()
                    .rsplit("::")
                    .next()
                    .unwrap_or_default()
            )),
        }
    }

    /// Finds a resource or makes it.
    pub fn lookup_or_create<T: Resource>(
        &self,
        container: &str,
        name: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let mut containers = self.lock();
        let resources = containers.entry(container.to_owned()).or_default();
        let key = (TypeId::of::<T>(), name.to_owned());
        if let Some(entry) = resources.get(&key) {
            return downcast(&entry.object);
        }
        let made = Arc::new(make()?);
        resources.insert(
            key,
            Entry {
                object: made.clone(),
                resource: made.clone(),
            },
        );
        Ok(made)
    }

    /// Adds a resource; ALREADY_EXISTS if one of its type has this name.
    pub fn create<T: Resource>(&self, container: &str, name: &str, resource: Arc<T>) -> Result<()> {
        let mut containers = self.lock();
        let resources = containers.entry(container.to_owned()).or_default();
        let key = (TypeId::of::<T>(), name.to_owned());
        if resources.contains_key(&key) {
            return Err(already_exists!(
                "Resource {container}/{name}/{}",
                resource.type_name()
            ));
        }
        resources.insert(
            key,
            Entry {
                object: resource.clone(),
                resource,
            },
        );
        Ok(())
    }

    /// The resource a handle names: the object it carries, else the one with its container and name.
    pub fn lookup_handle<T: Resource>(&self, handle: &ResourceHandle) -> Result<Arc<T>> {
        match &handle.object {
            Some(object) => downcast(object),
            None => self.lookup(&handle.container, &handle.name),
        }
    }

    /// Removes a resource of any type with this name; NOT_FOUND if there is none.
    pub fn remove(&self, container: &str, name: &str) -> Result<()> {
        let removed: Vec<Entry> = {
            let mut containers = self.lock();
            let resources = containers.entry(container.to_owned()).or_default();
            resources
                .extract_if(|(_, key), _| key == name)
                .map(|(_, entry)| entry)
                .collect()
        };
        if removed.is_empty() {
            return Err(not_found!("Resource {container}/{name} does not exist."));
        }
        for entry in removed {
            entry.resource.on_removed();
        }
        Ok(())
    }

    /// Removes everything in a container.
    pub fn cleanup(&self, container: &str) {
        let removed = self.lock().remove(container);
        for entry in removed.into_iter().flatten() {
            entry.1.resource.on_removed();
        }
    }

    /// Removes everything.
    pub fn clear(&self) {
        let removed = std::mem::take(&mut *self.lock());
        for entry in removed.into_values().flatten() {
            entry.1.resource.on_removed();
        }
    }

    /// A number this manager gave to nobody before: for names of anonymous and private resources.
    pub fn unique_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// (container, type, name) of all resources, sorted.
    pub fn list(&self) -> Vec<(String, &'static str, String)> {
        let containers = self.lock();
        let mut all: Vec<_> = containers
            .iter()
            .flat_map(|(container, resources)| {
                resources.iter().map(|((_, name), entry)| {
                    (container.clone(), entry.resource.type_name(), name.clone())
                })
            })
            .collect();
        all.sort();
        all
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<String, Container>> {
        self.containers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn downcast<T: Resource>(object: &Arc<dyn Any + Send + Sync>) -> Result<Arc<T>> {
    Arc::clone(object).downcast::<T>().map_err(|_| {
        let wanted = std::any::type_name::<T>()
            .rsplit("::")
            .next()
            .unwrap_or_default();
        internal!("trying to access resource of the wrong type, expected {wanted}")
            .with_code(tensorfleet_status::Code::InvalidArgument)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_status::Code;

    #[derive(Debug)]
    struct Counter(u32);
    impl Resource for Counter {
        fn type_name(&self) -> &'static str {
            "Counter"
        }
    }

    #[test]
    fn resources_live_in_containers_until_cleaned_up() {
        let manager = ResourceManager::new();
        let made = manager
            .lookup_or_create("ps", "c", || Ok(Counter(7)))
            .unwrap();
        assert_eq!(manager.lookup::<Counter>("ps", "c").unwrap().0, made.0);
        assert_eq!(
            manager.create("ps", "c", made).unwrap_err().code(),
            Code::AlreadyExists
        );
        assert!(
            manager
                .lookup::<Counter>("worker", "c")
                .unwrap_err()
                .message()
                .contains("Container worker does not exist")
        );
        assert_eq!(manager.list(), vec![("ps".into(), "Counter", "c".into())]);
        manager.cleanup("ps");
        assert_eq!(
            manager.lookup::<Counter>("ps", "c").err().unwrap().code(),
            Code::NotFound
        );
    }
}
