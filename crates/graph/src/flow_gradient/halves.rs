//! [`Halves`]: a function's body and its gradient in one graph, and where they part.

use rustc_hash::FxHashSet;
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::DType;

use super::{Callees, instantiate};
use crate::builder::GraphBuilder;
use crate::function::FunctionBody;
use crate::gradient::{densify, gradients};
use crate::graph::{Graph, NodeId, Output};

/// A body with its gradient.
pub(super) struct Halves {
    pub(super) builder: GraphBuilder,
    pub(super) args: Vec<Output>,
    pub(super) rets: Vec<Output>,
    pub(super) control_rets: Vec<NodeId>,
    /// Arguments for the gradients of results.
    pub(super) starts: Vec<Output>,
    /// The gradients of arguments.
    pub(super) grads: Vec<Option<Output>>,
}

impl Halves {
    /// The gradients of the arguments `xs`, given those of the results `ys`, whose dtypes are told.
    pub(super) fn new(body: FunctionBody, ys: &[(usize, DType)], xs: &[usize]) -> Result<Halves> {
        let args: Vec<Output> = body.args.iter().map(|arg| Output::from(*arg)).collect();
        let sources = body.rets.iter().map(|ret| body.graph.node(*ret));
        let rets: Vec<Output> = sources
            .filter_map(|ret| ret.inputs.first().copied())
            .collect();
        let mut builder = GraphBuilder::extend(body.graph);
        builder.set_scope("gradients");
        let mut starts = Vec::with_capacity(ys.len());
        for (position, (_, dtype)) in ys.iter().enumerate() {
            starts.push(argument(&mut builder, *dtype, args.len() + position)?);
        }
        let pick = |all: &[Output], index: usize| {
            let found = all.get(index).copied();
            found.ok_or_else(|| internal!("a function has no argument or result {index}"))
        };
        let ys: Vec<Output> = ys
            .iter()
            .map(|(y, _)| pick(&rets, *y))
            .collect::<Result<_>>()?;
        let xs: Vec<Output> = xs.iter().map(|x| pick(&args, *x)).collect::<Result<_>>()?;
        let given: Vec<Option<Output>> = starts.iter().map(|start| Some(*start)).collect();
        let mut grads = Vec::with_capacity(xs.len());
        for grad in gradients(&mut builder, &ys, &xs, &given)? {
            grads.push(match grad {
                Some(grad) => Some(densify(&mut builder, grad)?),
                None => None,
            });
        }
        Ok(Halves {
            builder,
            args,
            rets,
            control_rets: body.control_rets,
            starts,
            grads,
        })
    }

    /// A further argument.
    pub(super) fn argument(&mut self, dtype: DType) -> Result<Output> {
        let index = self.builder.graph().len();
        argument(&mut self.builder, dtype, index)
    }

    pub(super) fn dtype(&self, output: Output) -> Result<DType> {
        let port = self.builder.graph().output_type(output);
        port.map(|port| port.dtype)
            .ok_or_else(|| internal!("a gradient reads what its graph does not have"))
    }

    /// What the backward half reads of the forward half to compute these results. Constants are not among
    /// it: both halves have their own.
    pub(super) fn crossing(&self, results: &[Output]) -> Result<Vec<Output>> {
        let graph = self.builder.graph();
        let mut backward = vec![false; graph.len()];
        let mut constant = vec![false; graph.len()];
        for start in &self.starts {
            backward[start.node.index()] = true;
        }
        for id in graph.topological_order()? {
            let node = graph.node(id);
            let mut inputs = node.inputs.iter().map(|input| input.node.index());
            if inputs.clone().any(|input| backward[input]) {
                backward[id.index()] = true;
            } else if !node.is_stateful() {
                constant[id.index()] = match node.inputs.is_empty() {
                    true => node.op_name() == "Const",
                    false => inputs.all(|input| constant[input]),
                };
            }
        }
        let mut found = Vec::new();
        let mut seen: FxHashSet<Output> = FxHashSet::default();
        let mut stack: Vec<Output> = results.iter().rev().copied().collect();
        while let Some(output) = stack.pop() {
            if constant[output.node.index()] || !seen.insert(output) {
                continue;
            }
            if backward[output.node.index()] {
                stack.extend(graph.node(output.node).inputs.iter().rev());
            } else {
                found.push(output);
            }
        }
        Ok(found)
    }
}

fn argument(builder: &mut GraphBuilder, dtype: DType, index: usize) -> Result<Output> {
    let node = builder.op("_Arg").attr("T", dtype);
    node.attr("index", index as i64).output()
}

/// The dtype of the gradient of a tensor: its own, or that of the variable whose handle it is. `None` if
/// nothing can flow.
pub(super) fn gradient_dtype(graph: &Graph, output: Output) -> Option<DType> {
    let dtype = graph.output_type(output)?.dtype;
    match dtype {
        DType::Resource => value_dtype(graph, output),
        other => other.is_differentiable().then_some(other),
    }
}

/// The dtype of a variable as its readers tell it.
fn value_dtype(graph: &Graph, handle: Output) -> Option<DType> {
    let readers = graph
        .nodes()
        .filter(|(_, node)| node.inputs.contains(&handle));
    for (_, node) in readers {
        if let Some(callees) = Callees::of(node) {
            let position = node.inputs.iter().position(|input| *input == handle)?;
            let position = position.checked_sub(callees.first)?;
            let builder = GraphBuilder::extend(graph.clone());
            for func in &callees.functions {
                let body = instantiate(&builder, func).ok()?;
                let arg = Output::from(*body.args.get(position)?);
                if let Some(found) = value_dtype(&body.graph, arg) {
                    return Some(found);
                }
            }
        } else if let Ok(dtype) = node.attrs.dtype("dtype") {
            return Some(dtype);
        }
    }
    None
}
