//! `BatchFunction`: a function that is called with the rows of several steps at once.
//!
//! TensorFlow: (in_tensors: Tin, captured_tensors: Tcaptured) -> out_tensors: Tout, with f: func. What is captured comes from
//! the last step of a batch. Nothing of a gRPC call says how urgent it is, so that the attributes for rows of low priority have
//! no effect, as in TensorFlow's own server; nor have costs of TPUs.
//!
//! Without a number of threads TensorFlow learns how many batches to work on at a time; here the number is fixed.

use std::sync::Arc;

use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::DType;

use super::batch::{batcher_of, finish};
use super::options::Options;
use super::task::{Task, Work, finish_without_rows, rows_of};
use super::tensors;
use crate::state::names::SharedName;

pub(crate) static OP: OpDef = OpDef {
    name: "BatchFunction",
    inputs: &["in_tensors: Tin", "captured_tensors: Tcaptured"],
    outputs: &["out_tensors: Tout"],
    attrs: &[
        "f: func",
        "num_batch_threads: int",
        "max_batch_size: int",
        "batch_timeout_micros: int",
        "max_enqueued_batches: int = 10",
        "allowed_batch_sizes: list(int) = []",
        "container: string = ''",
        "shared_name: string = ''",
        "batching_queue: string = ''",
        "low_priority_max_batch_size: int = 0",
        "low_priority_batch_timeout_micros: int = 0",
        "low_priority_allowed_batch_sizes: list(int) = []",
        "low_priority_max_enqueued_batches: int = 0",
        "mixed_priority_policy: {'low_priority_padding_with_max_batch_size', \
         'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', 'priority_merge'} = \
         'low_priority_padding_with_max_batch_size'",
        "batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', 'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'",
        "Tin: list(type) >= 1",
        "Tcaptured: list(type) >= 0",
        "Tout: list(type) >= 1",
        "enable_large_batch_splitting: bool = false",
    ],
    distributed: true,
    gradient: Gradient::None("TensorFlow has none"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (names, options) = (SharedName::of(node)?, Options::of_function(node)?);
    let func = Arc::new(node.attrs.func("f")?.clone());
    let line = node.attrs.str("batching_queue")?.to_owned();
    let (count, all) = (node.attrs.dtypes("Tin")?.len(), node.input_types.len());
    for (input, port) in node.input_types.iter().take(count).enumerate() {
        ensure!(
            port.dtype != DType::Resource,
            invalid_argument,
            "BatchFunction cannot take resource inputs but input {input} is a resource."
        );
    }
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = tensors(&mut ctx, 0, count).and_then(|inputs| {
            let rows = rows_of(&inputs)?;
            let captured = tensors(&mut ctx, count, all)?;
            Ok((
                batcher_of(&mut ctx, &names, &options)?,
                inputs,
                captured,
                rows,
            ))
        });
        match ready {
            Ok((.., 0)) => finish_without_rows(ctx),
            Ok((batcher, inputs, captured, rows)) => {
                let env = ctx.env().clone();
                let task = Task {
                    id: 0,
                    key: 0,
                    env,
                    work: Work::Call(func.clone()),
                    rows,
                    inputs,
                    captured,
                    done: finish(ctx),
                };
                batcher.submit(&line, task);
            }
            Err(status) => ctx.fail(status),
        }
    })
}
