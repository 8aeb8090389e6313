//! The gradient of a loop is a loop that undoes it, iteration by iteration.
//!
//! The forward loop gets a counter and lists on which each iteration pushes what its gradient will need;
//! the backward loop runs as often and pops. What the body hands on as it came needs no list. Every
//! variable of the loop that both influences the result and depends on something whose gradient is
//! asked for has a gradient that runs through the backward loop; for what only enters, such as
//! weights or the handles of variables, that amounts to the sum over all iterations.

use tensorfleet_kernel::{AttrValue, Attrs};
use tensorfleet_status::{Result, unimplemented};
use tensorfleet_tensor::{DType, Tensor};

use super::halves::{Halves, gradient_dtype};
use super::{
    check_rewritable, copy_hints, define, dtypes, empty_list, extend_output_shapes, instantiate,
    type_list, zeros_like,
};
use crate::builder::GraphBuilder;
use crate::function::FunctionBody;
use crate::function_def::FunctionWriter;
use crate::gradient::{Grad, InputGrads};
use crate::graph::{Graph, Node, NodeId, Output};

/// A loop on its way to two loops.
struct Loop {
    halves: Halves,
    /// The loop's variables that get a gradient, and its dtype.
    active: Vec<(usize, DType)>,
    /// Their gradients before an iteration, computed from those after it.
    results: Vec<Output>,
    /// What iterations save, the lists they save it on, and what the lists are popped to.
    saved: Vec<Saved>,
    /// The loop's variables that enter the backward loop too.
    handed_on: Vec<usize>,
    /// The counter, and the counter of the next iteration in either direction.
    counter: Output,
    up: Output,
    down: Output,
}

struct Saved {
    value: Output,
    dtype: DType,
    list: Output,
    pushed: Output,
    popped: Output,
    rest: Output,
}

pub(super) fn gradient(
    builder: &mut GraphBuilder,
    id: NodeId,
    node: &Node,
    sums: &[Option<Output>],
    wanted: &[bool],
) -> Result<InputGrads> {
    let mut grads: InputGrads = vec![None; node.inputs.len()];
    let body = instantiate(builder, node.attrs.func("body")?)?;
    let active = active(&body, sums, wanted);
    if active.is_empty() {
        return Ok(grads);
    }
    check_rewritable(builder, id)?;
    let split = Loop::new(body, active, node)?;
    let library = split.halves.builder.graph().library().clone();
    builder.graph_mut().set_library(library);
    split.rewrite_forward(builder, id, node)?;
    let backward = split.add_backward(builder, id, node, sums)?;
    for (position, (index, _)) in split.active.iter().enumerate() {
        grads[*index] = Some(Grad::Dense(backward.output(1 + position)));
    }
    Ok(grads)
}

/// The loop's variables that influence a result with a gradient and depend on an input whose gradient is wanted.
fn active(body: &FunctionBody, sums: &[Option<Output>], wanted: &[bool]) -> Vec<(usize, DType)> {
    let count = wanted.len();
    let reaches = reaches(body, count);
    let mut influences: Vec<bool> = sums.iter().map(Option::is_some).collect();
    influences.resize(count, false);
    let mut depends = wanted.to_vec();
    loop {
        let before = (influences.clone(), depends.clone());
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            if reaches[from][to] {
                influences[from] |= influences[to];
                depends[to] |= depends[from];
            }
        }
        if before == (influences.clone(), depends.clone()) {
            break;
        }
    }
    (0..count)
        .filter(|index| influences[*index] && depends[*index])
        .filter_map(|index| {
            let arg = Output::from(*body.args.get(index)?);
            Some((index, gradient_dtype(&body.graph, arg)?))
        })
        .collect()
}

/// For each argument, which results depend on it.
fn reaches(body: &FunctionBody, count: usize) -> Vec<Vec<bool>> {
    let consumers = body.graph.consumers();
    let from = |arg: &NodeId| {
        let mut seen = vec![false; body.graph.len()];
        let mut stack = vec![*arg];
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut seen[id.index()], true) {
                let readers = consumers[id.index()].iter();
                stack.extend(
                    readers
                        .filter(|(_, port)| port.is_some())
                        .map(|(id, _)| *id),
                );
            }
        }
        let mut reached: Vec<bool> = body.rets.iter().map(|ret| seen[ret.index()]).collect();
        reached.resize(count, false);
        reached
    };
    let mut all: Vec<Vec<bool>> = body.args.iter().map(from).collect();
    all.resize(count, vec![false; count]);
    all
}

