//! Under which container and name a node keeps its state.

use std::sync::Arc;

use tensorfleet_kernel::{KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{HandleData, ResourceHandle, Tensor};

/// The `container` and `shared_name` attributes of a node, checked as TensorFlow does.
#[derive(Clone, Debug)]
pub(crate) struct SharedName {
    container: String,
    /// The name: `shared_name`, or the node's own.
    pub(crate) name: String,
}

impl SharedName {
    /// Reads the attributes.
    pub(crate) fn of(node: &NodeInfo) -> Result<SharedName> {
        let container = node.attrs.str("container")?;
        let shared_name = node.attrs.str("shared_name")?;
        ensure!(
            is_container(container),
            invalid_argument,
            "container contains invalid characters: {container}"
        );
        ensure!(
            !shared_name.starts_with('_'),
            invalid_argument,
            "shared_name cannot start with '_':{shared_name}"
        );
        let name = if shared_name.is_empty() {
            &node.name
        } else {
            shared_name
        };
        Ok(SharedName {
            container: container.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The container: the one named, or the device's.
    pub(crate) fn container<'a>(&'a self, ctx: &'a KernelCtx<'_>) -> &'a str {
        container_or_default(&self.container, ctx)
    }
}

/// The container, or the device's if none is named.
pub(crate) fn container_or_default<'a>(container: &'a str, ctx: &'a KernelCtx<'_>) -> &'a str {
    if container.is_empty() {
        &ctx.env().device.default_container
    } else {
        container
    }
}

/// A handle that carries the resource.
pub(crate) fn handle_to<T: Resource>(
    ctx: &KernelCtx<'_>,
    container: &str,
    name: &str,
    resource: Arc<T>,
) -> Tensor {
    Tensor::scalar(ResourceHandle::new(HandleData {
        device: ctx.env().device.name.clone(),
        container: container.to_owned(),
        name: name.to_owned(),
        type_name: resource.type_name().to_owned(),
        object: Some(resource),
        ..HandleData::default()
    }))
}

/// A letter, digit or dot first, then also dashes and slashes.
fn is_container(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let mut chars = name.chars();
    chars.next().is_none_or(plain) && chars.all(|c| plain(c) || c == '-' || c == '/')
}

#[cfg(test)]
mod tests {
    use super::is_container;

    #[test]
    fn containers_are_plain_words() {
        for good in ["", "ps", "a/b-c.d", ".x", "7"] {
            assert!(is_container(good), "{good}");
        }
        for bad in ["a b", "-a", "/a", "_a", "a_b", "ä"] {
            assert!(!is_container(bad), "{bad}");
        }
    }
}
