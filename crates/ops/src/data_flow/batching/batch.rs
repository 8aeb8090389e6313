//! `Batch`: the rows of several steps, given to one of them.
//!
//! TensorFlow: (in_tensors: T) -> (batched_tensors: T, batch_index: int64, id: int64). Every step gets an id; the rows of the
//! index tell whose rows the batch has: id, first row, row behind the last. `Unbatch` hands results back by it.
//!
//! Here a step that is cancelled while it waits ends at once; TensorFlow's waits for its batch.

use tensorfleet_graph::example::script;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::{PartialShape, UNKNOWN_DIM};

use super::batcher::Batcher;
use super::options::Options;
use super::task::{Task, Work, finish_without_rows, rows_of};
use super::tensors;
use super::unbatch::node_name;
use crate::random::entropy;
use crate::state::names::SharedName;

pub(crate) static OP: OpDef = OpDef {
    name: "Batch",
    inputs: &["in_tensors: T"],
    outputs: &["batched_tensors: T", "batch_index: int64", "id: int64"],
    attrs: &[
        "num_batch_threads: int",
        "max_batch_size: int",
        "max_enqueued_batches: int = 10",
        "batch_timeout_micros: int",
        "allowed_batch_sizes: list(int) = []",
        "grad_timeout_micros: int",
        "container: string = ''",
        "shared_name: string = ''",
        "batching_queue: string = ''",
        "T: list(type) >= 1",
    ],
    distributed: true,
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    scripts: &[
        script(
            "rows are padded to a size that is allowed",
            "a = int32[2,1]{1, 2}
             s = string[2]{x, y}
             b = Batch([a, s]) {num_batch_threads=1, max_batch_size=4, batch_timeout_micros=1000, grad_timeout_micros=0, allowed_batch_sizes=[3, 4]}
             none = int32[0]{}
             e = Batch([none]) {num_batch_threads=1, max_batch_size=4, batch_timeout_micros=1000, grad_timeout_micros=0}
             n = Shape(b:2)",
            &[
                "fetch b:0, b:1 => int32[3,1]{1, 2, 1}; string[3]{x, y, x}",
                "fetch n => int32[2]{1, 3}",
                "fetch e:0, e:1, e:2 => int32[0]{}; int64[0]{}; int64[0]{}",
            ],
        ),
        script(
            "what does not fit",
            "a = int32[2]{1, 2}
             c = int32[3]{1, 2, 3}
             x = int32[]{1}
             uneven = Batch([a, c]) {num_batch_threads=1, max_batch_size=4, batch_timeout_micros=0, grad_timeout_micros=0}
             scalar = Batch([x]) {num_batch_threads=1, max_batch_size=4, batch_timeout_micros=0, grad_timeout_micros=0}
             large = Batch([c]) {num_batch_threads=1, max_batch_size=2, batch_timeout_micros=0, grad_timeout_micros=0}
             sizes = Batch([a]) {num_batch_threads=1, max_batch_size=2, batch_timeout_micros=0, grad_timeout_micros=0, allowed_batch_sizes=[2, 2]}
             last = Batch([a]) {num_batch_threads=1, max_batch_size=2, batch_timeout_micros=0, grad_timeout_micros=0, allowed_batch_sizes=[1]}
             idle = Batch([a]) {num_batch_threads=0, max_batch_size=2, batch_timeout_micros=0, grad_timeout_micros=0}",
            &[
                "fetch uneven:0 fails INVALID_ARGUMENT must have equal 0th-dimension size",
                "fetch scalar:0 fails INVALID_ARGUMENT must have at least one dimension",
                "fetch large:0 fails INVALID_ARGUMENT Task size 3 is larger than maximum input batch size 2",
                "fetch sizes:0 fails INVALID_ARGUMENT allowed_batch_sizes entries must be monotonically increasing",
                "fetch last:0 fails INVALID_ARGUMENT final entry in allowed_batch_sizes must equal max_batch_size",
                "fetch idle:0 fails INVALID_ARGUMENT num_batch_threads must be positive; was 0",
            ],
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let count = ctx.num_inputs();
    for index in 0..count {
        let shape = any_rows(ctx.input(index));
        ctx.set(index, shape);
    }
    ctx.set(count, PartialShape::new(&[UNKNOWN_DIM, 3]));
    ctx.set(count + 1, PartialShape::scalar());
    Ok(())
}

/// A shape with any number of rows.
pub(super) fn any_rows(shape: &PartialShape) -> PartialShape {
    let Some(dims) = shape.dims() else {
        return PartialShape::unknown();
    };
    let mut dims = dims.to_vec();
    if let Some(first) = dims.first_mut() {
        *first = UNKNOWN_DIM;
    }
    PartialShape::new(&dims)
}

/// Each step gets back the gradients of its rows.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (count, timeout) = (g.num_inputs(), g.attr("grad_timeout_micros")?);
    let (index, id) = (g.output(count), g.output(count + 1));
    let name = node_name(g);
    let mut grads = InputGrads::new();
    for input in 0..count {
        let grad = g.grad(input)?;
        let unbatch = g.builder().op("Unbatch").input(grad).input(index).input(id);
        let unbatch = unbatch
            .attr("timeout_micros", timeout.clone())
            .attr("shared_name", format!("batch_gradient_{name}_{input}"));
        grads.push(Some(Grad::Dense(unbatch.output()?)));
    }
    Ok(grads)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (names, options) = (SharedName::of(node)?, Options::of_batch(node)?);
    let line = node.attrs.str("batching_queue")?.to_owned();
    let count = node.input_types.len();
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = tensors(&mut ctx, 0, count).and_then(|inputs| {
            let rows = rows_of(&inputs)?;
            Ok((batcher_of(&mut ctx, &names, &options)?, inputs, rows))
        });
        match ready {
            Ok((_, _, 0)) => finish_without_rows(ctx),
            Ok((batcher, inputs, rows)) => {
                let env = ctx.env().clone();
                let task = Task {
                    id: 0,
                    key: entropy(),
                    env,
                    work: Work::Emit,
                    rows,
                    inputs,
                    captured: Vec::new(),
                    done: finish(ctx),
                };
                batcher.submit(&line, task);
            }
            Err(status) => ctx.fail(status),
        }
    })
}

/// The batches that a node shares with others of its name; who comes first decides on their sizes.
pub(super) fn batcher_of(
    ctx: &mut AsyncCtx,
    names: &SharedName,
    options: &Options,
) -> Result<std::sync::Arc<Batcher>> {
    ctx.view(|view| {
        let make = || Ok(Batcher::new(options.clone(), view.env().clock.clone()));
        let resources = &view.env().resources;
        resources.lookup_or_create(names.container(view), &names.name, make)
    })
}

/// Ends the node with what became of its task.
pub(super) fn finish(ctx: AsyncCtx) -> super::task::Done {
    Box::new(move |result: Result<Vec<tensorfleet_tensor::Tensor>>| {
        let wanted = ctx.node().output_types.len();
        match result {
            Ok(tensors) if tensors.len() == wanted => ctx.finish_with(tensors),
            Ok(_) => ctx.fail(tensorfleet_status::internal!(
                "Wrong number of batched output tensors"
            )),
            Err(status) => ctx.fail(status),
        }
    })
}
