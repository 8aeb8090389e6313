//! [`Library`]: the functions that come with a graph, and their bodies as graphs.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, invalid_argument, not_found};
use tensorfleet_tensor::PortType;

use crate::attr_proto::attrs_from_proto;
use crate::graph::{Graph, NodeId, Output};
use crate::registry::{OpEntry, Registry};
use crate::signature::{
    Allowed, ArgDef, ArgKind, AttrDef, AttrKind, Scalar, Signature, TypeOf, port_types,
};

/// One function of a library.
pub struct Function {
    def: pb::FunctionDef,
    signature: Signature,
}

impl Function {
    /// The function's name.
    pub fn name(&self) -> &str {
        self.def
            .signature
            .as_ref()
            .map_or("", |signature| &signature.name)
    }

    /// The definition as it came.
    pub fn def(&self) -> &pb::FunctionDef {
        &self.def
    }

    /// Inputs, outputs, attributes.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Whether its author says that runs may not be left out or merged.
    pub fn is_stateful(&self) -> bool {
        self.def
            .signature
            .as_ref()
            .is_some_and(|signature| signature.is_stateful)
    }
}

/// The functions of a graph by name.
#[derive(Clone, Default)]
pub struct Library {
    pub(crate) functions: FxHashMap<Arc<str>, Arc<Function>>,
    pub(crate) gradients: Vec<pb::GradientDef>,
    pub(crate) registered_gradients: Vec<pb::RegisteredGradient>,
}

impl Library {
    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.gradients.is_empty()
    }

    /// The function with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.get(name)
    }

    /// The function with this name; NOT_FOUND if there is none.
    pub fn find(&self, name: &str) -> Result<&Arc<Function>> {
        self.get(name)
            .ok_or_else(|| not_found!("Function {name} is not defined."))
    }

    /// All functions in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Function>> {
        let mut all: Vec<_> = self.functions.values().collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all.into_iter()
    }

    /// The function as an op that a node can name directly.
    pub fn entry(&self, name: &str) -> Option<Arc<OpEntry>> {
        let (name, function) = self.functions.get_key_value(name)?;
        Some(Arc::new(OpEntry {
            name: name.clone(),
            signature: function.signature.clone(),
            def: None,
            function: Some(function.clone()),
        }))
    }

    /// This library and the functions of `def`. A function that is already there must be the same.
    pub fn merged(&self, def: &pb::FunctionDefLibrary, registry: &Registry) -> Result<Library> {
        let mut merged = self.clone();
        for function in &def.function {
            let Some(signature) = &function.signature else {
                return Err(invalid_argument!(
                    "a function of the library has no signature"
                ));
            };
            let name: Arc<str> = signature.name.as_str().into();
            if name.is_empty() {
                return Err(invalid_argument!("a function of the library has no name"));
            }
            if registry.get(&name).is_some() {
                return Err(invalid_argument!(
                    "Cannot add function '{name}' because an op with the same name already exists."
                ));
            }
            if let Some(known) = merged.functions.get(&name) {
                if known.def.node_def.len() == function.node_def.len() && known.def == *function {
                    continue;
                }
                return Err(invalid_argument!(
                    "Cannot add function '{name}' because a different function with the same name already exists."
                ));
            }
            let signature = signature_from_proto(signature)
                .map_err(|status| status.context(format!("function '{name}'")))?;
            let function = Function {
                def: function.clone(),
                signature,
            };
            merged.functions.insert(name, Arc::new(function));
        }
        for gradient in &def.gradient {
            if !merged.gradients.contains(gradient) {
                merged.gradients.push(gradient.clone());
            }
        }
        for gradient in &def.registered_gradients {
            if !merged.registered_gradients.contains(gradient) {
                merged.registered_gradients.push(gradient.clone());
            }
        }
        Ok(merged)
    }

    /// The library as it travels.
    pub fn to_proto(&self) -> pb::FunctionDefLibrary {
        pb::FunctionDefLibrary {
            function: self.iter().map(|function| function.def.clone()).collect(),
            gradient: self.gradients.clone(),
            registered_gradients: self.registered_gradients.clone(),
        }
    }
}

fn signature_from_proto(def: &pb::OpDef) -> Result<Signature> {
    let arg = |arg: &pb::op_def::ArgDef| -> Result<ArgDef> {
        let of = if arg.type_attr.is_empty() {
            if arg.r#type == 0 {
                None
            } else {
                Some(TypeOf::Fixed(PortType::from_number(arg.r#type)?.dtype))
            }
        } else {
            Some(TypeOf::Attr(arg.type_attr.as_str().into()))
        };
        let kind = match (
            of,
            arg.number_attr.is_empty(),
            arg.type_list_attr.is_empty(),
        ) {
            (_, _, false) => ArgKind::TypeList(arg.type_list_attr.as_str().into()),
            (Some(of), false, true) => ArgKind::Repeated {
                number: arg.number_attr.as_str().into(),
                of,
            },
            (Some(of), true, true) => ArgKind::Single(of),
            (None, ..) => return Err(invalid_argument!("argument '{}' has no type", arg.name)),
        };
        Ok(ArgDef {
            name: arg.name.as_str().into(),
            kind,
            is_ref: arg.is_ref,
        })
    };
    let attrs = def.attr.iter().map(|attr| {
        let (text, is_list) = match attr
            .r#type
            .strip_prefix("list(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            Some(inner) => (inner, true),
            None => (attr.r#type.as_str(), false),
        };
        let scalar = match text {
            "string" => Scalar::String,
            "int" => Scalar::Int,
            "float" => Scalar::Float,
            "bool" => Scalar::Bool,
            "type" => Scalar::Type,
            "shape" => Scalar::Shape,
            "tensor" => Scalar::Tensor,
            "func" => Scalar::Func,
            other => {
                return Err(invalid_argument!(
                    "attr '{}' has the unknown type '{other}'",
                    attr.name
                ));
            }
        };
        Ok(AttrDef {
            name: attr.name.as_str().into(),
            kind: AttrKind { scalar, is_list },
            default: None,
            minimum: None,
            allowed: Allowed::Any,
        })
    });
    Ok(Signature {
        attrs: attrs.collect::<Result<_>>()?,
        inputs: def.input_arg.iter().map(arg).collect::<Result<_>>()?,
        outputs: def.output_arg.iter().map(arg).collect::<Result<_>>()?,
    })
}

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
            let attrs = crate::check::attrs(&def.name, &op, attrs)?;
            let mut port = 0;
            let id = NodeId::from_index(self.graph.len());
            for output in &op.signature.outputs {
                let count = port_types(std::slice::from_ref(output), &attrs)?.len();
                self.ports
                    .insert(format!("{}:{}", def.name, output.name), (id, port, count));
                port += count;
            }
            let node = crate::graph::Node {
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
