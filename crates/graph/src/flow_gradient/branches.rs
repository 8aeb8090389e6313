//! The gradient of a conditional is a conditional over the gradients of its branches; that of a call is a call.

use tensorfleet_kernel::{AttrList, AttrValue, Attrs, FuncRef};
use tensorfleet_status::{Result, internal, unimplemented};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::halves::{Halves, gradient_dtype};
use super::{
    Callees, check_rewritable, copy_hints, define, dtypes, empty_list, extend_output_shapes,
    instantiate, type_list, zeros_like,
};
use crate::builder::GraphBuilder;
use crate::function_def::FunctionWriter;
use crate::gradient::{Grad, InputGrads};
use crate::graph::{Node, NodeId, Output};

/// Arguments that get a gradient, and its dtype.
type Xs = Vec<(usize, DType)>;

/// One branch on its way to two functions.
struct Branch {
    halves: Halves,
    /// The gradients of the arguments that get one.
    results: Vec<Output>,
    /// What the branch returns for its gradient.
    saved: Vec<Output>,
}

pub(super) fn gradient(
    builder: &mut GraphBuilder,
    id: NodeId,
    node: &Node,
    sums: &[Option<Output>],
    wanted: &[bool],
) -> Result<InputGrads> {
    let callees = Callees::of(node)
        .ok_or_else(|| internal!("'{}' does not name the function it calls", node.name))?;
    let mut grads: InputGrads = vec![None; node.inputs.len()];
    let (mut branches, xs) = differentiate(builder, node, &callees, sums, wanted)?;
    if xs.is_empty() {
        return Ok(grads);
    }
    check_rewritable(builder, id)?;
    let handed_on = hand_on(&mut branches, &xs)?;
    let forward = forward_functions(builder, node, &mut branches)?;
    let saved: Vec<DType> = saved_types(&branches)?;
    rewrite(builder, id, node, forward, &saved)?;

    let first_saved = node.output_types.len();
    let mut inputs: Vec<Output> = sums.iter().flatten().copied().collect();
    inputs.extend(handed_on.iter().map(|arg| node.inputs[callees.first + arg]));
    inputs.extend((0..saved.len()).map(|port| id.output(first_saved + port)));
    let backward = backward_functions(builder, node, &branches, &handed_on)?;
    let types: Vec<DType> = xs.iter().map(|(_, dtype)| *dtype).collect();
    let call = call_backward(builder, node, backward, &inputs, &types)?;
    for (port, (x, _)) in xs.iter().enumerate() {
        grads[callees.first + x] = Some(Grad::Dense(call.output(port)));
    }
    Ok(grads)
}

/// The branches with their gradients, and the arguments that get one with its dtype.
fn differentiate(
    builder: &mut GraphBuilder,
    node: &Node,
    callees: &Callees,
    sums: &[Option<Output>],
    wanted: &[bool],
) -> Result<(Vec<Branch>, Xs)> {
    let mut bodies = Vec::new();
    for func in &callees.functions {
        bodies.push(instantiate(builder, func)?);
    }
    let ys: Vec<(usize, DType)> = (0..sums.len())
        .filter(|index| sums[*index].is_some())
        .map(|index| (index, node.output_types[index].dtype))
        .collect();
    let args = node.inputs.len() - callees.first;
    let dtype = |arg: usize| {
        let mut bodies = bodies.iter();
        bodies.find_map(|body| gradient_dtype(&body.graph, Output::from(*body.args.get(arg)?)))
    };
    let xs: Vec<(usize, DType)> = (0..args)
        .filter(|arg| wanted[callees.first + arg])
        .filter_map(|arg| Some((arg, dtype(arg)?)))
        .collect();
    let positions: Vec<usize> = xs.iter().map(|(arg, _)| *arg).collect();
    let mut all = Vec::new();
    for mut body in bodies {
        body.graph.set_library(builder.graph().library().clone());
        let halves = Halves::new(body, &ys, &positions)
            .map_err(|status| status.context(format!("in '{}'", node.name)))?;
        let library = halves.builder.graph().library().clone();
        builder.graph_mut().set_library(library);
        all.push(halves);
    }
    let some = |index: usize| all.iter().any(|halves| halves.grads[index].is_some());
    let kept: Vec<usize> = (0..xs.len()).filter(|index| some(*index)).collect();
    let mut branches = Vec::new();
    for mut halves in all {
        let mut results = Vec::new();
        for index in &kept {
            let (arg, dtype) = xs[*index];
            results.push(match halves.grads[*index] {
                Some(grad) => grad,
                None => zeros_like(&mut halves.builder, halves.args[arg], dtype)?,
            });
        }
        branches.push(Branch {
            halves,
            results,
            saved: Vec::new(),
        });
    }
    Ok((branches, kept.iter().map(|index| xs[*index]).collect()))
}

/// Sets what each branch saves. Arguments need not be saved: those that are read again are returned.
fn hand_on(branches: &mut [Branch], xs: &[(usize, DType)]) -> Result<Vec<usize>> {
    let mut handed_on = Vec::new();
    for branch in branches {
        debug_assert_eq!(branch.results.len(), xs.len());
        for output in branch.halves.crossing(&branch.results)? {
            match branch.halves.args.iter().position(|arg| *arg == output) {
                Some(arg) if !handed_on.contains(&arg) => handed_on.push(arg),
                Some(_) => {}
                None => branch.saved.push(output),
            }
        }
    }
    Ok(handed_on)
}

