//! Adding nodes, changing them, and leaving some out.

use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_kernel::{AttrValue, Attrs};
use tensorfleet_status::{Result, Status, internal, invalid_argument};

use super::{Graph, Node, NodeId, Output};
use crate::check;
use crate::registry::OpEntry;
use crate::signature::port_types;

impl Graph {
    /// Adds a node. Attributes are checked and defaults filled in; the inputs must exist and fit.
    pub fn add(
        &mut self,
        name: impl Into<Arc<str>>,
        op: Arc<OpEntry>,
        attrs: Attrs,
        inputs: SmallVec<[Output; 2]>,
        control_inputs: SmallVec<[NodeId; 1]>,
        device: impl Into<Arc<str>>,
    ) -> Result<NodeId> {
        let name = name.into();
        let attrs = check::attrs(&name, &op, attrs)?;
        let in_node = |status: Status| check::at_node(status, &name);
        let node = Node {
            input_types: port_types(&op.signature.inputs, &attrs).map_err(in_node)?,
            output_types: port_types(&op.signature.outputs, &attrs).map_err(in_node)?,
            name,
            op,
            device: device.into(),
            attrs,
            inputs,
            control_inputs,
        };
        check::inputs(self, &node)?;
        self.push(node)
    }

    /// Adds a node that is known to be consistent, such as one copied from another graph.
    pub(crate) fn push(&mut self, node: Node) -> Result<NodeId> {
        if self.nodes.len() >= u32::MAX as usize {
            return Err(invalid_argument!(
                "a graph cannot have more than {} nodes",
                u32::MAX
            ));
        }
        let id = NodeId::from_index(self.nodes.len());
        if self.names.insert(node.name.clone(), id).is_some() {
            return Err(invalid_argument!("Node '{}' is not unique", node.name));
        }
        self.nodes.push(node);
        Ok(id)
    }

    /// Sets all inputs of a node that was added without; they must exist and fit.
    pub(crate) fn set_all_inputs(
        &mut self,
        id: NodeId,
        inputs: SmallVec<[Output; 2]>,
        control_inputs: SmallVec<[NodeId; 1]>,
    ) -> Result<()> {
        let node = &mut self.nodes[id.index()];
        node.inputs = inputs;
        node.control_inputs = control_inputs;
        check::inputs(self, self.node(id))
    }

    /// Replaces data input `port` of `node`; the types must fit.
    pub fn set_input(&mut self, node: NodeId, port: usize, source: Output) -> Result<()> {
        let found = self.output_type(source);
        let target = &mut self.nodes[node.index()];
        match (found, target.input_types.get(port)) {
            (Some(found), Some(wanted)) if found.feeds(*wanted) => target.inputs[port] = source,
            (found, wanted) => {
                return Err(internal!(
                    "input {port} of {} cannot be replaced: {found:?} for {wanted:?}",
                    target.name
                ));
            }
        }
        Ok(())
    }

    /// Adds a control edge unless it exists.
    pub fn add_control(&mut self, from: NodeId, to: NodeId) {
        let inputs = &mut self.nodes[to.index()].control_inputs;
        if !inputs.contains(&from) {
            inputs.push(from);
        }
    }

    /// Replaces the control inputs of a node.
    pub fn set_control_inputs(&mut self, node: NodeId, control_inputs: SmallVec<[NodeId; 1]>) {
        self.nodes[node.index()].control_inputs = control_inputs;
    }

    /// Turns a node that nothing reads any more into a `NoOp` of the same name that waits for these nodes.
    pub fn become_no_op(
        &mut self,
        id: NodeId,
        control_inputs: SmallVec<[NodeId; 1]>,
    ) -> Result<()> {
        let op = self.registry.find("NoOp")?.clone();
        let node = &mut self.nodes[id.index()];
        node.op = op;
        node.attrs = Attrs::new();
        node.inputs.clear();
        node.input_types.clear();
        node.output_types.clear();
        node.control_inputs = control_inputs;
        Ok(())
    }

    /// Replaces op and attributes of a node by others of the same ports.
    pub(crate) fn set_op(&mut self, id: NodeId, op: Arc<OpEntry>, attrs: Attrs) {
        let node = &mut self.nodes[id.index()];
        node.op = op;
        node.attrs = attrs;
    }

    /// Sets an attribute that does not change the node's types, such as `_class`.
    pub fn set_attr(&mut self, node: NodeId, name: &str, value: AttrValue) {
        self.nodes[node.index()].attrs.set(name, value);
    }

    /// Sets the device of a node.
    pub fn set_device(&mut self, node: NodeId, device: impl Into<Arc<str>>) {
        self.nodes[node.index()].device = device.into();
    }

    /// A copy with only the nodes for which `keep` holds, in the same order. `keep` must hold for
    /// every input of a kept node; control inputs that are not kept are dropped.
    pub fn retain(&self, keep: impl Fn(NodeId) -> bool) -> Result<Graph> {
        let mut kept = self.empty_like();
        let mut new_ids: Vec<Option<NodeId>> = vec![None; self.nodes.len()];
        for (next, id) in self.ids().filter(|id| keep(*id)).enumerate() {
            new_ids[id.index()] = Some(NodeId::from_index(next));
        }
        for (id, node) in self.nodes() {
            if new_ids[id.index()].is_none() {
                continue;
            }
            let mut node = node.clone();
            for input in &mut node.inputs {
                match new_ids[input.node.index()] {
                    Some(id) => input.node = id,
                    None => {
                        return Err(internal!(
                            "{} is kept but its input {} is not",
                            node.name,
                            self.node(input.node).name
                        ));
                    }
                }
            }
            node.control_inputs = node
                .control_inputs
                .iter()
                .filter_map(|id| new_ids[id.index()])
                .collect();
            kept.push(node)?;
        }
        Ok(kept)
    }
}
