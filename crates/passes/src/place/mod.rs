//! Decides the device of every node, as TensorFlow's placer does.
//!
//! Nodes that must be together form groups: by `_class` (`loc:@name`), by reference and by resource
//! edges. A group's device must match what its nodes ask for, and run all their kernels. Where that
//! leaves a choice, the master's own devices win, so a graph that names no device stays with its
//! master; constants go with their only reader and shapes with what they measure.
//!
//! The graph is placed whole, before pruning, so that a node's device does not depend on what is
//! fetched. Place after calls were inlined: a call that is left gets one device for its whole body.

mod assign;
mod devices;
mod explain;
mod groups;
mod kernels;
mod order;
mod specs;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tensorfleet_graph::{Graph, Node, NodeId};
use tensorfleet_kernel::DeviceName;
use tensorfleet_status::Result;

pub use devices::{DeviceSet, PlaceDevice};

/// Devices of nodes by name: positions in a [`DeviceSet`].
pub type Assignments = FxHashMap<Arc<str>, u32>;

/// How to place.
#[derive(Clone, Copy)]
pub struct PlaceOptions<'a> {
    /// The devices there are.
    pub devices: &'a Arc<DeviceSet>,
    /// Another kind of device of the same task will do where the wanted one is missing.
    pub allow_soft_placement: bool,
    /// Note every decision against a node's wishes, for the log.
    pub log_device_placement: bool,
    /// Nodes that have their device already, because state lives there.
    pub assigned: Option<&'a Assignments>,
}

impl<'a> PlaceOptions<'a> {
    /// Hard placement on these devices.
    pub fn new(devices: &'a Arc<DeviceSet>) -> PlaceOptions<'a> {
        PlaceOptions {
            devices,
            allow_soft_placement: false,
            log_device_placement: false,
            assigned: None,
        }
    }

    fn assigned(&self, node: &Node) -> Option<u32> {
        let device = *self.assigned?.get(&node.name)?;
        ((device as usize) < self.devices.len()).then_some(device)
    }
}

/// The device of every node of one graph.
#[derive(Clone, Debug)]
pub struct Placement {
    devices: Arc<DeviceSet>,
    by_node: Vec<u32>,
    notes: Vec<String>,
}

impl Placement {
    /// The devices that indices refer to.
    pub fn devices(&self) -> &Arc<DeviceSet> {
        &self.devices
    }

    /// The position of a node's device in [`devices`](Placement::devices).
    pub fn index_of(&self, node: NodeId) -> u32 {
        self.by_node[node.index()]
    }

    /// The full name of a node's device.
    pub fn device_of(&self, node: NodeId) -> &Arc<str> {
        self.devices.name(self.index_of(node))
    }

    /// Device positions in node order.
    pub fn by_node(&self) -> &[u32] {
        &self.by_node
    }

    /// Wishes that were not granted; only with [`PlaceOptions::log_device_placement`] or when state moved.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Writes the devices' full names onto the nodes.
    pub fn write_to(&self, graph: &mut Graph) {
        for id in graph.ids() {
            let name = self.device_of(id);
            if graph.node(id).device != *name {
                graph.set_device(id, name.clone());
            }
        }
    }

    /// The devices of stateful nodes, to be kept when the graph is placed again after it grew.
    pub fn stateful(&self, graph: &Graph) -> Assignments {
        graph
            .nodes()
            .filter(|(_, node)| node.is_stateful())
            .map(|(id, node)| (node.name.clone(), self.index_of(id)))
            .collect()
    }

    /// One line per node, as TensorFlow logs it: `name: (Op): /job:…`.
    pub fn log_lines<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = String> + 'a {
        graph.nodes().map(|(id, node)| {
            format!(
                "{}: ({}): {}",
                node.name,
                node.op_name(),
                self.device_of(id)
            )
        })
    }
}

/// Places every node; INVALID_ARGUMENT in TensorFlow's words if that is impossible.
pub fn place(graph: &Graph, options: &PlaceOptions<'_>) -> Result<Placement> {
    let placed = |by_node, notes| Placement {
        devices: options.devices.clone(),
        by_node,
        notes,
    };
    if fits_single_device(graph, options) {
        return Ok(placed(vec![0; graph.len()], Vec::new()));
    }
    let order = order::visiting_order(graph);
    let mut groups = groups::Groups::new(graph, options, &order)?;
    groups.join_edges()?;
    groups.join_classes()?;
    let by_node = assign::assign(&mut groups)?;
    Ok(placed(by_node, groups.notes))
}

/// Whether there is one device and every node can be there. Requests that all match one device agree
/// with each other, so no group needs to be looked at.
fn fits_single_device(graph: &Graph, options: &PlaceOptions<'_>) -> bool {
    if options.devices.len() != 1 {
        return false;
    }
    let device = &options.devices.device(0).name;
    let every_kind = options.devices.kinds_mask();
    let mut last: Option<&Arc<str>> = None;
    graph.nodes().all(|(_, node)| {
        let asks_for_it = node.device.is_empty()
            || last == Some(&node.device)
            || DeviceName::parse(&node.device).is_ok_and(|wanted| wanted.matches(device));
        if !node.device.is_empty() {
            last = Some(&node.device);
        }
        asks_for_it && kernels::supported(node, &DeviceName::ANY, options.devices) == every_kind
    })
}
