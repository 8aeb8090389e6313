//! `ShardedFilename`, `ShardedFilespec`: names of the parts of a checkpoint.
//!
//! TensorFlow: ShardedFilename(basename, shard, num_shards) -> "%s-%05d-of-%05d"; ShardedFilespec(basename, num_shards).

use tensorfleet_checkpoint::bundle::sharded_file_name;
use tensorfleet_graph::example::{ex, i32s, strs};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
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
        examples: &[ex(
            "one of three",
            &[strs(&[], &["dir/m"]), i32s(&[], &[1]), i32s(&[], &[3])],
            &[strs(&[], &["dir/m-00001-of-00003"])],
        )],
        ..NAME
    },
    OpDef {
        name: "ShardedFilespec",
        inputs: &["basename: string", "num_shards: int32"],
        kernels: &[cpu(&[], build_spec)],
        examples: &[ex(
            "of three",
            &[strs(&[], &["m"]), i32s(&[], &[3])],
            &[strs(&[], &["m-?????-of-00003"])],
        )],
        ..NAME
    },
];

fn number(ctx: &KernelCtx<'_>, index: usize) -> Result<i32> {
    i32::try_from(ctx.int(index)?).map_err(|_| invalid_argument!("input {index} must be an int32"))
}

fn build_name(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = sharded_file_name(&text_input(ctx, 0)?, number(ctx, 1)?, number(ctx, 2)?);
        ctx.set(0, Tensor::string(name));
        Ok(())
    })
}

fn build_spec(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = format!("{}-?????-of-{:05}", text_input(ctx, 0)?, number(ctx, 1)?);
        ctx.set(0, Tensor::string(name));
        Ok(())
    })
}
