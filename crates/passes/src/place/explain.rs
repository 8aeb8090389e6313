//! What is said when nodes cannot be placed: TensorFlow's texts, which its Python client takes apart,
//! with the nearest device added where one comes close.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use tensorfleet_graph::Node;
use tensorfleet_kernel::{AttrList, AttrValue, DeviceName};
use tensorfleet_status::{Status, invalid_argument};
use tensorfleet_tensor::PortType;

use super::devices::DeviceSet;
use super::groups::Groups;
use super::kernels;

/// Adds the node that an error is about.
pub(super) fn attach(status: Status, node: &Node) -> Status {
    match status.message().contains("{{node ") {
        true => status.append(format_args!("\n\t [[{}]]", node.name)),
        false => status.append(format_args!("\n\t [[{{{{node {}}}}}]]", node.name)),
    }
}

/// Two nodes that cannot share a device.
pub(super) fn colocation(x: &Node, y: &Node, why: &str) -> Status {
    invalid_argument!(
        "Cannot colocate nodes {{{{colocation_node {}}}}} and {{{{colocation_node {}}}}}{why}",
        x.name,
        y.name
    )
}

/// State in two places behind one edge.
pub(super) fn edge_conflict(
    what: &str,
    (source, target): (&Node, &Node),
    (one, other): (&DeviceName, &DeviceName),
) -> Status {
    invalid_argument!(
        "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible {what} devices: {one} vs {other}. The edge src node is name='{}' (op='{}'), and the dst node is name='{}' (op='{}').",
        source.name,
        source.op_name(),
        target.name,
        target.op_name()
    )
}

/// A device text that is no device name. `position` is the node's in visiting order.
pub(super) fn malformed(node: &Node, position: usize) -> Status {
    let status = invalid_argument!(
        "Malformed device specification '{device}' in node: {{name:'{name}' id:{id} op device:{{requested: '{device}', assigned: ''}} def:{{{{{{node {name}}}}} = {op}[{attrs}, _device=\"{device}\"]()}}}}",
        device = node.device,
        name = node.name,
        // TensorFlow counts its source and sink nodes first.
        id = position + 2,
        op = node.op_name(),
        attrs = attrs(node),
    );
    attach(status, node)
}

/// An op that nothing here can run.
pub(super) fn no_kernel(node: &Node, devices: &DeviceSet) -> Status {
    let kinds: BTreeSet<&str> = devices.kinds().iter().map(|kind| &*kind.name).collect();
    let status = invalid_argument!(
        "No OpKernel was registered to support Op '{}' used by {{{{node {}}}}} with these attrs: [{}]\nRegistered devices: [{}]\nRegistered kernels:\n{}",
        node.op_name(),
        node.name,
        attrs(node),
        join(kinds),
        registered_kernels(node)
    );
    attach(status, node)
}

/// Why no device is good for a node.
pub(super) fn no_device(groups: &mut Groups<'_>, index: u32, root: u32) -> String {
    let node = groups.node(index);
    let devices = groups.options.devices.clone();
    let requested = groups.at(root).requested;
    let own = groups.specs.parse(&node.device);
    let wanted = groups.specs.name(requested).clone();
    if own.ok() != Some(requested) {
        return format!(
            "Could not satisfy explicit device specification '{}' because the node {{{{colocation_node {}}}}} was colocated with a group of nodes that required incompatible device '{wanted}'. All available devices [{}]. {}",
            node.device,
            node.name,
            join(devices.names().iter().map(|name| &**name)),
            group(groups, root)
        );
    }
    let exists = devices.best(&wanted, devices.kinds_mask()).is_some();
    match &wanted.device_type {
        _ if !exists => nonexistent(node, &wanted, &devices),
        Some(kind) => format!(
            "Could not satisfy explicit device specification '{}' because no supported kernel for {kind} devices is available.{}\nOp: {}\nNode attrs: {}\nRegistered kernels:\n{}",
            node.device,
            group(groups, root),
            node.op_name(),
            attrs(node),
            registered_kernels(node)
        ),
        None if wanted.is_any() => format!(
            "Node had no OpKernel registered to support this operation: Operation was {} and inputs were [{}].\n{}",
            node.op_name(),
            join(node.input_types.iter().map(|port| port.dtype.name())),
            group(groups, root)
        ),
        None => format!(
            "Could not satisfy explicit device specification '{}'{}",
            node.device,
            group(groups, root)
        ),
    }
}

fn nonexistent(node: &Node, wanted: &DeviceName, devices: &DeviceSet) -> String {
    let names: BTreeSet<&str> = devices.names().iter().map(|name| &**name).collect();
    let mut text = format!(
        "{{{{node {}}}}} was explicitly assigned to {} but available devices are [ {} ]. Make sure the device specification refers to a valid device.",
        node.name,
        node.device,
        join(names)
    );
    let kind = wanted.device_type.as_deref().unwrap_or_default();
    if kind.eq_ignore_ascii_case("gpu") {
        text.push_str(" The requested device appears to be a GPU, but CUDA is not enabled.");
    }
    if let Some(nearest) = nearest(wanted, devices) {
        let _ = write!(text, " The nearest match is {nearest}.");
    }
    text
}

