//! Where nodes go: device scopes and how they merge.

use std::sync::Arc;

use tensorfleet_kernel::{Attrs, DeviceName};
use tensorfleet_status::{Result, Status};

/// What a device function is told of a node that is about to be made.
pub struct NodeUnderPlacement<'a> {
    /// The op type.
    pub op: &'a str,
    /// The node's name.
    pub name: &'a str,
    /// The device that inner scopes decided on; empty for none.
    pub device: &'a str,
    /// The attributes given so far.
    pub attrs: &'a Attrs,
}

/// Decides on the device of each node. Any `Fn(&NodeUnderPlacement) -> String` does.
///
/// ```
/// use tensorfleet_client::{Graph, NodeUnderPlacement};
///
/// let g = Graph::new();
/// let _scope = g.device_function(|node: &NodeUnderPlacement<'_>| {
///     let job = if node.op == "VarHandleOp" { "ps" } else { "worker" };
///     format!("/job:{job}")
/// });
/// let w = g.variable("w", &[]).build();
/// assert_eq!(w.device(), "/job:ps");
/// assert_eq!((w.read() * 2.0).op().device(), "/job:worker");
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub trait DeviceFunction: Send + Sync + 'static {
    /// The whole device of the node; empty for any.
    fn device(&self, node: &NodeUnderPlacement<'_>) -> String;
}

impl<F> DeviceFunction for F
where
    F: Fn(&NodeUnderPlacement<'_>) -> String + Send + Sync + 'static,
{
    fn device(&self, node: &NodeUnderPlacement<'_>) -> String {
        self(node)
    }
}

/// One open device scope.
#[derive(Clone)]
pub(crate) enum DeviceScope {
    /// Fills in what inner scopes left open.
    Merge(DeviceName),
    /// Decides alone.
    Function(Arc<dyn DeviceFunction>),
    /// Forgets the scopes around.
    Reset,
}

impl DeviceScope {
    pub(crate) fn parse(device: &str) -> Result<DeviceScope> {
        if device.is_empty() {
            return Ok(DeviceScope::Reset);
        }
        DeviceName::parse(device).map(DeviceScope::Merge)
    }
}

/// The device of a node by the open scopes, innermost last.
pub(crate) fn decide(
    scopes: &[DeviceScope],
    node: &NodeUnderPlacement<'_>,
) -> Result<String, Status> {
    let mut device = node.device.to_owned();
    for scope in scopes.iter().rev() {
        match scope {
            DeviceScope::Reset => break,
            DeviceScope::Merge(outer) => {
                let mut merged = outer.clone();
                merged.override_with(&DeviceName::parse(&device)?);
                device = merged.to_string();
            }
            DeviceScope::Function(function) => {
                device = function.device(&NodeUnderPlacement {
                    device: &device,
                    ..*node
                });
            }
        }
    }
    Ok(device)
}
