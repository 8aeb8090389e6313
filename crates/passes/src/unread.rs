//! Nodes that nobody reads need not compute.
//!
//! Some nodes are only waited for: the gradient for an input that nobody trains, which Python ties to
//! its siblings by control edges. Such a node without effects becomes a `NoOp` that waits for what the
//! node would have read; whoever waits for it waits as long as before, but nothing is computed.

use smallvec::SmallVec;
use tensorfleet_graph::{Graph, Node, NodeId};
use tensorfleet_kernel::AttrValue;
use tensorfleet_status::Result;

use crate::control_flow::is_control_flow;
use crate::prune::prune;
use crate::roots::Roots;

/// Turns nodes without effects that only control edges leave into `NoOp`s.
pub fn drop_unread(mut graph: Graph, roots: &Roots) -> Result<Graph> {
    let mut readers = vec![0u32; graph.len()];
    for (_, node) in graph.nodes() {
        for input in &node.inputs {
            readers[input.node.index()] += 1;
        }
    }
    let mut changed = false;
    // Backwards: a node that is dissolved no longer reads.
    for id in graph.topological_order()?.into_iter().rev() {
        let node = graph.node(id);
        if readers[id.index()] > 0 || roots.contains(&node.name) || !is_idle(&graph, node) {
            continue;
        }
        let mut waits: SmallVec<[NodeId; 1]> = node.control_inputs.clone();
        for input in &node.inputs {
            readers[input.node.index()] -= 1;
            waits.push(input.node);
        }
        waits.sort_unstable();
        waits.dedup();
        graph.become_no_op(id, waits)?;
        changed = true;
    }
    if !changed {
        return Ok(graph);
    }
    prune(&graph, roots.ids(&graph))
}

/// Whether running the node does nothing but make values.
fn is_idle(graph: &Graph, node: &Node) -> bool {
    let op = node.op_name();
    let is_special = op.starts_with('_')
        || op.starts_with("Placeholder")
        || op.contains("CheckNumerics")
        || matches!(op, "NoOp" | "ControlTrigger")
        || is_control_flow(node);
    let calls = || {
        let mut attrs = node.attrs.iter();
        attrs.any(|(_, value)| matches!(value, AttrValue::Func(_)))
    };
    // One output of a Switch may be dead while the node itself is not: waiting for it is not the same.
    let reads_switch = || {
        let mut sources = node.inputs.iter().map(|input| graph.node(input.node));
        sources.any(|source| source.op_name().contains("Switch"))
    };
    !is_special
        && !node.is_stateful()
        && !node.inputs.is_empty()
        && !node.output_types.is_empty()
        && node.output_types.iter().all(|port| !port.is_ref)
        && node.input_types.iter().all(|port| !port.is_ref)
        && !calls()
        && !reads_switch()
}
