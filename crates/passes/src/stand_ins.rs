//! [`StandIns`]: what takes the place of nodes that a pass dissolved, connected in one walk over the graph.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tensorfleet_graph::{Graph, NodeId, Output};
use tensorfleet_status::Result;

/// Stand-ins of dissolved nodes.
#[derive(Default)]
pub(crate) struct StandIns {
    by_node: FxHashMap<NodeId, StandIn>,
}

struct StandIn {
    /// By output of the dissolved node: what is read instead.
    outputs: Vec<Output>,
    /// What has ended when the node would have ended.
    waits: SmallVec<[NodeId; 1]>,
}

impl StandIns {
    /// Notes that a node is dissolved.
    pub(crate) fn insert(
        &mut self,
        node: NodeId,
        outputs: Vec<Output>,
        waits: SmallVec<[NodeId; 1]>,
    ) {
        self.by_node.insert(node, StandIn { outputs, waits });
    }

    /// What is to be read instead of an output. A stand-in may itself be an output of a dissolved node.
    pub(crate) fn resolve(&self, mut output: Output) -> Output {
        while let Some(next) = self
            .by_node
            .get(&output.node)
            .and_then(|stand_in| stand_in.outputs.get(output.port as usize))
            .filter(|next| next.node != output.node)
        {
            output = *next;
        }
        output
    }

    /// Lets all consumers read the stand-ins.
    ///
    /// Each dissolved node stays by name, as a `NoOp` that ends when it would have ended: roots keep their
    /// names and control edges stay as they are.
    pub(crate) fn connect(self, graph: &mut Graph) -> Result<()> {
        for id in graph.ids() {
            for port in 0..graph.node(id).inputs.len() {
                let input = graph.node(id).inputs[port];
                let instead = self.resolve(input);
                if instead != input && !self.by_node.contains_key(&id) {
                    graph.set_input(id, port, instead)?;
                }
            }
        }
        for (id, stand_in) in self.by_node {
            graph.become_no_op(id, stand_in.waits)?;
        }
        Ok(())
    }
}
