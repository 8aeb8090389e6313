//! [`FunctionWriter`]: a part of a graph as a FunctionDef, the way back from [`FunctionBody`](crate::FunctionBody).

use rustc_hash::{FxHashMap, FxHashSet};
use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_proto as pb;
use tensorfleet_proto::op_def::ArgDef;
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::DType;

use crate::attr_proto::attrs_to_proto;
use crate::function::Library;
use crate::graph::{Graph, Node, NodeId, Output};
use crate::signature::port_types;

/// Writes what some results need as a function. Arguments cut the graph: what lies behind them stays out.
pub struct FunctionWriter<'a> {
    graph: &'a Graph,
    args: Vec<DType>,
    /// Which argument a tensor is inside of the function.
    arg_of: FxHashMap<Output, usize>,
    replaced: FxHashMap<Output, Output>,
    rets: Vec<Output>,
    control_rets: Vec<NodeId>,
    controls: bool,
}

impl<'a> FunctionWriter<'a> {
    /// A function out of this graph, without arguments and results yet.
    pub fn new(graph: &'a Graph) -> FunctionWriter<'a> {
        FunctionWriter {
            graph,
            args: Vec::new(),
            arg_of: FxHashMap::default(),
            replaced: FxHashMap::default(),
            rets: Vec::new(),
            control_rets: Vec::new(),
            controls: true,
        }
    }

    /// The next argument, and the tensor it stands for; `None` for one that is not used.
    #[must_use]
    pub fn arg(mut self, dtype: DType, stands_for: Option<Output>) -> Self {
        if let Some(output) = stands_for {
            self.arg_of.insert(output, self.args.len());
        }
        self.args.push(dtype);
        self
    }

    /// Reads one tensor where another is read.
    #[must_use]
    pub fn replace(mut self, output: Output, by: Output) -> Self {
        self.replaced.insert(output, by);
        self
    }

    /// The next results.
    #[must_use]
    pub fn rets(mut self, outputs: &[Output]) -> Self {
        self.rets.extend(outputs);
        self
    }

    /// Nodes that must run even if no result needs them.
    #[must_use]
    pub fn control_rets(mut self, nodes: &[NodeId]) -> Self {
        self.control_rets.extend(nodes);
        self
    }

    /// Leaves control edges out, and what only they need.
    #[must_use]
    pub fn without_controls(mut self) -> Self {
        self.controls = false;
        self
    }

    /// The function under this name.
    pub fn write(self, name: &str) -> Result<pb::FunctionDef> {
        let inside = self.needed();
        let names = self.arg_names(&inside);
        let mut node_def = Vec::with_capacity(inside.len());
        let mut is_stateful = false;
        for (id, node) in self.graph.nodes().filter(|(id, _)| inside.contains(id)) {
            if node.op_name() == "_Arg" {
                return Err(internal!(
                    "argument '{}' of a function is none of '{name}'",
                    node.name
                ));
            }
            is_stateful |= node.is_stateful();
            node_def.push(self.node(id, node, &inside, &names)?);
        }
        let mut signature = pb::OpDef {
            name: name.to_owned(),
            is_stateful,
            ..pb::OpDef::default()
        };
        for (name, dtype) in names.iter().zip(&self.args) {
            signature.input_arg.push(arg_def(name.clone(), *dtype));
        }
        let mut def = pb::FunctionDef {
            node_def,
            ..pb::FunctionDef::default()
        };
        for (index, ret) in self.rets.iter().enumerate() {
            let key = format!("ret_{index}");
            let dtype = self.dtype(*ret)?;
            signature.output_arg.push(arg_def(key.clone(), dtype));
            def.ret.insert(key, self.text(*ret, &names)?);
        }
        for id in &self.control_rets {
            let node = self.graph.node(*id).name.to_string();
            if def.control_ret.insert(node.clone(), node.clone()).is_none() {
                signature.control_output.push(node);
            }
        }
        def.signature = Some(signature);
        Ok(def)
    }

    fn resolve(&self, output: Output) -> Output {
        self.replaced.get(&output).copied().unwrap_or(output)
    }

    /// The nodes between arguments and results.
    fn needed(&self) -> FxHashSet<NodeId> {
        let mut inside = FxHashSet::default();
        let mut stack: Vec<NodeId> = self.control_rets.clone();
        let follow = |stack: &mut Vec<NodeId>, output: Output| {
            let output = self.resolve(output);
            if !self.arg_of.contains_key(&output) {
                stack.push(output.node);
            }
        };
        for ret in &self.rets {
            follow(&mut stack, *ret);
        }
        while let Some(id) = stack.pop() {
            if !inside.insert(id) {
                continue;
            }
            let node = self.graph.node(id);
            for input in &node.inputs {
                follow(&mut stack, *input);
            }
            if self.controls {
                let waits = node.control_inputs.iter();
                stack.extend(waits.filter(|id| !self.is_arg(**id)));
            }
        }
        inside
    }

    fn is_arg(&self, id: NodeId) -> bool {
        self.arg_of.contains_key(&Output::from(id))
    }

    /// Arguments and nodes share their names.
    fn arg_names(&self, inside: &FxHashSet<NodeId>) -> Vec<String> {
        let taken = |name: &str| {
            self.graph
                .find(name)
                .is_some_and(|node| inside.contains(&node))
        };
        let name = |index| {
            let mut name = format!("arg_{index}");
            while taken(&name) {
                name.push('_');
            }
            name
        };
        (0..self.args.len()).map(name).collect()
    }

    fn node(
        &self,
        id: NodeId,
        node: &Node,
        inside: &FxHashSet<NodeId>,
        args: &[String],
    ) -> Result<pb::NodeDef> {
        let mut input = Vec::with_capacity(node.inputs.len());
        for source in &node.inputs {
            input.push(self.text(*source, args)?);
        }
        if self.controls {
            for control in node.control_inputs.iter().filter(|id| inside.contains(id)) {
                input.push(format!("^{}", self.graph.node(*control).name));
            }
        }
        let mut attrs = node.attrs.clone();
        self.keep_ties_inside(&mut attrs, inside);
        Ok(pb::NodeDef {
            name: self.graph.node(id).name.to_string(),
            op: node.op.name.to_string(),
            input,
            device: node.device.to_string(),
            attr: attrs_to_proto(&attrs)?,
            ..pb::NodeDef::default()
        })
    }

    /// Drops colocation with nodes that are not in the function.
    fn keep_ties_inside(&self, attrs: &mut Attrs, inside: &FxHashSet<NodeId>) {
        let Ok(ties) = attrs.bytes_list("_class") else {
            return;
        };
        let known = |tie: &&bytes::Bytes| {
            let name = std::str::from_utf8(tie).ok();
            let name = name.and_then(|name| name.strip_prefix("loc:@"));
            let node = name.and_then(|name| self.graph.find(name));
            node.is_some_and(|node| inside.contains(&node))
        };
        let kept: Vec<bytes::Bytes> = ties.iter().filter(known).cloned().collect();
        attrs.remove("_class");
        if !kept.is_empty() {
            attrs.set("_class", AttrValue::List(AttrList::S(kept)));
        }
    }

    fn dtype(&self, output: Output) -> Result<DType> {
        let port = self.graph.output_type(self.resolve(output));
        port.map(|port| port.dtype)
            .ok_or_else(|| internal!("a function returns what its graph does not have"))
    }

    /// `arg`, or `node:out:index`.
    fn text(&self, output: Output, args: &[String]) -> Result<String> {
        let output = self.resolve(output);
        if let Some(arg) = self.arg_of.get(&output).and_then(|arg| args.get(*arg)) {
            return Ok(arg.clone());
        }
        let node = self.graph.node(output.node);
        let mut port = output.port as usize;
        for out in &node.op.signature.outputs {
            let count = port_types(std::slice::from_ref(out), &node.attrs)?.len();
            if port < count {
                return Ok(format!("{}:{}:{port}", node.name, out.name));
            }
            port -= count;
        }
        Err(internal!("'{}' has no output {}", node.name, output.port))
    }
}

fn arg_def(name: String, dtype: DType) -> ArgDef {
    ArgDef {
        name,
        r#type: dtype.number(),
        ..ArgDef::default()
    }
}

impl Library {
    /// A name for a new function that begins like this; what names of functions may not have becomes `_`.
    pub fn fresh_name(&self, base: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let base: String = base.chars().map(plain).collect();
        let mut suffix = self.functions.len();
        loop {
            let name = format!("{base}_{suffix}");
            if self.get(&name).is_none() {
                return name;
            }
            suffix += 1;
        }
    }

    /// This library and the functions of another that it does not have.
    #[must_use]
    pub fn with_missing(&self, other: &Library) -> Library {
        let mut all = self.clone();
        for (name, function) in &other.functions {
            let known = all.functions.entry(name.clone());
            known.or_insert_with(|| function.clone());
        }
        all
    }
}
