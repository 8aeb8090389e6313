//! [`FunctionBody`]: a function with its parameters put in, as a graph.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::PortType;

use super::{Function, Library};
use crate::attr_proto::attrs_from_proto;
use crate::check;
use crate::graph::{Graph, Node, NodeId, Output};
use crate::registry::Registry;
use crate::signature::{ArgDef, port_types};

/// A function's body as a graph: `_Arg` nodes stand for the arguments, `_Retval` nodes for the results.
pub struct FunctionBody {
    /// The graph.
    pub graph: Graph,
    /// The `_Arg` nodes in order.
    pub args: Vec<NodeId>,
    /// The `_Retval` nodes in order.
    pub rets: Vec<NodeId>,
    /// Nodes that must run even if no result needs them.
    pub control_rets: Vec<NodeId>,
    /// The types of the arguments.
    pub arg_types: Vec<PortType>,
    /// The types of the results.
    pub ret_types: Vec<PortType>,
}

impl FunctionBody {
    /// Instantiates a function with these attributes.
    pub fn instantiate(
        function: &Function,
        attrs: &Attrs,
        registry: &Arc<Registry>,
        library: &Arc<Library>,
    ) -> Result<FunctionBody> {
        Instantiation::new(function, attrs, registry, library)
            .run()
            .map_err(|status| status.context(format!("function '{}'", function.name())))
    }
}

struct Instantiation<'a> {
    function: &'a Function,
    attrs: &'a Attrs,
    graph: Graph,
    /// What an input text `node:out` (without index) names: the first port and how many.
    ports: FxHashMap<String, (NodeId, usize, usize)>,
    body: Vec<(NodeId, &'a pb::NodeDef)>,
}

