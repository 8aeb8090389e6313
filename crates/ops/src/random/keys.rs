//! `StatelessRandomGetKeyCounter`, `StatelessRandomGetAlg`, `StatelessRandomGetKeyCounterAlg`: from seeds to streams.

use tensorfleet_graph::example::script;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::Philox;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Tensor};

use crate::types::INDEX;

/// TensorFlow's number of the Philox algorithm.
const PHILOX: i32 = 1;

const KEYS: OpDef = OpDef {
    inputs: &["seed: Tseed"],
    attrs: &["Tseed: {int32, int64} = DT_INT64"],
    infer: shapes,
    gradient: Gradient::Stop("keys are integers"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "StatelessRandomGetKeyCounter",
        outputs: &["key: uint64", "counter: uint64"],
        kernels: &[cpu(&[("Tseed", INDEX)], build)],
        scripts: &[script(
            "seed",
            "s = int64[2]{5, -7}\nk = StatelessRandomGetKeyCounter(s)",
            &["fetch k, k:1 => ?"],
        )],
        ..KEYS
    },
    OpDef {
        name: "StatelessRandomGetKeyCounterAlg",
        outputs: &["key: uint64", "counter: uint64", "alg: int32"],
        kernels: &[cpu(&[("Tseed", INDEX)], build)],
        scripts: &[script(
            "seed",
            "s = int32[2]{1, 2}\nk = StatelessRandomGetKeyCounterAlg(s)",
            &["fetch k, k:1, k:2 => ?"],
        )],
        ..KEYS
    },
    OpDef {
        name: "StatelessRandomGetAlg",
        inputs: &[],
        outputs: &["alg: int32"],
        attrs: &[],
        stateful: true,
        kernels: &[cpu(&[], build_alg)],
        scripts: &[script(
            "philox on a CPU",
            "a = StatelessRandomGetAlg()",
            &["fetch a => int32[]{1}"],
        )],
        ..KEYS
    },
];

fn shapes(ctx: &mut InferCtx<'_>) -> Result<()> {
    if ctx.num_outputs() == 1 {
        ctx.set(0, PartialShape::scalar());
        return Ok(());
    }
    ctx.set(0, PartialShape::new(&[1]));
    ctx.set(1, PartialShape::new(&[2]));
    ctx.set(2, PartialShape::scalar());
    Ok(())
}

/// The two numbers of a stateless seed.
pub(super) fn seed_pair(seed: &Tensor) -> Result<[i64; 2]> {
    if seed.rank() != 1 || seed.elements() != 2 {
        return Err(invalid_argument!(
            "seed must have shape [2], not {}",
            seed.shape()
        ));
    }
    Ok(match seed.dtype() {
        DType::I32 => {
            let values = seed.slice::<i32>()?;
            [i64::from(values[0]), i64::from(values[1])]
        }
        _ => {
            let values = seed.slice::<i64>()?;
            [values[0], values[1]]
        }
    })
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let philox = Philox::stateless(seed_pair(ctx.input(0)?)?);
        ctx.set(0, Tensor::vector(&[philox.key()]));
        ctx.set(1, Tensor::vector(&philox.counter()));
        ctx.set(2, Tensor::scalar(PHILOX));
        Ok(())
    })
}

fn build_alg(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        ctx.set(0, Tensor::scalar(PHILOX));
        Ok(())
    })
}
