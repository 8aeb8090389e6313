//! Common-subexpression removal: nodes that compute the same from the same become one.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use tensorfleet_graph::{Graph, Node, NodeId, Output};
use tensorfleet_kernel::{AttrValue, Attrs};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use crate::control_flow::is_control_flow;
use crate::prune::prune;
use crate::roots::Roots;

/// Constants larger than this are not compared.
const MAX_COMPARED_BYTES: usize = 1 << 10;

/// Merges stateless nodes that are alike in op, attributes, device and inputs.
pub fn dedupe(mut graph: Graph, roots: &Roots) -> Result<Graph> {
    let mut kept: FxHashMap<u64, Vec<NodeId>> = FxHashMap::default();
    let mut instead: Vec<NodeId> = graph.ids().collect();
    let mut found = false;
    for id in graph.topological_order()? {
        for port in 0..graph.node(id).inputs.len() {
            let input = graph.node(id).inputs[port];
            let source = instead[input.node.index()];
            if source != input.node {
                graph.set_input(
                    id,
                    port,
                    Output {
                        node: source,
                        port: input.port,
                    },
                )?;
            }
        }
        let node = graph.node(id);
        if node
            .control_inputs
            .iter()
            .any(|control| instead[control.index()] != *control)
        {
            let mut moved = node.control_inputs.clone();
            moved
                .iter_mut()
                .for_each(|control| *control = instead[control.index()]);
            moved.sort_unstable();
            moved.dedup();
            graph.set_control_inputs(id, moved);
        }
        let node = graph.node(id);
        if !may_merge(node) || roots.contains(&node.name) {
            continue;
        }
        let candidates = kept.entry(hash(node)).or_default();
        match candidates
            .iter()
            .find(|other| alike(graph.node(**other), node))
        {
            Some(other) => {
                instead[id.index()] = *other;
                found = true;
            }
            None => candidates.push(id),
        }
    }
    if found {
        prune(&graph, roots.ids(&graph))
    } else {
        Ok(graph)
    }
}

fn may_merge(node: &Node) -> bool {
    let has_refs = node
        .input_types
        .iter()
        .chain(&node.output_types)
        .any(|port| port.is_ref);
    // A placeholder that is not fed must fail under its own name.
    !node.is_stateful()
        && !node.op.def.is_some_and(|def| def.distributed)
        && !is_control_flow(node)
        && !has_refs
        && !node.op_name().starts_with("Placeholder")
}

fn hash(node: &Node) -> u64 {
    let mut hasher = FxHasher::default();
    node.op.name.hash(&mut hasher);
    node.inputs.hash(&mut hasher);
    node.control_inputs.hash(&mut hasher);
    node.device.hash(&mut hasher);
    for (name, value) in node.attrs.iter() {
        name.hash(&mut hasher);
        hash_attr(value, &mut hasher);
    }
    hasher.finish()
}

/// Tells the common kinds apart; the rest is compared only.
fn hash_attr(value: &AttrValue, hasher: &mut FxHasher) {
    match value {
        AttrValue::S(bytes) => bytes.hash(hasher),
        AttrValue::I(value) => value.hash(hasher),
        AttrValue::F(value) => value.to_bits().hash(hasher),
        AttrValue::B(value) => value.hash(hasher),
        AttrValue::Type(port) => port.hash(hasher),
        AttrValue::Shape(shape) => shape.hash(hasher),
        AttrValue::Tensor(tensor) => {
            tensor.shape().hash(hasher);
            if let Some(bytes) = tensor
                .bytes()
                .filter(|bytes| bytes.len() <= MAX_COMPARED_BYTES)
            {
                bytes.hash(hasher);
            }
        }
        _ => {}
    }
}

fn alike(a: &Node, b: &Node) -> bool {
    a.op.name == b.op.name
        && a.inputs == b.inputs
        && a.control_inputs == b.control_inputs
        && a.device == b.device
        && same_attrs(&a.attrs, &b.attrs)
}

fn same_attrs(a: &Attrs, b: &Attrs) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b.iter())
            .all(|((left, x), (right, y))| left == right && same_attr(x, y))
}

fn same_attr(a: &AttrValue, b: &AttrValue) -> bool {
    match (a, b) {
        (AttrValue::S(a), AttrValue::S(b)) => a == b,
        (AttrValue::I(a), AttrValue::I(b)) => a == b,
        (AttrValue::F(a), AttrValue::F(b)) => a.to_bits() == b.to_bits(),
        (AttrValue::B(a), AttrValue::B(b)) => a == b,
        (AttrValue::Type(a), AttrValue::Type(b)) => a == b,
        (AttrValue::Shape(a), AttrValue::Shape(b)) => a == b,
        (AttrValue::Tensor(a), AttrValue::Tensor(b)) => same_tensor(a, b),
        // Lists and functions are few; their text is exact.
        (AttrValue::List(a), AttrValue::List(b)) => {
            format!("{a:?}") == format!("{b:?}") && !format!("{a:?}").contains("...")
        }
        _ => false,
    }
}

fn same_tensor(a: &Tensor, b: &Tensor) -> bool {
    let small = |tensor: &Tensor| tensor.byte_size() <= MAX_COMPARED_BYTES;
    if a.dtype() != b.dtype() || a.shape() != b.shape() || !small(a) || !small(b) {
        return false;
    }
    match (a.bytes(), b.bytes()) {
        (Some(a), Some(b)) => a == b,
        _ => match (
            a.slice::<tensorfleet_tensor::TString>(),
            b.slice::<tensorfleet_tensor::TString>(),
        ) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
    }
}
