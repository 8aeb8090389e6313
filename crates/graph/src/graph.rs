//! [`Graph`]: nodes with ports, control edges, attributes and a function library.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tensorfleet_kernel::{Attrs, NodeInfo};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::PortType;

use crate::check;
use crate::function::Library;
use crate::registry::{OpEntry, Registry};
use crate::signature::port_types;

/// A node of one graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(u32);

impl NodeId {
    /// The position of the node in its graph.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The node at this position.
    pub fn from_index(index: usize) -> NodeId {
        NodeId(index as u32)
    }
}

/// An output of a node: a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Output {
    /// The node.
    pub node: NodeId,
    /// The position among its outputs.
    pub port: u32,
}

impl From<NodeId> for Output {
    fn from(node: NodeId) -> Output {
        Output { node, port: 0 }
    }
}

impl NodeId {
    /// Output `port` of the node.
    pub fn output(self, port: usize) -> Output {
        Output {
            node: self,
            port: port as u32,
        }
    }
}

/// One node.
#[derive(Clone)]
pub struct Node {
    /// The name, unique in the graph.
    pub name: Arc<str>,
    /// The op or function.
    pub op: Arc<OpEntry>,
    /// The requested device; empty for any.
    pub device: Arc<str>,
    /// The attributes, defaults filled in.
    pub attrs: Attrs,
    /// Data inputs in order.
    pub inputs: SmallVec<[Output; 2]>,
    /// Nodes that must run before.
    pub control_inputs: SmallVec<[NodeId; 1]>,
    /// The types of the data inputs.
    pub input_types: SmallVec<[PortType; 2]>,
    /// The types of the outputs.
    pub output_types: SmallVec<[PortType; 2]>,
}

impl Node {
    /// The op's name.
    pub fn op_name(&self) -> &str {
        &self.op.name
    }

    /// Whether the edges out of the node lead back to the start of a loop.
    pub fn is_next_iteration(&self) -> bool {
        matches!(self.op_name(), "NextIteration" | "RefNextIteration")
    }

    /// What a kernel may know of the node.
    pub fn info(&self) -> NodeInfo {
        NodeInfo {
            name: self.name.to_string(),
            op: self.op.name.to_string(),
            device: self.device.to_string(),
            attrs: self.attrs.clone(),
            input_types: self.input_types.to_vec(),
            output_types: self.output_types.to_vec(),
        }
    }

    /// Whether runs may not be left out, repeated or merged.
    pub fn is_stateful(&self) -> bool {
        self.op.is_stateful()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.op.name)
    }
}

/// Who reads a node's outputs or waits for it: (consumer, input port or `None` for control).
pub type Consumers = SmallVec<[(NodeId, Option<u32>); 4]>;

/// The version numbers of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version of the code that made the graph.
    pub producer: i32,
    /// The least version of code that may read it.
    pub min_consumer: i32,
    /// Versions of code that may not read it.
    pub bad_consumers: Vec<i32>,
}

impl Versions {
    /// The graph version that this code speaks: TensorFlow 2.21's.
    pub const CURRENT: i32 = 2474;
}

impl Default for Versions {
    fn default() -> Versions {
        Versions {
            producer: Versions::CURRENT,
            min_consumer: 0,
            bad_consumers: Vec::new(),
        }
    }
}

/// A graph whose edges and attributes are consistent.
#[derive(Clone)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) names: FxHashMap<Arc<str>, NodeId>,
    registry: Arc<Registry>,
    library: Arc<Library>,
    versions: Versions,
}

impl Graph {
    /// An empty graph over these ops.
    pub fn new(registry: Arc<Registry>) -> Graph {
        Graph {
            nodes: Vec::new(),
            names: FxHashMap::default(),
            registry,
            library: Arc::new(Library::default()),
            versions: Versions::default(),
        }
    }

    /// An empty graph with the registry, library and versions of this one.
    pub fn empty_like(&self) -> Graph {
        Graph {
            nodes: Vec::with_capacity(self.nodes.len()),
            names: FxHashMap::default(),
            registry: self.registry.clone(),
            library: self.library.clone(),
            versions: self.versions.clone(),
        }
    }

    /// The ops.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The functions.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Replaces the functions.
    pub fn set_library(&mut self, library: Arc<Library>) {
        self.library = library;
    }

    /// The version numbers.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Replaces the version numbers.
    pub fn set_versions(&mut self, versions: Versions) {
        self.versions = versions;
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All node ids in order of creation.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::from_index)
    }

    /// All nodes in order of creation.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (NodeId::from_index(index), node))
    }

    /// The node with this id, which must be of this graph.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The node with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// The type of an output.
    pub fn output_type(&self, output: Output) -> Option<PortType> {
        self.nodes
            .get(output.node.index())?
            .output_types
            .get(output.port as usize)
            .copied()
    }

    /// `name` or `name:port` of an output, as in GraphDefs.
    pub fn output_name(&self, output: Output) -> String {
        let name = &self.node(output.node).name;
        match output.port {
            0 => name.to_string(),
            port => format!("{name}:{port}"),
        }
    }

    /// Finds `name`, `name:port`.
    pub fn find_output(&self, text: &str) -> Option<Output> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()?),
            None => (text, 0),
        };
        let output = Output {
            node: self.find(name)?,
            port,
        };
        self.output_type(output).map(|_| output)
    }

    /// The function or op with this name.
    pub fn lookup_op(&self, name: &str) -> Result<Arc<OpEntry>> {
        if let Some(function) = self.library.entry(name) {
            return Ok(function);
        }
        self.registry.find(name).cloned()
    }

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
        let in_node = |status: tensorfleet_status::Status| check::at_node(status, &name);
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
    pub fn set_attr(&mut self, node: NodeId, name: &str, value: tensorfleet_kernel::AttrValue) {
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

    /// A name that no node has, `base` itself if it is free.
    pub fn unique_name(&self, base: &str) -> String {
        if !self.names.contains_key(base) {
            return base.to_owned();
        }
        let mut suffix = 1;
        loop {
            let name = format!("{base}_{suffix}");
            if !self.names.contains_key(name.as_str()) {
                return name;
            }
            suffix += 1;
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (_, node) in self.nodes() {
            let inputs = node.inputs.iter().map(|input| self.output_name(*input));
            let controls = node
                .control_inputs
                .iter()
                .map(|id| format!("^{}", self.node(*id).name));
            let inputs: Vec<String> = inputs.chain(controls).collect();
            writeln!(f, "{} = {}({})", node.name, node.op.name, inputs.join(", "))?;
        }
        Ok(())
    }
}
