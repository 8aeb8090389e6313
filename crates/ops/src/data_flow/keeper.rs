//! [`Keeper`]: how a node finds or makes the resource it hands out.
//!
//! With a `shared_name` the resource is found by (container, name) and outlives sessions. Without one it is
//! the kernel's own, under the name `_<counter>_<node name>`, and leaves the resource manager with the kernel.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tensorfleet_kernel::{KernelCtx, NodeInfo, RefVar, Resource, ResourceManager, Value};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{Bytes, DType, Shape, Tensor};

use crate::state::names::{SharedName, handle_to};

/// Keeps one resource for a node.
pub(super) struct Keeper<T> {
    names: SharedName,
    is_private: bool,
    kept: Mutex<Option<Kept<T>>>,
}

struct Kept<T> {
    manager: Arc<ResourceManager>,
    container: String,
    name: String,
    /// The manager holds it: once it is destroyed there, the node makes another.
    resource: Weak<T>,
}

impl<T: Resource> Keeper<T> {
    /// For the `container` and `shared_name` attributes of a node.
    pub(super) fn of(node: &NodeInfo) -> Result<Keeper<T>> {
        Ok(Keeper {
            names: SharedName::of(node)?,
            is_private: node.attrs.str("shared_name")?.is_empty(),
            kept: Mutex::new(None),
        })
    }

    /// A handle that carries the resource. `make` makes it from its name, `verify` says whether one that was
    /// already there is what the node asks for.
    pub(super) fn handle(
        &self,
        ctx: &KernelCtx<'_>,
        make: impl FnOnce(&str) -> Result<T>,
        verify: impl FnOnce(&T) -> Result<()>,
    ) -> Result<Tensor> {
        let (container, name, resource) = self.get(ctx, make, verify)?;
        Ok(handle_to(ctx, &container, &name, resource))
    }

    /// As [`handle`](Self::handle) for ops that hand out names by reference: container and name.
    pub(super) fn name_ref(
        &self,
        ctx: &KernelCtx<'_>,
        make: impl FnOnce(&str) -> Result<T>,
        verify: impl FnOnce(&T) -> Result<()>,
    ) -> Result<Value> {
        let (container, name, _) = self.get(ctx, make, verify)?;
        let var = RefVar::declared(name.clone(), DType::String, Shape::vector(2));
        let names = [Bytes::from(container), Bytes::from(name)];
        *var.write() = Some(Tensor::vector(&names));
        Ok(Value::Ref(Arc::new(var)))
    }

    /// The container, the name and what is there.
    fn get(
        &self,
        ctx: &KernelCtx<'_>,
        make: impl FnOnce(&str) -> Result<T>,
        verify: impl FnOnce(&T) -> Result<()>,
    ) -> Result<(String, String, Arc<T>)> {
        let manager = &ctx.env().resources;
        let mut slot = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &*slot
            && Arc::ptr_eq(&kept.manager, manager)
            && let Some(resource) = kept.resource.upgrade()
        {
            return Ok((kept.container.clone(), kept.name.clone(), resource));
        }
        let name = if self.is_private {
            format!("_{}_{}", manager.unique_id(), self.names.name)
        } else {
            self.names.name.clone()
        };
        let container = self.names.container(ctx).to_owned();
        let resource = manager.lookup_or_create(&container, &name, || make(&name))?;
        verify(&resource)?;
        *slot = Some(Kept {
            manager: manager.clone(),
            container: container.clone(),
            name: name.clone(),
            resource: Arc::downgrade(&resource),
        });
        Ok((container, name, resource))
    }
}

impl<T> Drop for Keeper<T> {
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(kept)) = (self.is_private, kept.take()) {
            // Gone already if its container was reset.
            let _ = kept.manager.remove(&kept.container, &kept.name);
        }
    }
}

/// The resource of input 0: named by a handle, or by container and name behind a reference.
pub(super) fn resource<T: Resource>(ctx: &KernelCtx<'_>) -> Result<Arc<T>> {
    let by_ref = ctx
        .node()
        .input_types
        .first()
        .is_some_and(|port| port.is_ref);
    if !by_ref {
        return ctx.resource(0);
    }
    let names = ctx.input_ref(0)?.get()?;
    ensure!(
        names.elements() == 2,
        invalid_argument,
        "Resource handle must have 2 elements, but had shape: {}",
        names.shape()
    );
    let names = names.slice::<Bytes>()?;
    let text = |index: usize| names.get(index).map(|name| String::from_utf8_lossy(name));
    let (container, name) = (text(0).unwrap_or_default(), text(1).unwrap_or_default());
    ctx.env().resources.lookup(&container, &name)
}