fn saved_types(branches: &[Branch]) -> Result<Vec<DType>> {
    let mut types = Vec::new();
    for branch in branches {
        for output in &branch.saved {
            types.push(branch.halves.dtype(*output)?);
        }
    }
    Ok(types)
}

/// The branches once more, each also returning what it saves, and something in place of what others save.
fn forward_functions(
    builder: &mut GraphBuilder,
    node: &Node,
    branches: &mut [Branch],
) -> Result<Vec<FuncRef>> {
    let types = saved_types(branches)?;
    if types.contains(&DType::Resource) {
        return Err(unimplemented!(
            "the gradient of '{}' needs a resource that is made inside of it; make it outside",
            node.name
        ));
    }
    let mut functions = Vec::new();
    let mut first = 0;
    for branch in branches {
        let mut rets = branch.halves.rets.clone();
        let own = first..first + branch.saved.len();
        for (position, dtype) in types.iter().enumerate() {
            let output = match position.checked_sub(own.start) {
                Some(index) if own.contains(&position) => branch.saved[index],
                _ => nothing(&mut branch.halves.builder, *dtype)?,
            };
            rets.push(output);
        }
        first = own.end;
        let halves = &branch.halves;
        let mut function = FunctionWriter::new(halves.builder.graph());
        for arg in &halves.args {
            function = function.arg(halves.dtype(*arg)?, Some(*arg));
        }
        let function = function.rets(&rets).control_rets(&halves.control_rets);
        functions.push(define(builder, &base(node, "forward"), function)?.func);
    }
    Ok(functions)
}

/// What a branch returns that has nothing to say.
fn nothing(builder: &mut GraphBuilder, dtype: DType) -> Result<Output> {
    if dtype == DType::Variant {
        return empty_list(builder, DType::F32);
    }
    builder.constant(Tensor::zeros(dtype, Shape::scalar())?)
}

fn rewrite(
    builder: &mut GraphBuilder,
    id: NodeId,
    node: &Node,
    functions: Vec<FuncRef>,
    saved: &[DType],
) -> Result<()> {
    let mut attrs = node.attrs.clone();
    set_functions(node, &mut attrs, functions);
    let types = dtypes(&node.output_types).chain(saved.iter().copied());
    attrs.set("Tout", type_list(types));
    extend_output_shapes(&mut attrs, saved.len());
    let inputs = node.inputs.clone();
    builder.graph_mut().rewrite(id, attrs, inputs)
}

fn backward_functions(
    builder: &mut GraphBuilder,
    node: &Node,
    branches: &[Branch],
    handed_on: &[usize],
) -> Result<(Vec<FuncRef>, bool)> {
    let types = saved_types(branches)?;
    let mut functions = Vec::new();
    let mut is_stateful = false;
    let mut first = 0;
    for branch in branches {
        let halves = &branch.halves;
        let mut function = FunctionWriter::new(halves.builder.graph()).without_controls();
        for start in &halves.starts {
            function = function.arg(halves.dtype(*start)?, Some(*start));
        }
        for arg in handed_on {
            let arg = halves.args[*arg];
            function = function.arg(halves.dtype(arg)?, Some(arg));
        }
        for (position, dtype) in types.iter().enumerate() {
            let index = position.checked_sub(first);
            let saved = index.and_then(|index| branch.saved.get(index).copied());
            function = function.arg(*dtype, saved);
        }
        first += branch.saved.len();
        let function = function.rets(&branch.results);
        let defined = define(builder, &base(node, "backward"), function)?;
        is_stateful |= defined.is_stateful;
        functions.push(defined.func);
    }
    Ok((functions, is_stateful))
}

fn call_backward(
    builder: &mut GraphBuilder,
    node: &Node,
    (functions, is_stateful): (Vec<FuncRef>, bool),
    inputs: &[Output],
    types: &[DType],
) -> Result<NodeId> {
    let mut attrs = Attrs::new();
    set_functions(node, &mut attrs, functions);
    copy_hints(node, &mut attrs);
    let (kind, selector) = match node.op_name() {
        "If" | "StatelessIf" => ("If", node.inputs.first()),
        "Case" | "StatelessCase" => ("Case", node.inputs.first()),
        _ => ("PartitionedCall", None),
    };
    let op = match (kind, is_stateful) {
        ("PartitionedCall", true) => "StatefulPartitionedCall".to_owned(),
        ("PartitionedCall", false) | (_, true) => kind.to_owned(),
        (_, false) => format!("Stateless{kind}"),
    };
    let mut call = builder.op(&op).name(format!("{}_grad", node.name));
    if let Some(selector) = selector {
        call = call.input(*selector);
    }
    for (name, value) in attrs.iter() {
        call = call.attr(name, value.clone());
    }
    call.list(inputs)
        .attr("Tout", type_list(types.iter().copied()))
        .build()
}

fn set_functions(node: &Node, attrs: &mut Attrs, functions: Vec<FuncRef>) {
    let mut functions = functions.into_iter();
    match node.op_name() {
        "If" | "StatelessIf" => {
            for (name, func) in ["then_branch", "else_branch"].iter().zip(functions) {
                attrs.set(*name, AttrValue::Func(func));
            }
        }
        "Case" | "StatelessCase" => {
            let all = AttrList::Func(functions.collect());
            attrs.set("branches", AttrValue::List(all));
        }
        _ => {
            if let Some(func) = functions.next() {
                attrs.set("f", AttrValue::Func(func));
            }
        }
    }
}

fn base(node: &Node, half: &str) -> String {
    format!("{}_{half}", node.name)
}
