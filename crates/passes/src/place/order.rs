//! The order in which nodes are looked at: inputs first, else as in the graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tensorfleet_graph::{Graph, Node, NodeId};

/// Positions of all nodes so that inputs come first and, among what is ready, the lowest position. The
/// back edges of loops do not count. Placement depends on the order, so it must be TensorFlow's.
pub(super) fn visiting_order(graph: &Graph) -> Vec<u32> {
    if is_sorted(graph) {
        return (0..graph.len() as u32).collect();
    }
    let mut pending: Vec<u32> = graph
        .nodes()
        .map(|(_, node)| match closes_loop(graph, node) {
            true => node.control_inputs.len() as u32 + 1,
            false => (node.inputs.len() + node.control_inputs.len()) as u32,
        })
        .collect();
    let consumers = graph.consumers();
    let mut ready: BinaryHeap<Reverse<u32>> = (0..)
        .zip(&pending)
        .filter(|(_, count)| **count == 0)
        .map(|(index, _)| Reverse(index))
        .collect();
    let mut order = Vec::with_capacity(graph.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for (consumer, _) in &consumers[index as usize] {
            let count = &mut pending[consumer.index()];
            match *count {
                0 => {} // a loop's merge, ready since its first input
                1 => {
                    *count = 0;
                    ready.push(Reverse(consumer.index() as u32));
                }
                _ => *count -= 1,
            }
        }
    }
    // What hangs in a cycle is no graph that runs, but gets a device all the same.
    order.extend(
        (0..)
            .zip(&pending)
            .filter(|(_, count)| **count > 0)
            .map(|(i, _)| i),
    );
    order
}

fn is_sorted(graph: &Graph) -> bool {
    graph.nodes().all(|(id, node)| {
        node.inputs
            .iter()
            .all(|input| input.node < id || is_back_edge(graph, input.node, node))
            && node.control_inputs.iter().all(|control| *control < id)
    })
}

fn closes_loop(graph: &Graph, node: &Node) -> bool {
    is_merge(node)
        && node
            .inputs
            .iter()
            .any(|input| is_back_edge(graph, input.node, node))
}

fn is_back_edge(graph: &Graph, source: NodeId, target: &Node) -> bool {
    is_merge(target) && graph.node(source).is_next_iteration()
}

fn is_merge(node: &Node) -> bool {
    matches!(node.op_name(), "Merge" | "RefMerge")
}
