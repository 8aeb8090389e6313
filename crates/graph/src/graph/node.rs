//! [`Node`]: one op of a graph, and [`NodeId`] and [`Output`], which name it and its results.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_kernel::{Attrs, NodeInfo};
use tensorfleet_tensor::PortType;

use crate::registry::OpEntry;

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

    /// Output `port` of the node.
    pub fn output(self, port: usize) -> Output {
        Output {
            node: self,
            port: port as u32,
        }
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
            unread: Vec::new(),
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
