//! [`Case`]: a graph and the steps to run on it, with what should come out.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tensorfleet_graph::example::{Example, Expect, Lit};
use tensorfleet_graph::{
    ArgKind, Exactness, Graph, GraphBuilder, NodeId, OpDef, Output, Registry, TypeOf, Versions,
    parse_attr_value,
};
use tensorfleet_kernel::AttrValue;
use tensorfleet_status::Code;
use tensorfleet_tensor::{DType, Tensor};

use crate::expand::{self, Types};
use crate::{literal, script};

/// A graph and steps.
pub struct Case {
    /// `Op/example/dtypes`.
    pub name: String,
    /// The graph.
    pub graph: Graph,
    /// The steps, all in one session.
    pub steps: Vec<Step>,
    /// How near the results must be.
    pub exactness: Exactness,
    /// For examples of one op: the node.
    pub node: Option<NodeId>,
}

/// One run.
pub struct Step {
    /// Fetched tensors.
    pub fetches: Vec<String>,
    /// Nodes to run.
    pub targets: Vec<String>,
    /// What should come of it.
    pub expect: Expected,
}

/// What should come of a run.
pub enum Expected {
    /// These tensors.
    Tensors(Vec<Tensor>),
    /// Whatever TensorFlow says.
    Reference,
    /// An error.
    Error(Code, String),
}

/// All cases of an op.
pub fn cases_of(registry: &Arc<Registry>, def: &'static OpDef) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for example in def.examples {
        let made = example_cases(registry, def, example)
            .with_context(|| format!("{}: example '{}'", def.name, example.name))?;
        cases.extend(made);
    }
    for text in def.scripts {
        cases.push(
            script::case(registry, def, text)
                .with_context(|| format!("{}: script '{}'", def.name, text.name))?,
        );
    }
    // TensorFlow takes a deprecated op only in graphs that are older than the deprecation.
    if def.deprecated > 0 {
        for case in &mut cases {
            case.graph.set_versions(Versions {
                producer: def.deprecated - 1,
                ..Versions::default()
            });
        }
    }
    Ok(cases)
}

fn example_cases(
    registry: &Arc<Registry>,
    def: &'static OpDef,
    example: &Example,
) -> Result<Vec<Case>> {
    let signature = &registry.find(def.name)?.signature;
    let mut cases = Vec::new();
    for types in expand::assignments(def, signature, example)? {
        let label: Vec<String> = types.values().map(ToString::to_string).collect();
        let name = format!("{}/{}/{}", def.name, example.name, label.join(","));
        let case =
            example_case(registry, def, example, &types, name.clone()).with_context(|| name)?;
        cases.push(case);
    }
    Ok(cases)
}

fn example_case(
    registry: &Arc<Registry>,
    def: &'static OpDef,
    example: &Example,
    types: &Types,
    name: String,
) -> Result<Case> {
    let mut builder = GraphBuilder::new(registry.clone());
    let built = build_node(
        &mut builder,
        def,
        example,
        types,
        |builder, tensor, label| {
            Ok(builder
                .op("Const")
                .name(label)
                .attr("dtype", tensor.dtype())
                .attr("value", tensor)
                .output()?)
        },
    );
    let node = match (built, &example.expect) {
        (Ok(node), _) => node,
        // A graph that cannot even be built is a fine way to fail.
        (Err(error), Expect::Error(..)) => {
            return Ok(Case {
                name,
                graph: builder.finish(),
                steps: Vec::new(),
                exactness: def.exactness,
                node: None,
            })
            .inspect(|_| drop(error));
        }
        (Err(error), _) => return Err(error),
    };
    let graph = builder.finish();
    let outputs = graph.node(node).output_types.clone();
    let fetches: Vec<String> = (0..outputs.len())
        .map(|port| format!("op:{port}"))
        .collect();
    let targets = if fetches.is_empty() {
        vec!["op".to_owned()]
    } else {
        Vec::new()
    };
    let expect = match &example.expect {
        Expect::Values(lits) => {
            if lits.len() != outputs.len() {
                bail!(
                    "{} outputs are promised, the node has {}",
                    lits.len(),
                    outputs.len()
                );
            }
            let tensors = lits
                .iter()
                .zip(&outputs)
                .map(|(lit, port)| literal::tensor(lit, lit.dtype.unwrap_or(port.dtype)));
            Expected::Tensors(tensors.collect::<Result<_>>()?)
        }
        Expect::Reference => Expected::Reference,
        Expect::Error(code, text) => Expected::Error(*code, (*text).to_owned()),
    };
    Ok(Case {
        name,
        graph,
        steps: vec![Step {
            fetches,
            targets,
            expect,
        }],
        exactness: def.exactness,
        node: Some(node),
    })
}

