//! Handles of resources that have no name, and of nothing at all.

use std::sync::Arc;

use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{HandleData, ResourceHandle, Tensor, Variant};

/// A handle that owns the resource: it lives as long as somebody has the handle.
pub(super) fn anonymous<T: Resource>(ctx: &KernelCtx<'_>, kind: &str, resource: Arc<T>) -> Tensor {
    Tensor::scalar(ResourceHandle::new(HandleData {
        device: ctx.env().device.name.clone(),
        container: ctx.env().device.default_container.clone(),
        name: format!("_AnonymousVar_{kind}{}", ctx.env().resources.unique_id()),
        type_name: resource.type_name().to_owned(),
        object: Some(resource),
        ..HandleData::default()
    }))
}

/// Sets the outputs `handle` and, if the node has it, `deleter`. The handle owns the resource, so the deleter has nothing to do.
pub(super) fn hand_out_anonymous<T: Resource>(
    ctx: &mut KernelCtx<'_>,
    kind: &str,
    resource: Arc<T>,
) {
    let handle = anonymous(ctx, kind, resource);
    ctx.set(0, handle);
    if ctx.num_outputs() > 1 {
        ctx.set(1, Tensor::scalar(Variant::Empty));
    }
}

/// A kernel that hands out a handle of nothing.
pub(super) fn build_dummy(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let handle = ResourceHandle::new(HandleData {
            device: ctx.env().device.name.clone(),
            container: ctx.env().device.default_container.clone(),
            name: "dummy_resource".to_owned(),
            ..HandleData::default()
        });
        ctx.set(0, Tensor::scalar(handle));
        Ok(())
    })
}

/// A kernel that removes what has a name and refuses what goes with its handle, as TensorFlow does.
pub(super) fn build_delete_named(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let handle = ctx.handle(0)?.clone();
        let resources = ctx.env().resources.clone();
        match resources.remove(&handle.container, &handle.name) {
            Err(_) if handle.object.is_some() => Err(internal!(
                "Cannot delete an unowned Resource {}/{}/{} from ResourceMgr. This indicates ref-counting ResourceHandle is \
                 exposed to weak ResourceHandle code paths.",
                handle.container,
                handle.name,
                handle.type_name
            )),
            result => result,
        }
    })
}

/// A kernel that removes what has a name. What is anonymous goes with its handle.
pub(super) fn build_delete(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let handle = ctx.handle(0)?.clone();
        let resources = ctx.env().resources.clone();
        match (
            resources.remove(&handle.container, &handle.name),
            &handle.object,
        ) {
            (Err(_), Some(_)) => Ok(()),
            (result, _) => result,
        }
    })
}