impl Loop {
    fn new(body: FunctionBody, active: Vec<(usize, DType)>, node: &Node) -> Result<Loop> {
        let positions: Vec<usize> = active.iter().map(|(index, _)| *index).collect();
        let mut halves = Halves::new(body, &active, &positions)
            .map_err(|status| status.context(format!("in the loop '{}'", node.name)))?;
        let mut results = Vec::with_capacity(active.len());
        for (position, (index, dtype)) in active.iter().enumerate() {
            results.push(match halves.grads[position] {
                Some(grad) => grad,
                None => zeros_like(&mut halves.builder, halves.args[*index], *dtype)?,
            });
        }
        let (mut handed_on, mut values) = (Vec::new(), Vec::new());
        for output in halves.crossing(&results)? {
            let arg = halves.args.iter().position(|arg| *arg == output);
            match arg.filter(|arg| passes_on(halves.builder.graph(), halves.rets[*arg], output)) {
                Some(arg) => handed_on.push(arg),
                None => values.push(output),
            }
        }
        let counter = halves.argument(DType::I32)?;
        let one = halves.builder.constant(Tensor::scalar(1i32))?;
        let up = halves.builder.apply("AddV2", &[counter, one])?;
        let down = halves.builder.apply("Sub", &[counter, one])?;
        let mut saved = Vec::with_capacity(values.len());
        for value in values {
            saved.push(save(&mut halves, value, node)?);
        }
        Ok(Loop {
            halves,
            active,
            results,
            saved,
            handed_on,
            counter,
            up,
            down,
        })
    }

    /// Gives the loop a counter and the lists.
    fn rewrite_forward(&self, builder: &mut GraphBuilder, id: NodeId, node: &Node) -> Result<()> {
        let halves = &self.halves;
        let mut body = FunctionWriter::new(halves.builder.graph());
        for arg in &halves.args {
            body = body.arg(halves.dtype(*arg)?, Some(*arg));
        }
        body = body.arg(DType::I32, Some(self.counter));
        for saved in &self.saved {
            body = body.arg(DType::Variant, Some(saved.list));
        }
        let lists: Vec<Output> = self.saved.iter().map(|saved| saved.pushed).collect();
        let body = body.rets(&halves.rets).rets(&[self.up]).rets(&lists);
        let body = body.control_rets(&halves.control_rets);
        let body = define(builder, &format!("{}_forward_body", node.name), body)?;

        let old = instantiate(builder, node.attrs.func("cond")?)?;
        let mut cond = FunctionWriter::new(&old.graph);
        for (arg, dtype) in old.args.iter().zip(dtypes(&node.input_types)) {
            cond = cond.arg(dtype, Some(Output::from(*arg)));
        }
        cond = cond.arg(DType::I32, None);
        for _ in &self.saved {
            cond = cond.arg(DType::Variant, None);
        }
        let sources = old.rets.iter().map(|ret| old.graph.node(*ret));
        let rets: Vec<Output> = sources
            .filter_map(|ret| ret.inputs.first().copied())
            .collect();
        let cond = cond.rets(&rets).control_rets(&old.control_rets);
        let cond = define(builder, &format!("{}_forward_cond", node.name), cond)?;

        let mut inputs = node.inputs.clone();
        inputs.push(builder.constant(Tensor::scalar(0i32))?);
        for saved in &self.saved {
            inputs.push(empty_list(builder, saved.dtype)?);
        }
        let mut attrs = node.attrs.clone();
        let lists = std::iter::repeat_n(DType::Variant, self.saved.len());
        let types = dtypes(&node.input_types).chain([DType::I32]).chain(lists);
        attrs.set("T", type_list(types));
        attrs.set("body", AttrValue::Func(body.func));
        attrs.set("cond", AttrValue::Func(cond.func));
        extend_output_shapes(&mut attrs, 1 + self.saved.len());
        builder.graph_mut().rewrite(id, attrs, inputs)
    }

