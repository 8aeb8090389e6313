//! [`Operation`], the handle of a node, and [`OpBuilder`], which makes one.

use std::panic::Location;

use smallvec::SmallVec;
use tensorfleet_graph::{self as ir, NodeId};
use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::Bytes;

use crate::device::{self, NodeUnderPlacement};
use crate::graph::{Graph, State};
use crate::output::{Operand, Output};

/// A node of a graph.
///
/// ```
/// use tensorfleet_client::Graph;
///
/// let g = Graph::new();
/// let sum = g.constant(1.0f32) + g.constant(2.0f32);
/// let op = sum.op();
/// assert_eq!((op.name(), op.op_type()), ("add".into(), "AddV2".into()));
/// assert_eq!(op.inputs()[1].name(), "Const_1:0");
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct Operation {
    graph: Graph,
    node: Option<NodeId>,
}

impl Operation {
    pub(crate) fn new(graph: &Graph, node: Option<NodeId>) -> Operation {
        Operation {
            graph: graph.clone(),
            node,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The node; `None` if it could not be made.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.node
    }

    /// Whether the node could not be made; [`Graph::check`] says why.
    pub fn is_void(&self) -> bool {
        self.node.is_none()
    }

    fn read<T>(&self, read: impl FnOnce(&ir::Node) -> T) -> Option<T> {
        let node = self.node?;
        Some(read(self.graph.lock().builder.graph().node(node)))
    }

    /// The node's name; empty for a void one.
    pub fn name(&self) -> String {
        self.read(|node| node.name.to_string()).unwrap_or_default()
    }

    /// The op type; empty for a void one.
    pub fn op_type(&self) -> String {
        self.read(|node| node.op_name().to_owned())
            .unwrap_or_default()
    }

    /// The requested device; empty for any.
    pub fn device(&self) -> String {
        self.read(|node| node.device.to_string())
            .unwrap_or_default()
    }

    /// An attribute.
    pub fn attr(&self, name: &str) -> Option<AttrValue> {
        self.read(|node| node.attrs.get(name).cloned()).flatten()
    }

    /// Sets an attribute that does not change the node's types, such as `_output_shapes`.
    pub fn set_attr(&self, name: &str, value: impl Into<AttrValue>) {
        if let Some(node) = self.node {
            let mut state = self.graph.lock();
            state.builder.graph_mut().set_attr(node, name, value.into());
        }
    }

    /// How many outputs it has.
    pub fn num_outputs(&self) -> usize {
        self.read(|node| node.output_types.len()).unwrap_or(0)
    }

    /// Output `index`; void if there is no such output.
    #[track_caller]
    pub fn output(&self, index: usize) -> Output {
        let Some(node) = self.node else {
            return Output::new(&self.graph, None);
        };
        let count = self.num_outputs();
        if index >= count {
            return self.graph.fail(invalid_argument!(
                "'{}' has {count} outputs, there is no output {index}",
                self.name()
            ));
        }
        Output::new(&self.graph, Some(node.output(index)))
    }

    /// All outputs.
    pub fn outputs(&self) -> Vec<Output> {
        (0..self.num_outputs())
            .map(|index| self.output(index))
            .collect()
    }

    /// The tensors it reads.
    pub fn inputs(&self) -> Vec<Output> {
        let inputs = self.read(|node| node.inputs.clone()).unwrap_or_default();
        inputs
            .into_iter()
            .map(|input| Output::new(&self.graph, Some(input)))
            .collect()
    }

    /// The nodes it waits for besides its inputs.
    pub fn control_inputs(&self) -> Vec<Operation> {
        let found = self.read(|node| node.control_inputs.clone());
        found
            .unwrap_or_default()
            .into_iter()
            .map(|node| Operation::new(&self.graph, Some(node)))
            .collect()
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.name(), self.op_type())
    }
}

enum Arg {
    One(Output),
    List(Vec<Output>),
}

/// A node in the making. Type attributes follow from the inputs.
///
/// ```
/// use tensorfleet_client::{Graph, Tensor};
///
/// let g = Graph::new();
/// let parts = [g.constant([1.0f32]), g.constant([2.0f32])];
/// let axis = g.constant(0i32);
/// let joined = g.op("ConcatV2").name("joined").list(&parts).input(&axis).output();
/// assert_eq!(joined.name(), "joined:0");
/// # g.check()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[must_use = "nothing is added to the graph before `build` or `output`"]
pub struct OpBuilder {
    graph: Graph,
    op: String,
    name: Option<String>,
    args: Vec<Arg>,
    attrs: Attrs,
    controls: Vec<Operation>,
    device: String,
    colocate: Vec<String>,
}

impl OpBuilder {
    pub(crate) fn new(graph: &Graph, op: &str) -> OpBuilder {
        OpBuilder {
            graph: graph.current(),
            op: op.to_owned(),
            name: None,
            args: Vec::new(),
            attrs: Attrs::new(),
            controls: Vec::new(),
            device: String::new(),
            colocate: Vec::new(),
        }
    }

    /// The name, behind the prefix of the open name scopes; a taken one gets a suffix. The op type by
    /// default.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The next input.
    pub fn input(mut self, input: impl Operand) -> Self {
        self.args.push(Arg::One(input.to_output()));
        self
    }

    /// The next inputs, for an argument that takes a list.
    pub fn list(mut self, inputs: &[impl Operand]) -> Self {
        let inputs = inputs.iter().map(Operand::to_output).collect();
        self.args.push(Arg::List(inputs));
        self
    }

