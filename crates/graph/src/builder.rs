//! [`GraphBuilder`]: nodes one by one, with type attributes inferred from the inputs.

use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{PortType, Tensor};

use crate::graph::{Graph, NodeId, Output};
use crate::registry::{OpEntry, Registry};
use crate::signature::{ArgKind, TypeOf};

/// Builds a graph node by node.
pub struct GraphBuilder {
    graph: Graph,
    device: Arc<str>,
    scope: String,
    fixed: usize,
}

impl GraphBuilder {
    /// Starts an empty graph.
    pub fn new(registry: Arc<Registry>) -> GraphBuilder {
        GraphBuilder::extend(Graph::new(registry))
    }

    /// Goes on with an existing graph.
    pub fn extend(graph: Graph) -> GraphBuilder {
        GraphBuilder {
            graph,
            device: "".into(),
            scope: String::new(),
            fixed: 0,
        }
    }

    /// Says that the first `count` nodes are known elsewhere: gradients may not rewrite them any more.
    pub fn fix(&mut self, count: usize) {
        self.fixed = self.fixed.max(count);
    }

    /// Whether a node may not be rewritten.
    pub fn is_fixed(&self, node: NodeId) -> bool {
        node.index() < self.fixed
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph so far, for changes.
    pub fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// Puts following nodes on this device.
    pub fn set_device(&mut self, device: impl Into<Arc<str>>) {
        self.device = device.into();
    }

    /// Puts `scope/` before the names of following nodes; an empty scope for none.
    pub fn set_scope(&mut self, scope: impl Into<String>) {
        self.scope = scope.into();
    }

    /// Starts a node.
    pub fn op(&mut self, op: &str) -> OpBuilder<'_> {
        OpBuilder {
            op: self.graph.lookup_op(op),
            builder: self,
            name: None,
            args: Vec::new(),
            attrs: Attrs::new(),
            control_inputs: SmallVec::new(),
            device: None,
        }
    }

    /// A constant.
    pub fn constant(&mut self, tensor: Tensor) -> Result<Output> {
        self.op("Const")
            .attr("dtype", tensor.dtype())
            .attr("value", tensor)
            .output()
    }

    /// A node with these single inputs and no attributes to set; its first output.
    pub fn apply(&mut self, op: &str, inputs: &[Output]) -> Result<Output> {
        let mut node = self.op(op);
        for input in inputs {
            node = node.input(*input);
        }
        node.output()
    }
}

enum Arg {
    One(Output),
    List(Vec<Output>),
}

/// A node in the making.
pub struct OpBuilder<'a> {
    builder: &'a mut GraphBuilder,
    op: Result<Arc<OpEntry>>,
    name: Option<String>,
    args: Vec<Arg>,
    attrs: Attrs,
    control_inputs: SmallVec<[NodeId; 1]>,
    device: Option<Arc<str>>,
}

impl OpBuilder<'_> {
    /// Names the node; a taken name gets a suffix.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The next input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Output>) -> Self {
        self.args.push(Arg::One(input.into()));
        self
    }

    /// The next inputs, for an argument that takes a list.
    #[must_use]
    pub fn list(mut self, inputs: &[Output]) -> Self {
        self.args.push(Arg::List(inputs.to_vec()));
        self
    }

    /// An attribute.
    #[must_use]
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attrs.set(name, value.into());
        self
    }

    /// A node that must run before.
    #[must_use]
    pub fn control(mut self, node: NodeId) -> Self {
        self.control_inputs.push(node);
        self
    }

    /// The device.
    #[must_use]
    pub fn device(mut self, device: impl Into<Arc<str>>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// Adds the node.
    pub fn build(mut self) -> Result<NodeId> {
        let op = self.op.clone()?;
        let inputs = self.infer_types(&op)?;
        let base = self.name.take().unwrap_or_else(|| op.name.to_string());
        let scope = &self.builder.scope;
        let base = if scope.is_empty() {
            base
        } else {
            format!("{scope}/{base}")
        };
        let name = self.builder.graph.unique_name(&base);
        let device = self
            .device
            .take()
            .unwrap_or_else(|| self.builder.device.clone());
        self.builder
            .graph
            .add(name, op, self.attrs, inputs, self.control_inputs, device)
    }

    /// Adds the node and returns its first output.
    pub fn output(self) -> Result<Output> {
        self.build().map(Output::from)
    }

    /// Sets type and number attributes from the inputs; returns the flat list of inputs.
    fn infer_types(&mut self, op: &OpEntry) -> Result<SmallVec<[Output; 2]>> {
        let defs = &op.signature.inputs;
        if self.args.len() != defs.len() {
            return Err(invalid_argument!(
                "op {} takes {} arguments, {} were given",
                op.name,
                defs.len(),
                self.args.len()
            ));
        }
        let mut flat = SmallVec::new();
        for (arg, def) in std::mem::take(&mut self.args).into_iter().zip(defs) {
            let outputs = match arg {
                Arg::One(output) => vec![output],
                Arg::List(outputs) => outputs,
            };
            let types: Option<Vec<PortType>> = outputs
                .iter()
                .map(|output| self.builder.graph.output_type(*output))
                .collect();
            let Some(types) = types else {
                return Err(invalid_argument!(
                    "'{}' of op {} is no output of this graph",
                    def.name,
                    op.name
                ));
            };
            match &def.kind {
                ArgKind::Single(of) => self.set_type(of, types.first()),
                ArgKind::Repeated { number, of } => {
                    self.set_default(number, AttrValue::I(types.len() as i64));
                    self.set_type(of, types.first());
                }
                ArgKind::TypeList(name) => {
                    let types = types.iter().map(|port| port.dtype.into()).collect();
                    self.set_default(name, AttrValue::List(AttrList::Type(types)));
                }
            }
            flat.extend(outputs);
        }
        Ok(flat)
    }

    fn set_type(&mut self, of: &TypeOf, found: Option<&PortType>) {
        if let (TypeOf::Attr(name), Some(port)) = (of, found) {
            self.set_default(name, AttrValue::Type(port.dtype.into()));
        }
    }

    fn set_default(&mut self, name: &Arc<str>, value: AttrValue) {
        if self.attrs.get(name).is_none() {
            self.attrs.set(name.clone(), value);
        }
    }
}
