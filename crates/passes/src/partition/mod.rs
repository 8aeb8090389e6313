//! Partitioning: a placed graph becomes one graph per part, joined by `_Send` and `_Recv` nodes.
//!
//! A part is whatever the caller makes of it: on a master a task, on a worker a device. Every edge
//! between parts becomes a transfer; one transfer serves all consumers of an output in a part. Loops
//! that span devices get control loops first, so that a receive inside of a frame runs once per
//! iteration: that is done for devices, not parts, because a worker that splits its part again takes
//! the control loops as its master made them.
//!
//! Invariant: the parts, run together with one rendezvous, compute what the whole graph computes.

mod control_flow;
mod frames;
mod names;
mod split;
mod transfer;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tensorfleet_graph::{Graph, NodeId};
use tensorfleet_status::{Result, internal};

use names::Names;

/// A device that nodes are placed on.
#[derive(Clone, Debug)]
pub struct PartDevice {
    /// The full name, `/job:worker/replica:0/task:1/device:CPU:0`.
    pub name: Arc<str>,
    /// The incarnation that the parts are made for.
    pub incarnation: u64,
    /// The part that its nodes go to.
    pub part: u32,
}

/// What partitioning needs besides the graph.
pub struct PartitionOptions<'a> {
    /// The devices.
    pub devices: &'a [PartDevice],
    /// The device of every node: an index into `devices`.
    pub device_of: &'a dyn Fn(NodeId) -> u32,
    /// What stands between the name of a source and a number in the names of new nodes: `_S` on
    /// masters, `_G` on workers.
    pub suffix: &'a str,
    /// Counts new nodes. TensorFlow's workers keep stateful kernels by name as long as a session
    /// lives, so all graphs of a session must share one counter.
    pub counter: &'a AtomicU64,
    /// Whether the graph is a part that a master made: then loops are prepared already.
    pub control_flow_added: bool,
    /// Whether floats travel as bfloat16, half as long and half as exact: the client's
    /// `graph_options.enable_bfloat16_sendrecv`.
    pub floats_as_bfloat16: bool,
    /// Constants of up to this many bytes are copied to the parts that read them: made known once
    /// instead of sent in every step. TensorFlow sends all, as 0 does.
    pub copied_constant_bytes: usize,
}

/// One part of a graph.
#[derive(Debug)]
pub struct Part {
    /// Which part: as in [`PartDevice::part`].
    pub part: u32,
    /// Its nodes, each with the full name of its device, and its transfers.
    pub graph: Graph,
}

/// Splits a graph into its parts, in order of their numbers. Parts without nodes are left out.
pub fn partition(mut graph: Graph, options: &PartitionOptions<'_>) -> Result<Vec<Part>> {
    let mut devices: Vec<u32> = graph.ids().map(|id| (options.device_of)(id)).collect();
    for (id, device) in graph.ids().zip(&devices) {
        if *device as usize >= options.devices.len() {
            return Err(internal!(
                "node {} is placed on device {device} of {}",
                graph.node(id).name,
                options.devices.len()
            ));
        }
    }
    let Some(first) = devices.first().copied() else {
        return Ok(Vec::new());
    };
    let names = Names::new(&graph, options);
    let several_devices = devices.iter().any(|device| *device != first);
    if several_devices && !options.control_flow_added {
        control_flow::add(&mut graph, &mut devices, &names)?;
    }
    write_devices(&mut graph, &devices, options.devices);
    let part = options.devices[first as usize].part;
    let several_parts = devices
        .iter()
        .any(|device| options.devices[*device as usize].part != part);
    if !several_parts {
        return Ok(vec![Part { part, graph }]);
    }
    split::split(graph, &devices, options, &names)
}

fn write_devices(graph: &mut Graph, devices: &[u32], table: &[PartDevice]) {
    for (id, device) in graph.ids().zip(devices) {
        let name = &table[*device as usize].name;
        if graph.node(id).device != *name {
            graph.set_device(id, name.clone());
        }
    }
}
