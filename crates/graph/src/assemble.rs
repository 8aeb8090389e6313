//! Graphs taken apart into nodes and put together from them, for passes that rebuild whole graphs.

use tensorfleet_status::{Result, invalid_argument};

use crate::check;
use crate::graph::{Graph, Node, NodeId};

impl Graph {
    /// The nodes in order; the ids in their inputs are positions in the list.
    pub fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    /// A graph of these nodes with the registry, library and versions of this one. The ids in inputs
    /// are positions in the list and may point forward. Names, inputs and their types are checked;
    /// attributes are taken to be legal, as those of nodes of another graph are.
    pub fn assemble(&self, nodes: Vec<Node>) -> Result<Graph> {
        let mut graph = self.empty_like();
        graph.names.reserve(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let id = NodeId::from_index(index);
            if graph.names.insert(node.name.clone(), id).is_some() {
                return Err(invalid_argument!("Node '{}' is not unique", node.name));
            }
        }
        graph.nodes = nodes;
        for node in &graph.nodes {
            check::inputs(&graph, node)?;
            if let Some(id) = node
                .control_inputs
                .iter()
                .find(|id| id.index() >= graph.nodes.len())
            {
                return Err(invalid_argument!(
                    "Node '{}' waits for node {}, which does not exist",
                    node.name,
                    id.index()
                ));
            }
        }
        Ok(graph)
    }
}
