//! [`Keeper`]: how a node finds or makes the resource it hands out.
//!
//! With a `shared_name` the resource is found by (container, name) and outlives sessions. Without one it is
//! the kernel's own, under the name `_<counter>_<node name>`, and leaves the resource manager with the kernel;
//! unless `use_node_name_sharing` says that the node's name is shared.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tensorfleet_kernel::{KernelCtx, NodeInfo, RefVar, Resource, ResourceManager, Value};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use crate::state::names::{SharedName, handle_to};

/// Keeps one resource for a node.
pub(crate) struct Keeper<T> {
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
    pub(crate) fn of(node: &NodeInfo) -> Result<Keeper<T>> {
        let by_node_name = node.attrs.bool("use_node_name_sharing").unwrap_or(false);
        Ok(Keeper {
            names: SharedName::of(node)?,
            is_private: node.attrs.str("shared_name")?.is_empty() && !by_node_name,
            kept: Mutex::new(None),
        })
    }

    /// Sets output 0 to what the node hands out: a handle that carries the resource, or container and name by reference, as
    /// its output says. `make` makes the resource from its name, `verify` says whether one that was already there is what the
    /// node asks for.
    pub(crate) fn hand_out(
        &self,
        ctx: &mut KernelCtx<'_>,
        make: impl FnOnce(&str) -> Result<T>,
        verify: impl FnOnce(&T) -> Result<()>,
    ) -> Result<()> {
        let value = self.value(ctx, make, verify)?;
        ctx.set_value(0, value);
        Ok(())
    }

    /// What [`hand_out`](Self::hand_out) sets, where `make` needs the context itself.
    pub(crate) fn value(
        &self,
        ctx: &KernelCtx<'_>,
        make: impl FnOnce(&str) -> Result<T>,
        verify: impl FnOnce(&T) -> Result<()>,
    ) -> Result<Value> {
        let (container, name, resource) = self.get(ctx, make, verify)?;
        let output = ctx.node().output_types.first();
        if !output.is_some_and(|port| port.is_ref) {
            return Ok(handle_to(ctx, &container, &name, resource).into());
        }
        Ok(ref_to_names(container, name))
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
pub(crate) fn resource<T: Resource>(ctx: &KernelCtx<'_>) -> Result<Arc<T>> {
    resource_at(ctx, 0)
}

/// The same of any input.
pub(crate) fn resource_at<T: Resource>(ctx: &KernelCtx<'_>, index: usize) -> Result<Arc<T>> {
    match names_by_ref(ctx, index)? {
        Some((container, name)) => ctx.env().resources.lookup(&container, &name),
        None => ctx.resource(index),
    }
}

/// A reference to a container and a name.
pub(crate) fn ref_to_names(container: String, name: String) -> Value {
    let var = RefVar::declared(name.clone(), DType::String, Shape::vector(2));
    let names = [TString::from(container), TString::from(name)];
    *var.write() = Some(Tensor::vector(&names));
    Value::Ref(Arc::new(var))
}

/// Container and name, if the input is a reference to them.
pub(crate) fn names_by_ref(ctx: &KernelCtx<'_>, index: usize) -> Result<Option<(String, String)>> {
    let port = ctx.node().input_types.get(index);
    if !port.is_some_and(|port| port.is_ref) {
        return Ok(None);
    }
    let names = ctx.input_ref(index)?.get()?;
    let [container, name] = names.slice::<TString>()? else {
        return Err(invalid_argument!(
            "Resource handle must have 2 elements, but had shape: {}",
            names.shape()
        ));
    };
    let text = |bytes: &TString| String::from_utf8_lossy(bytes).into_owned();
    Ok(Some((text(container), text(name))))
}
