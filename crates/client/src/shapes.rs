//! What is known of the shapes of a graph's tensors, found when asked for.

use rustc_hash::FxHashMap;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Graph, NodeId, Output};
use tensorfleet_tensor::{PartialShape, Tensor};

/// Shapes of all nodes up to the last one asked for.
#[derive(Default)]
pub(crate) struct Shapes {
    found: Vec<Vec<PartialShape>>,
    /// What the program said.
    told: FxHashMap<Output, PartialShape>,
}

impl Shapes {
    /// The shape of a tensor.
    pub(crate) fn of(&mut self, graph: &Graph, output: Output) -> PartialShape {
        while self.found.len() <= output.node.index() {
            let id = NodeId::from_index(self.found.len());
            let shapes = self.infer(graph, id);
            self.found.push(shapes);
        }
        self.known(output)
    }

    /// Keeps what the program says of a tensor.
    pub(crate) fn set(&mut self, output: Output, shape: PartialShape) {
        self.told.insert(output, shape);
        // What was concluded from the tensor may be sharper now.
        self.found.truncate(output.node.index() + 1);
    }

    fn known(&self, output: Output) -> PartialShape {
        if let Some(shape) = self.told.get(&output) {
            return shape.clone();
        }
        let shapes = self.found.get(output.node.index());
        let shape = shapes.and_then(|shapes| shapes.get(output.port as usize));
        shape.cloned().unwrap_or_else(PartialShape::unknown)
    }

    fn infer(&self, graph: &Graph, id: NodeId) -> Vec<PartialShape> {
        let node = graph.node(id);
        let unknown = || vec![PartialShape::unknown(); node.output_types.len()];
        let Some(def) = node.op.def else {
            return unknown();
        };
        let inputs: Vec<PartialShape> =
            node.inputs.iter().map(|input| self.known(*input)).collect();
        let constants: Vec<Option<Tensor>> = node
            .inputs
            .iter()
            .map(|input| constant_value(graph, input.node))
            .collect();
        let mut ctx = InferCtx::new(node, &inputs, &constants);
        match (def.infer)(&mut ctx) {
            Ok(()) => ctx.finish(),
            Err(_) => unknown(),
        }
    }
}

fn constant_value(graph: &Graph, id: NodeId) -> Option<Tensor> {
    let node = graph.node(id);
    match node.op_name() {
        "Const" => node.attrs.tensor("value").ok().cloned(),
        _ => None,
    }
}
