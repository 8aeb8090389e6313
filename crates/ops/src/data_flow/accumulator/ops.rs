//! `ConditionalAccumulator`, `ResourceConditionalAccumulator` and the ops on them.
//!
//! TensorFlow: ConditionalAccumulator() -> handle: Ref(string), with dtype, shape, reduction_type;
//! AccumulatorApplyGradient(handle, local_step, gradient), AccumulatorNumAccumulated(handle),
//! AccumulatorSetGlobalStep(handle, new_global_step), AccumulatorTakeGradient(handle, num_required).
//!
//! TensorFlow: ResourceConditionalAccumulator() -> handle: resource, with dtype, shape, reduction_type;
//! ResourceAccumulatorApplyGradient(handle, local_step, gradient), ResourceAccumulatorNumAccumulated(handle),
//! ResourceAccumulatorSetGlobalStep(handle, new_global_step), ResourceAccumulatorTakeGradient(handle, num_required).

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use super::gathered::Gathered;
use super::{Accumulator, Reduction};
use crate::data_flow::keeper::{Keeper, resource};

pub(super) const TYPES: &[DType] = &[DType::F32, DType::F64, DType::F16];

pub(super) const T: &str = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";

const SCRIPTS: &[Script] = &[
    script(
        "mean of two, then stale",
        "acc = ResourceConditionalAccumulator() {dtype=float, shape=[2], shared_name='acc'}
         zero = int64[]{0}
         one = int32[]{1}
         two = int32[]{2}
         a = float[2]{1, 2}
         b = float[2]{3, 6}
         apply_a = ResourceAccumulatorApplyGradient(acc, zero, a)
         apply_b = ResourceAccumulatorApplyGradient(acc, zero, b)
         count = ResourceAccumulatorNumAccumulated(acc)
         take = ResourceAccumulatorTakeGradient(acc, two) {dtype=float}",
        &[
            "run apply_a",
            "run apply_b",
            "fetch count => int32[]{2}",
            "fetch take => float[2]{2, 4}",
            "run apply_a",
            "fetch count => int32[]{0}",
        ],
    ),
    script(
        "sum, and a step from outside",
        "acc = ResourceConditionalAccumulator() {dtype=double, shape=[1], reduction_type='SUM', shared_name='sum'}
         zero = int64[]{0}
         five = int64[]{5}
         one = int32[]{1}
         none = int32[]{0}
         a = double[1]{1.5}
         old = ResourceAccumulatorApplyGradient(acc, zero, a)
         new = ResourceAccumulatorApplyGradient(acc, five, a)
         set = ResourceAccumulatorSetGlobalStep(acc, five)
         count = ResourceAccumulatorNumAccumulated(acc)
         take = ResourceAccumulatorTakeGradient(acc, one) {dtype=double}
         bad = ResourceAccumulatorTakeGradient(acc, none) {dtype=double}",
        &[
            "run set",
            "run old",
            "fetch count => int32[]{0}",
            "run new",
            "run new",
            "fetch take => double[1]{3}",
            "fetch bad fails INVALID_ARGUMENT Argument num_required must be positive, but was 0",
        ],
    ),
];

pub(super) const ACCUMULATOR: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("it holds gradients, it has none"),
    cost: Cost::Measured,
    exactness: Exactness::Rounding,
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

const BY_REF: OpDef = OpDef {
    scripts: &[script(
        "by reference: mean of two, then stale, then a step set back",
        "acc = ConditionalAccumulator() {dtype=float, shape=[2]}
         zero = int64[]{0}
         two = int32[]{2}
         a = float[2]{1, 2}
         b = float[2]{3, 6}
         wrong = float[3]{3, 6, 1}
         apply_a = AccumulatorApplyGradient(acc, zero, a)
         apply_b = AccumulatorApplyGradient(acc, zero, b)
         apply_wrong = AccumulatorApplyGradient(acc, zero, wrong)
         count = AccumulatorNumAccumulated(acc)
         back = AccumulatorSetGlobalStep(acc, zero)
         take = AccumulatorTakeGradient(acc, two) {dtype=float}",
        &[
            "run apply_a",
            "run apply_wrong fails INVALID_ARGUMENT Shape mismatch: expected [2], got [3]",
            "run apply_b",
            "fetch count => int32[]{2}",
            "fetch take => float[2]{2, 4}",
            "run apply_a",
            "fetch count => int32[]{0}",
            "run back",
            "run apply_a",
            "fetch count => int32[]{1}",
        ],
    )],
    ..ACCUMULATOR
};

pub(super) const ATTRS: &[&str] = &[
    T,
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
];

