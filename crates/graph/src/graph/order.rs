//! Who reads whom, and an order in which inputs come first.

use smallvec::SmallVec;
use tensorfleet_status::{Result, invalid_argument};

use super::{Graph, NodeId};

/// Who reads a node's outputs or waits for it: (consumer, input port or `None` for control).
pub type Consumers = SmallVec<[(NodeId, Option<u32>); 4]>;

impl Graph {
    /// The consumers of every node.
    pub fn consumers(&self) -> Vec<Consumers> {
        let mut consumers = vec![SmallVec::new(); self.nodes.len()];
        for (id, node) in self.nodes() {
            for (port, input) in node.inputs.iter().enumerate() {
                consumers[input.node.index()].push((id, Some(port as u32)));
            }
            for control in &node.control_inputs {
                consumers[control.index()].push((id, None));
            }
        }
        consumers
    }

    /// Node ids so that inputs come first, back edges of loops (out of `NextIteration`) left aside;
    /// an error naming a node if there is another cycle.
    pub fn topological_order(&self) -> Result<Vec<NodeId>> {
        let is_back_edge = |source: NodeId| self.node(source).is_next_iteration();
        let mut pending = vec![0u32; self.nodes.len()];
        let consumers = self.consumers();
        for (id, node) in self.nodes() {
            let sources = node
                .inputs
                .iter()
                .map(|input| input.node)
                .chain(node.control_inputs.iter().copied());
            pending[id.index()] = sources.filter(|source| !is_back_edge(*source)).count() as u32;
        }
        let mut order: Vec<NodeId> = self.ids().filter(|id| pending[id.index()] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            let id = order[next];
            next += 1;
            if is_back_edge(id) {
                continue;
            }
            for (consumer, _) in &consumers[id.index()] {
                let count = &mut pending[consumer.index()];
                *count -= 1;
                if *count == 0 {
                    order.push(*consumer);
                }
            }
        }
        if order.len() < self.nodes.len() {
            let stuck = self.ids().find(|id| pending[id.index()] > 0);
            let name = stuck.map_or("", |id| &self.node(id).name);
            return Err(invalid_argument!(
                "{} nodes in a cycle: among them, or behind them, '{name}'",
                self.nodes.len() - order.len()
            ));
        }
        Ok(order)
    }
}
