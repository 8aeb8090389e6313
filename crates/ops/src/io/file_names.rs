//! `ShardedFilename`, `ShardedFilespec`: names of the parts of a checkpoint.
//!
//! TensorFlow: ShardedFilename(basename, shard, num_shards) -> "%s-%05d-of-%05d"; ShardedFilespec(basename, num_shards).

use tensorfleet_checkpoint::bundle::sharded_file_name;
use tensorfleet_graph::example::{ex, ex_err, i32s, strs};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::text_input;

const NAME: OpDef = OpDef {
    outputs: &["filename: string"],
    infer: infer::scalar,
    gradient: Gradient::Stop("names are not differentiated"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ShardedFilename",
        inputs: &["basename: string", "shard: int32", "num_shards: int32"],
        kernels: &[cpu(&[], build_name)],
        examples: &[
            ex(
                "one of three",
                &[strs(&[], &["dir/m"]), i32s(&[], &[1]), i32s(&[], &[3])],
                &[strs(&[], &["dir/m-00001-of-00003"])],
            ),
            ex_err(
                "shard in a vector",
                &[],
                &[strs(&[], &["m"]), i32s(&[1], &[1]), i32s(&[], &[3])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "number in a vector",
                &[],
                &[strs(&[], &["m"]), i32s(&[], &[1]), i32s(&[1], &[3])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..NAME
    },
    OpDef {
        name: "ShardedFilespec",
        inputs: &["basename: string", "num_shards: int32"],
        kernels: &[cpu(&[], build_spec)],
        examples: &[
            ex(
                "of three",
                &[strs(&[], &["m"]), i32s(&[], &[3])],
                &[strs(&[], &["m-?????-of-00003"])],
            ),
            ex_err(
                "name in a vector",
                &[],
                &[strs(&[1], &["m"]), i32s(&[], &[3])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..NAME
    },
];

/// The scalar in input `index`, a number.
fn number(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<i32> {
    check_scalar(ctx, index, name)?;
    ctx.input(index)?.to_scalar::<i32>()
}

/// The scalar in input 0, a text.
fn basename(ctx: &KernelCtx<'_>) -> Result<String> {
    check_scalar(ctx, 0, "basename")?;
    text_input(ctx, 0)
}

fn check_scalar(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<()> {
    let shape = ctx.input(index)?.shape();
    if shape.rank() == 0 {
        return Ok(());
    }
    Err(invalid_argument!(
        "{name} must be a scalar, got shape {shape}"
    ))
}

fn build_name(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = sharded_file_name(
            &basename(ctx)?,
            number(ctx, 1, "shard")?,
            number(ctx, 2, "num_shards")?,
        );
        ctx.set(0, Tensor::string(name));
        Ok(())
    })
}

fn build_spec(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = format!(
            "{}-?????-of-{:05}",
            basename(ctx)?,
            number(ctx, 1, "num_shards")?
        );
        ctx.set(0, Tensor::string(name));
        Ok(())
    })
}
