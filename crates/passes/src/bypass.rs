//! Skips identities: their consumers read what they read.

use tensorfleet_graph::{Graph, Output};
use tensorfleet_status::Result;

use crate::prune::prune;
use crate::roots::Roots;

/// Lets consumers of an identity read its input, where nothing else depends on the node itself.
///
/// Kept are roots, nodes with control edges (they order things), and reads of references (when the read
/// happens matters).
pub fn bypass_identities(mut graph: Graph, roots: &Roots) -> Result<Graph> {
    let is_identity = |op: &str| matches!(op, "Identity" | "StopGradient" | "PreventGradient");
    let mut waited_for = vec![false; graph.len()];
    for (_, node) in graph.nodes() {
        for control in &node.control_inputs {
            waited_for[control.index()] = true;
        }
    }
    // What a node's first output is replaced by; chains are followed because inputs come first.
    let mut instead: Vec<Option<Output>> = vec![None; graph.len()];
    let mut found = false;
    for id in graph.topological_order()? {
        let node = graph.node(id);
        let plain = is_identity(node.op_name())
            && node.control_inputs.is_empty()
            && !waited_for[id.index()];
        if !plain
            || roots.contains(&node.name)
            || graph
                .output_type(node.inputs[0])
                .is_none_or(|port| port.is_ref)
        {
            continue;
        }
        let input = node.inputs[0];
        instead[id.index()] = Some(
            instead[input.node.index()]
                .filter(|_| input.port == 0)
                .unwrap_or(input),
        );
        found = true;
    }
    if !found {
        return Ok(graph);
    }
    for id in graph.ids() {
        for port in 0..graph.node(id).inputs.len() {
            if let Some(source) = instead[graph.node(id).inputs[port].node.index()] {
                graph.set_input(id, port, source)?;
            }
        }
    }
    prune(&graph, roots.ids(&graph))
}