/// The device that agrees in most of what was asked for; `None` if none agrees in anything.
fn nearest<'a>(wanted: &DeviceName, devices: &'a DeviceSet) -> Option<&'a Arc<str>> {
    let score = |name: &DeviceName| {
        let same = |asked: bool, equal: bool, weight: u32| if asked && equal { weight } else { 0 };
        same(wanted.job.is_some(), wanted.job == name.job, 8)
            + same(wanted.task.is_some(), wanted.task == name.task, 4)
            + same(
                wanted.device_type.is_some(),
                wanted.device_type == name.device_type,
                2,
            )
            + same(wanted.index.is_some(), wanted.index == name.index, 1)
    };
    let mut best: Option<(u32, &Arc<str>)> = None;
    for index in 0..devices.len() as u32 {
        let score = score(&devices.device(index).name);
        let name = devices.name(index);
        if score > 0 && best.is_none_or(|(most, at)| score > most || (score == most && name < at)) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Who is in a group and what each of them asked for.
pub(super) fn group(groups: &mut Groups<'_>, root: u32) -> String {
    let devices = groups.options.devices.clone();
    let member = groups.at(root);
    let kinds_of = |mask: u32| {
        let kinds = devices.kinds().iter().enumerate();
        kinds.filter(move |(bit, _)| mask & (1 << bit) != 0)
    };
    let mut ops: BTreeMap<&str, String> = BTreeMap::new();
    let mut list = String::new();
    for index in groups.order {
        if groups.root(*index) != root {
            continue;
        }
        let node = groups.node(*index);
        let wanted = DeviceName::parse(&node.device).unwrap_or_default();
        let supported = kinds_of(kernels::supported(node, &wanted, &devices))
            .map(|(_, kind)| format!("{} ", kind.name))
            .collect();
        ops.insert(node.op_name(), supported);
        let _ = write!(
            list,
            "\n  {} ({}) {}",
            node.name,
            node.op_name(),
            node.device
        );
        if let Some(device) = groups.options.assigned(node) {
            let _ = write!(list, " framework assigned device={}", devices.name(device));
        }
    }
    let mut text = format!(
        "\nColocation Debug Info:\nColocation group had the following types and supported devices: \nRoot Member(assigned_device_name_index_=-1 requested_device_name_='{}' assigned_device_name_='{}' resource_device_name_='{}' supported_device_types_=[{}] possible_devices_=[]",
        groups.specs.name(member.requested),
        groups.specs.name(member.assigned),
        groups.specs.name(member.resource),
        join(kinds_of(member.supported).map(|(_, kind)| &*kind.name)),
    );
    for (op, supported) in ops {
        let _ = write!(text, "\n{op}: {supported}");
    }
    text.push_str(
        "\n\nColocation members, user-requested devices, and framework assigned devices, if any:",
    );
    text.push_str(&list);
    text.push('\n');
    text
}

fn registered_kernels(node: &Node) -> String {
    let kernels = node.op.def.map_or(&[][..], |def| def.kernels);
    if kernels.is_empty() {
        return "  <no registered kernels>\n".to_owned();
    }
    let mut text = String::new();
    for kernel in kernels {
        let _ = write!(text, "  device='{}'", kernel.device);
        for (attr, types) in kernel.types {
            let types = types.iter().map(|dtype| type_name((*dtype).into()));
            let types: Vec<String> = types.collect();
            let _ = write!(text, "; {attr} in [{}]", types.join(", "));
        }
        text.push('\n');
    }
    text
}

fn attrs(node: &Node) -> String {
    let shown = node.attrs.iter().filter(|(name, _)| !name.starts_with('_'));
    let shown: Vec<String> = shown
        .map(|(name, value)| format!("{name}={}", attr(value)))
        .collect();
    shown.join(", ")
}

fn attr(value: &AttrValue) -> String {
    match value {
        AttrValue::S(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        AttrValue::I(number) => number.to_string(),
        AttrValue::F(number) => number.to_string(),
        AttrValue::B(flag) => flag.to_string(),
        AttrValue::Type(port) => type_name(*port),
        AttrValue::Shape(shape) => shape.to_string(),
        AttrValue::Tensor(tensor) => format!(
            "Tensor<type: {} shape: {}>",
            tensor.dtype().name(),
            tensor.shape()
        ),
        AttrValue::Func(function) => format!("{}[]", function.name),
        AttrValue::Placeholder(name) => format!("${name}"),
        AttrValue::List(AttrList::S(list)) => {
            let list: Vec<String> = list
                .iter()
                .map(|s| attr(&AttrValue::S(s.clone())))
                .collect();
            format!("[{}]", list.join(", "))
        }
        AttrValue::List(AttrList::I(list)) => {
            let list: Vec<String> = list.iter().map(i64::to_string).collect();
            format!("[{}]", list.join(", "))
        }
        AttrValue::List(AttrList::Type(list)) => {
            let list: Vec<String> = list.iter().map(|port| type_name(*port)).collect();
            format!("[{}]", list.join(", "))
        }
        AttrValue::List(list) => format!("[… {} values]", list.len()),
    }
}

fn type_name(port: PortType) -> String {
    let name = port.dtype.name().to_ascii_uppercase();
    format!("DT_{name}{}", if port.is_ref { "_REF" } else { "" })
}

fn join<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}