    /// An attribute.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attrs.set(name, value.into());
        self
    }

    /// The attributes given so far.
    pub(crate) fn attrs(&self) -> &Attrs {
        &self.attrs
    }

    /// A node that must run before.
    pub fn control(mut self, op: &Operation) -> Self {
        self.controls.push(op.clone());
        self
    }

    /// The device, merged with the open device scopes.
    pub fn device(mut self, device: &str) -> Self {
        device.clone_into(&mut self.device);
        self
    }

    /// Puts the node where this one is.
    pub fn colocate_with(mut self, op: &Operation) -> Self {
        if op.graph().is(&self.graph) {
            self.colocate.push(op.name());
        }
        self
    }

    /// Adds the node.
    #[track_caller]
    pub fn build(self) -> Operation {
        let graph = self.graph.clone();
        if let Some(void) = self.void_input() {
            // The mistake of another graph would be lost with its tensor.
            if let (false, Err(status)) = (void.graph().is(&graph), void.graph().check()) {
                graph.lock().note(status, Location::caller());
            }
            return Operation::new(&graph, None);
        }
        match self.add() {
            Ok(node) => Operation::new(&graph, Some(node)),
            Err(status) => {
                graph.lock().note(status, Location::caller());
                Operation::new(&graph, None)
            }
        }
    }

    /// Adds the node and returns its first output.
    #[track_caller]
    pub fn output(self) -> Output {
        let op = self.build();
        if op.is_void() {
            return Output::new(op.graph(), None);
        }
        op.output(0)
    }

    fn void_input(&self) -> Option<&Output> {
        let outputs = self.args.iter().flat_map(|arg| match arg {
            Arg::One(output) => std::slice::from_ref(output),
            Arg::List(outputs) => outputs,
        });
        outputs.into_iter().find(|output| output.is_void())
    }

    fn add(self) -> Result<NodeId> {
        let mut args = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            args.push(match arg {
                Arg::One(output) => {
                    SmallVec::<[ir::Output; 2]>::from_elem(output.within(&self.graph)?, 1)
                }
                Arg::List(outputs) => {
                    let found: Result<_> = outputs.iter().map(|o| o.within(&self.graph)).collect();
                    found?
                }
            });
        }
        let waits = self.graph.waits_inside(&self.controls);
        let name = {
            let mut state = self.graph.lock();
            state.check_open()?;
            let name = self.name.as_deref().unwrap_or(&self.op);
            check_name(name)?;
            state.full_name(name)
        };
        // A node tied to another goes where that is: device scopes are not asked, so that those which
        // count do not count it.
        let colocation = self.graph.lock().colocation(&self.colocate);
        let device = match &colocation {
            Some((_, place)) if !place.is_empty() => place.clone(),
            Some(_) => self.device.clone(),
            None => self.decide_device(&name)?,
        };
        let mut state = self.graph.lock();
        let mut attrs = self.attrs;
        if let Some((classes, _)) = colocation {
            let classes = classes.into_iter().map(Bytes::from).collect();
            attrs.set("_class", AttrValue::List(AttrList::S(classes)));
        }
        let inputs: Vec<NodeId> = args.iter().flatten().map(|output| output.node).collect();
        let mut controls = state.scopes.controls_for(&inputs);
        for node in waits {
            if !controls.contains(&node) {
                controls.push(node);
            }
        }
        let mut node = state.builder.op(&self.op).name(name).device(device);
        for (arg, given) in args.iter().zip(&self.args) {
            node = match (given, arg.as_slice()) {
                (Arg::One(_), [one]) => node.input(*one),
                (_, list) => node.list(list),
            };
        }
        for (name, value) in attrs.iter() {
            node = node.attr(name, value.clone());
        }
        for control in controls {
            node = node.control(control);
        }
        let node = node.build()?;
        state.scopes.made(node);
        Ok(node)
    }

    fn decide_device(&self, name: &str) -> Result<String> {
        // The lock is not held while a device function runs: it may look at the graph.
        let scopes = self.graph.lock().scopes.devices.clone();
        let node = NodeUnderPlacement {
            op: &self.op,
            name,
            device: &self.device,
            attrs: &self.attrs,
        };
        device::decide(&scopes, &node)
    }
}

impl State {
    /// `loc:@…` of the open colocation scopes and the nodes named, and the device they bring along.
    fn colocation(&self, named: &[String]) -> Option<(Vec<String>, String)> {
        let graph = self.builder.graph();
        let open = self.scopes.colocations.iter().rev();
        let open = open.map_while(|node| *node);
        let named = named.iter().filter_map(|name| graph.find(name));
        let mut classes: Vec<String> = Vec::new();
        let mut device = String::new();
        for id in named.chain(open) {
            let node = graph.node(id);
            if device.is_empty() {
                device = node.device.to_string();
            }
            // A node that is itself tied to another passes that tie on.
            match node.attrs.get("_class") {
                Some(AttrValue::List(AttrList::S(own))) => {
                    classes.extend(own.iter().map(|c| String::from_utf8_lossy(c).into_owned()));
                }
                _ => classes.push(format!("loc:@{}", node.name)),
            }
        }
        classes.sort();
        classes.dedup();
        (!classes.is_empty()).then_some((classes, device))
    }
}

/// What TensorFlow takes as a name: `[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*`.
pub(crate) fn check_name(name: &str) -> Result<(), Status> {
    let mut chars = name.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    let rest = chars.all(|c| c.is_ascii_alphanumeric() || "_.\\/>-".contains(c));
    if first && rest {
        return Ok(());
    }
    Err(invalid_argument!(
        "'{name}' is not a valid name: letters, digits and _ . \\ / > - are, beginning with a letter, a digit or a dot"
    ))
}