pub(crate) static OPS: [OpDef; 10] = [
    OpDef {
        name: "AccumulatorApplyGradient",
        inputs: &[
            "handle: Ref(string)",
            "local_step: int64",
            "gradient: dtype",
        ],
        attrs: &[T],
        stateful: false,
        kernels: &[cpu(&[("dtype", TYPES)], build_apply)],
        ..BY_REF
    },
    OpDef {
        name: "AccumulatorNumAccumulated",
        inputs: &["handle: Ref(string)"],
        outputs: &["num_accumulated: int32"],
        stateful: false,
        infer: infer::scalar,
        kernels: &[cpu(&[], build_count)],
        ..BY_REF
    },
    OpDef {
        name: "AccumulatorSetGlobalStep",
        inputs: &["handle: Ref(string)", "new_global_step: int64"],
        stateful: false,
        kernels: &[cpu(&[], build_set_step)],
        ..BY_REF
    },
    OpDef {
        name: "AccumulatorTakeGradient",
        inputs: &["handle: Ref(string)", "num_required: int32"],
        outputs: &["average: dtype"],
        attrs: &[T],
        stateful: false,
        kernels: &[cpu(&[("dtype", TYPES)], build_take)],
        ..BY_REF
    },
    OpDef {
        name: "ConditionalAccumulator",
        outputs: &["handle: Ref(string)"],
        attrs: ATTRS,
        kernels: &[cpu(&[("dtype", TYPES)], build)],
        cost: Cost::Cheap,
        ..BY_REF
    },
    OpDef {
        name: "ResourceConditionalAccumulator",
        outputs: &["handle: resource"],
        attrs: ATTRS,
        infer: infer::scalar,
        kernels: &[cpu(&[("dtype", TYPES)], build)],
        cost: Cost::Cheap,
        ..ACCUMULATOR
    },
    OpDef {
        name: "ResourceAccumulatorApplyGradient",
        inputs: &["handle: resource", "local_step: int64", "gradient: dtype"],
        attrs: &[T],
        kernels: &[cpu(&[("dtype", TYPES)], build_apply)],
        ..ACCUMULATOR
    },
    OpDef {
        name: "ResourceAccumulatorNumAccumulated",
        inputs: &["handle: resource"],
        outputs: &["num_accumulated: int32"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_count)],
        ..ACCUMULATOR
    },
    OpDef {
        name: "ResourceAccumulatorSetGlobalStep",
        inputs: &["handle: resource", "new_global_step: int64"],
        kernels: &[cpu(&[], build_set_step)],
        ..ACCUMULATOR
    },
    OpDef {
        name: "ResourceAccumulatorTakeGradient",
        inputs: &["handle: resource", "num_required: int32"],
        outputs: &["average: dtype"],
        attrs: &[T],
        kernels: &[cpu(&[("dtype", TYPES)], build_take)],
        ..ACCUMULATOR
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    build_with(node, false)
}

/// A kernel that hands out an accumulator, by handle or by reference as the node's output says.
pub(super) fn build_with(node: &NodeInfo, is_sparse: bool) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let keeper = Keeper::<Accumulator>::of(node)?;
    let (dtype, shape) = (attrs.dtype("dtype")?, attrs.shape("shape")?.clone());
    let reduction = if attrs.str("reduction_type")? == "SUM" {
        Reduction::Sum
    } else {
        Reduction::Mean
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let make = |_: &str| Ok(Accumulator::new(is_sparse, dtype, shape.clone(), reduction));
        let verify = |found: &Accumulator| {
            if (found.is_sparse, found.dtype, found.reduction) != (is_sparse, dtype, reduction)
                || found.shape != shape
            {
                return Err(invalid_argument!(
                    "Shared accumulator is of type {}, shape {} and reduction {:?}, asked for was {dtype}, {shape}, {reduction:?}",
                    found.dtype,
                    found.shape,
                    found.reduction
                ));
            }
            Ok(())
        };
        keeper.hand_out(ctx, make, verify)
    })
}

fn build_apply(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let step = ctx.scalar::<i64>(1)?;
        let gradient = ctx.take(2)?;
        resource::<Accumulator>(ctx)?.apply(step, || Ok(Gathered::Dense(gradient)))
    })
}

fn build_count(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let count = resource::<Accumulator>(ctx)?.accumulated();
        ctx.set(0, Tensor::scalar(i32::try_from(count).unwrap_or(i32::MAX)));
        Ok(())
    })
}

fn build_set_step(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let step = ctx.scalar::<i64>(1)?;
        resource::<Accumulator>(ctx)?.set_step(step);
        Ok(())
    })
}

pub(super) fn build_take(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::later(|mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| {
            let required = view.int(1)?;
            if required <= 0 {
                return Err(invalid_argument!(
                    "Argument num_required must be positive, but was {required}"
                ));
            }
            Ok((resource::<Accumulator>(view)?, required))
        });
        match ready {
            Ok((accumulator, required)) => accumulator.take(required, ctx),
            Err(status) => ctx.fail(status),
        }
    })
}
