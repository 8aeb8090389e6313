//! Which kinds of device have a kernel for a node.

use tensorfleet_graph::Node;
use tensorfleet_kernel::DeviceName;

use super::devices::DeviceSet;

/// The kinds of device that can run a node, as bits. Functions run anywhere. An op without a kernel
/// here is still good for the task it names, if that is another one: the task may know a kernel.
pub(super) fn supported(node: &Node, requested: &DeviceName, devices: &DeviceSet) -> u32 {
    if node.op.def.is_none() {
        return devices.kinds_mask();
    }
    let mut kinds = 0;
    for (bit, kind) in devices.kinds().iter().enumerate() {
        let kernel = kind
            .device_type
            .and_then(|device_type| node.op.find_kernel(&node.attrs, device_type));
        if kernel.is_some() {
            kinds |= 1 << bit;
        }
    }
    let home = &devices.device(devices.client()).name;
    if kinds == 0 && home.is_other_task(requested) {
        for (bit, kind) in devices.kinds().iter().enumerate() {
            let wanted = requested.device_type.as_ref();
            if wanted.is_none_or(|wanted| *wanted == kind.name) {
                kinds |= 1 << bit;
            }
        }
        // A kind that no device has: asked for all the same, so that the error is about the device.
        if kinds == 0 {
            kinds = devices.kinds_mask();
        }
    }
    kinds
}