impl<'a> Instantiation<'a> {
    fn new(
        function: &'a Function,
        attrs: &'a Attrs,
        registry: &Arc<Registry>,
        library: &Arc<Library>,
    ) -> Instantiation<'a> {
        let mut graph = Graph::new(registry.clone());
        graph.set_library(library.clone());
        Instantiation {
            function,
            attrs,
            graph,
            ports: FxHashMap::default(),
            body: Vec::new(),
        }
    }

    fn run(mut self) -> Result<FunctionBody> {
        let signature = &self.function.signature;
        let (args, arg_types) = self.add_args(&signature.inputs)?;
        self.add_nodes()?;
        self.connect()?;
        let (rets, ret_types) = self.add_rets(&signature.outputs)?;
        let mut control_rets = Vec::new();
        for name in self.function.def.control_ret.values() {
            match self.graph.find(name) {
                Some(id) => control_rets.push(id),
                None => {
                    return Err(invalid_argument!(
                        "control result '{name}' is no node of the body"
                    ));
                }
            }
        }
        self.graph.name_calls();
        self.graph.topological_order()?;
        Ok(FunctionBody {
            graph: self.graph,
            args,
            rets,
            control_rets,
            arg_types,
            ret_types,
        })
    }

    fn add_args(&mut self, inputs: &[ArgDef]) -> Result<(Vec<NodeId>, Vec<PortType>)> {
        let op = self.graph.registry().find("_Arg")?.clone();
        let (mut args, mut types) = (Vec::new(), Vec::new());
        for input in inputs {
            let ports = port_types(std::slice::from_ref(input), self.attrs)?;
            let first = args.len();
            for (position, port) in ports.iter().enumerate() {
                let mut attrs = Attrs::new();
                attrs.set("T", AttrValue::Type(port.dtype.into()));
                attrs.set("index", AttrValue::I(args.len() as i64));
                let name = if ports.len() == 1 {
                    input.name.to_string()
                } else {
                    format!("{}_{position}", input.name)
                };
                let name = self.graph.unique_name(&name);
                args.push(self.graph.add(
                    name,
                    op.clone(),
                    attrs,
                    SmallVec::new(),
                    SmallVec::new(),
                    "",
                )?);
                types.push(*port);
            }
            // Single arguments are one port of one node; lists are handled in `resolve`.
            for position in 0..ports.len() {
                self.ports.insert(
                    format!("{}:{position}", input.name),
                    (args[first + position], 0, 1),
                );
            }
            if let Some(only) = args.get(first) {
                self.ports.insert(input.name.to_string(), (*only, 0, 1));
            }
        }
        Ok((args, types))
    }

    /// Adds the nodes without their inputs: bodies may list them in any order.
    fn add_nodes(&mut self) -> Result<()> {
        for def in &self.function.def.node_def {
            let op = self.graph.lookup_op(&def.op)?;
            let mut attrs = Attrs::new();
            for (name, value) in attrs_from_proto(&def.attr)?.iter() {
                attrs.set(name.clone(), self.substitute(value)?);
            }
            let attrs = check::attrs(&def.name, &op, attrs)?;
            let mut port = 0;
            let id = NodeId::from_index(self.graph.len());
            for output in &op.signature.outputs {
                let count = port_types(std::slice::from_ref(output), &attrs)?.len();
                self.ports
                    .insert(format!("{}:{}", def.name, output.name), (id, port, count));
                port += count;
            }
            let node = Node {
                name: def.name.as_str().into(),
                input_types: port_types(&op.signature.inputs, &attrs)?,
                output_types: port_types(&op.signature.outputs, &attrs)?,
                op,
                device: def.device.as_str().into(),
                attrs,
                inputs: SmallVec::new(),
                control_inputs: SmallVec::new(),
            };
            let id = self.graph.push(node)?;
            self.body.push((id, def));
        }
        Ok(())
    }

    /// Replaces the function's own parameters in an attribute value.
    fn substitute(&self, value: &AttrValue) -> Result<AttrValue> {
        Ok(match value {
            AttrValue::Placeholder(name) => match self.attrs.get(name) {
                Some(value) => value.clone(),
                None => {
                    return Err(invalid_argument!(
                        "attribute '{name}' of the function was not given"
                    ));
                }
            },
            AttrValue::Func(func) => {
                let mut func = func.clone();
                let mut attrs = Attrs::new();
                for (name, value) in func.attrs.iter() {
                    attrs.set(name.clone(), self.substitute(value)?);
                }
                func.attrs = attrs;
                AttrValue::Func(func)
            }
            AttrValue::List(AttrList::Func(funcs)) => {
                let mut out = Vec::with_capacity(funcs.len());
                for func in funcs {
                    match self.substitute(&AttrValue::Func(func.clone()))? {
                        AttrValue::Func(func) => out.push(func),
                        _ => {
                            return Err(invalid_argument!(
                                "a function was expected in an attribute"
                            ));
                        }
                    }
                }
                AttrValue::List(AttrList::Func(out))
            }
            other => other.clone(),
        })
    }

    fn connect(&mut self) -> Result<()> {
        for (id, def) in std::mem::take(&mut self.body) {
            let mut inputs = SmallVec::new();
            let mut control_inputs = SmallVec::new();
            for text in &def.input {
                match text.strip_prefix('^') {
                    Some(name) => match self.graph.find(name) {
                        Some(id) => control_inputs.push(id),
                        None => {
                            return Err(invalid_argument!(
                                "node '{}' waits for '{name}', which does not exist",
                                def.name
                            ));
                        }
                    },
                    None => inputs.extend(self.resolve(text, &def.name)?),
                }
            }
            self.graph.set_all_inputs(id, inputs, control_inputs)?;
        }
        Ok(())
    }

    /// The outputs a body's input text names: `arg`, `arg:1`, `node:out:2`, or a whole list `node:out`.
    fn resolve(&self, text: &str, consumer: &str) -> Result<SmallVec<[Output; 2]>> {
        if let Some((node, first, count)) = self.ports.get(text) {
            return Ok((*first..first + count)
                .map(|port| node.output(port))
                .collect());
        }
        let found = text.rsplit_once(':').and_then(|(base, index)| {
            let (node, first, count) = self.ports.get(base)?;
            let index: usize = index.parse().ok()?;
            (index < *count).then(|| node.output(first + index))
        });
        match found {
            Some(output) => Ok(SmallVec::from_slice(&[output])),
            None => Err(invalid_argument!(
                "node '{consumer}' reads '{text}', which does not exist"
            )),
        }
    }

    fn add_rets(&mut self, outputs: &[ArgDef]) -> Result<(Vec<NodeId>, Vec<PortType>)> {
        let op = self.graph.registry().find("_Retval")?.clone();
        let (mut rets, mut types) = (Vec::new(), Vec::new());
        for output in outputs {
            let Some(text) = self.function.def.ret.get(&*output.name) else {
                return Err(invalid_argument!(
                    "result '{}' is not connected",
                    output.name
                ));
            };
            let sources = self.resolve(text, &output.name)?;
            let ports = port_types(std::slice::from_ref(output), self.attrs)?;
            if sources.len() != ports.len() {
                return Err(invalid_argument!(
                    "result '{}' has {} values, {} are connected",
                    output.name,
                    ports.len(),
                    sources.len()
                ));
            }
            for (source, port) in sources.into_iter().zip(ports) {
                let mut attrs = Attrs::new();
                attrs.set("T", AttrValue::Type(port.dtype.into()));
                attrs.set("index", AttrValue::I(rets.len() as i64));
                let name = self.graph.unique_name(&format!("{}_RetVal", output.name));
                rets.push(self.graph.add(
                    name,
                    op.clone(),
                    attrs,
                    SmallVec::from_slice(&[source]),
                    SmallVec::new(),
                    "",
                )?);
                types.push(port);
            }
        }
        Ok((rets, types))
    }
}
