//! [`Graph`]: nodes with ports, control edges, attributes and a function library.

mod edit;
mod node;
mod order;
mod versions;

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tensorfleet_status::Result;
use tensorfleet_tensor::PortType;

use crate::function::Library;
use crate::registry::{OpEntry, Registry};

pub use node::{Node, NodeId, Output};
pub use order::Consumers;
pub use versions::Versions;

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