/// Adds the example's node, named `op`; `source` makes the node of an input.
pub(crate) fn build_node(
    builder: &mut GraphBuilder,
    def: &OpDef,
    example: &Example,
    types: &Types,
    mut source: impl FnMut(&mut GraphBuilder, Tensor, &str) -> Result<Output>,
) -> Result<NodeId> {
    let entry = builder.graph().registry().find(def.name)?.clone();
    let mut inputs: Vec<(Vec<Output>, bool)> = Vec::new();
    let mut count = 0;
    for arg in expand::args(&entry.signature, example)? {
        let mut outputs = Vec::new();
        for lit in arg.lits {
            let dtype = dtype_of(lit, arg.of.as_ref(), types, example)?;
            outputs.push(source(
                builder,
                literal::tensor(lit, dtype)?,
                &format!("in{count}"),
            )?);
            count += 1;
        }
        inputs.push((outputs, arg.is_list));
    }
    let mut node = builder.op(def.name).name("op");
    for (outputs, is_list) in &inputs {
        node = match outputs.as_slice() {
            [one] if !is_list => node.input(*one),
            many => node.list(many),
        };
    }
    for (attr, dtype) in types {
        node = node.attr(attr, *dtype);
    }
    for (attr, text) in example.attrs {
        let Some(attr_def) = entry.signature.attr(attr) else {
            bail!("there is no attr '{attr}'")
        };
        let value: AttrValue = parse_attr_value(text, attr_def.kind)?;
        node = node.attr(attr, value);
    }
    Ok(node.build()?)
}

fn dtype_of(lit: &Lit, of: Option<&TypeOf>, types: &Types, example: &Example) -> Result<DType> {
    if let Some(dtype) = lit.dtype {
        return Ok(dtype);
    }
    match of {
        Some(TypeOf::Fixed(dtype)) => Ok(*dtype),
        Some(TypeOf::Attr(name)) => {
            if let Some(dtype) = types.get(&**name) {
                return Ok(*dtype);
            }
            let text = example
                .attrs
                .iter()
                .find(|(attr, _)| *attr == &**name)
                .map(|(_, text)| *text);
            text.and_then(DType::from_name)
                .with_context(|| format!("the dtype of '{name}' is not settled"))
        }
        None => bail!("a literal of a list of types needs a dtype"),
    }
}

/// The number of data inputs that are floats: what a gradient can be checked for.
pub fn float_inputs(graph: &Graph, node: NodeId) -> Vec<usize> {
    let node = graph.node(node);
    let is_float = |port: &tensorfleet_tensor::PortType| port.dtype.is_floating();
    node.input_types
        .iter()
        .enumerate()
        .filter(|(_, port)| is_float(port))
        .map(|(index, _)| index)
        .collect()
}

/// Whether an op takes lists of types, which some harnesses leave out.
pub fn has_type_list(def: &OpDef) -> bool {
    tensorfleet_graph::Signature::of(def).is_ok_and(|signature| {
        signature
            .inputs
            .iter()
            .any(|arg| matches!(arg.kind, ArgKind::TypeList(_)))
    })
}