    /// The loop back: its variables are the counter, the gradients, the lists, and what is handed on.
    fn add_backward(
        &self,
        builder: &mut GraphBuilder,
        id: NodeId,
        node: &Node,
        sums: &[Option<Output>],
    ) -> Result<NodeId> {
        let count = node.inputs.len();
        let mut inputs = vec![id.output(count)];
        for (index, dtype) in &self.active {
            inputs.push(match sums.get(*index).copied().flatten() {
                Some(sum) => sum,
                None if *dtype == node.input_types[*index].dtype => {
                    zeros_like(builder, id.output(*index), *dtype)?
                }
                None => zeros_like(builder, node.inputs[*index], *dtype)?,
            });
        }
        inputs.extend((0..self.saved.len()).map(|list| id.output(count + 1 + list)));
        inputs.extend(self.handed_on.iter().map(|index| node.inputs[*index]));

        let body = define(
            builder,
            &format!("{}_backward_body", node.name),
            self.backward_body()?,
        )?;
        let mut test = GraphBuilder::new(builder.graph().registry().clone());
        let left = test.op("_Arg").attr("T", DType::I32).attr("index", 0i64);
        let left = left.output()?;
        let zero = test.constant(Tensor::scalar(0i32))?;
        let goes_on = test.apply("Greater", &[left, zero])?;
        let mut cond = FunctionWriter::new(test.graph()).arg(DType::I32, Some(left));
        for input in &inputs[1..] {
            let port = builder.graph().output_type(*input);
            cond = cond.arg(port.map_or(DType::F32, |port| port.dtype), None);
        }
        let cond = cond.rets(&[goes_on]);
        let cond = define(builder, &format!("{}_backward_cond", node.name), cond)?;

        let op = match body.is_stateful {
            true => "While",
            false => "StatelessWhile",
        };
        let mut attrs = Attrs::new();
        copy_hints(node, &mut attrs);
        let mut call = builder.op(op).name(format!("{}_grad", node.name));
        for (name, value) in attrs.iter() {
            call = call.attr(name, value.clone());
        }
        call.list(&inputs)
            .attr("cond", AttrValue::Func(cond.func))
            .attr("body", AttrValue::Func(body.func))
            .build()
    }

    fn backward_body(&self) -> Result<FunctionWriter<'_>> {
        let halves = &self.halves;
        let mut body = FunctionWriter::new(halves.builder.graph()).without_controls();
        body = body.arg(DType::I32, Some(self.counter));
        for start in &halves.starts {
            body = body.arg(halves.dtype(*start)?, Some(*start));
        }
        for saved in &self.saved {
            body = body.arg(DType::Variant, Some(saved.list));
            body = body.replace(saved.value, saved.popped);
        }
        let handed_on: Vec<Output> = self.handed_on.iter().map(|i| halves.args[*i]).collect();
        for arg in &handed_on {
            body = body.arg(halves.dtype(*arg)?, Some(*arg));
        }
        let rests: Vec<Output> = self.saved.iter().map(|saved| saved.rest).collect();
        let body = body.rets(&[self.down]).rets(&self.results);
        Ok(body.rets(&rests).rets(&handed_on))
    }
}

fn save(halves: &mut Halves, value: Output, node: &Node) -> Result<Saved> {
    let dtype = halves.dtype(value)?;
    if dtype == DType::Resource {
        return Err(unimplemented!(
            "the gradient of the loop '{}' needs a resource that is made inside of it; make it outside",
            node.name
        ));
    }
    let list = halves.argument(DType::Variant)?;
    let push = halves.builder.op("TensorListPushBack").input(list);
    let pushed = push.input(value).output()?;
    let any = halves.builder.constant(Tensor::scalar(-1i32))?;
    let pop = halves
        .builder
        .op("TensorListPopBack")
        .input(list)
        .input(any);
    let pop = pop.attr("element_dtype", dtype).build()?;
    Ok(Saved {
        value,
        dtype,
        list,
        pushed,
        popped: pop.output(1),
        rest: pop.output(0),
    })
}

/// Whether a result is just this argument, perhaps by way of identities.
fn passes_on(graph: &Graph, mut result: Output, arg: Output) -> bool {
    while result != arg {
        let node = graph.node(result.node);
        match node.inputs.as_slice() {
            [input] if node.op_name() == "Identity" => result = *input,
            _ => return false,
        }
    }
    true
}
