//! Keeps only what some node needs.

use tensorfleet_graph::{Graph, NodeId};
use tensorfleet_status::Result;

/// A copy with only the nodes that `roots` depend on, data and control.
pub fn prune(graph: &Graph, roots: impl IntoIterator<Item = NodeId>) -> Result<Graph> {
    let mut keep = vec![false; graph.len()];
    let mut stack: Vec<NodeId> = roots.into_iter().collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut keep[id.index()], true) {
            continue;
        }
        let node = graph.node(id);
        stack.extend(node.inputs.iter().map(|input| input.node));
        stack.extend(&node.control_inputs);
    }
    graph.retain(|id| keep[id.index()])
}
