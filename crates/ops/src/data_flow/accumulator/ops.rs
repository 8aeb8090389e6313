//! `ResourceConditionalAccumulator` and the ops on it.
//!
//! TensorFlow: ResourceConditionalAccumulator() -> handle: resource, with dtype, shape, reduction_type;
//! ResourceAccumulatorApplyGradient(handle, local_step, gradient), ResourceAccumulatorNumAccumulated(handle),
//! ResourceAccumulatorSetGlobalStep(handle, new_global_step), ResourceAccumulatorTakeGradient(handle, num_required).

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, HandleData, ResourceHandle, Tensor};

use super::{Accumulator, Reduction};

const TYPES: &[DType] = &[DType::F32, DType::F64, DType::F16];

const T: &str = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";

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

const ACCUMULATOR: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("it holds gradients, it has none"),
    cost: Cost::Measured,
    exactness: Exactness::Rounding,
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "ResourceConditionalAccumulator",
        outputs: &["handle: resource"],
        attrs: &[
            T,
            "shape: shape",
            "container: string = ''",
            "shared_name: string = ''",
            "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
        ],
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
    let attrs = &node.attrs;
    let shared = attrs.str("shared_name")?;
    let name = if shared.is_empty() {
        format!("_accumulator_{}", node.name)
    } else {
        shared.to_owned()
    };
    let container = attrs.str("container")?.to_owned();
    let (dtype, shape) = (attrs.dtype("dtype")?, attrs.shape("shape")?.clone());
    let reduction = if attrs.str("reduction_type")? == "SUM" {
        Reduction::Sum
    } else {
        Reduction::Mean
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let env = ctx.env();
        let container = if container.is_empty() {
            env.device.default_container.clone()
        } else {
            container.clone()
        };
        let accumulator = env.resources.lookup_or_create(&container, &name, || {
            Ok(Accumulator::new(dtype, shape.clone(), reduction))
        })?;
        if accumulator.dtype != dtype || accumulator.reduction != reduction {
            return Err(invalid_argument!(
                "Shared accumulator '{name}' has type {} and reduction {:?}",
                accumulator.dtype,
                accumulator.reduction
            ));
        }
        let handle = ResourceHandle::new(HandleData {
            device: env.device.name.clone(),
            container,
            name: name.clone(),
            type_name: accumulator.type_name().to_owned(),
            object: Some(accumulator),
            ..HandleData::default()
        });
        ctx.set(0, Tensor::scalar(handle));
        Ok(())
    })
}

fn build_apply(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let step = ctx.scalar::<i64>(1)?;
        let gradient = ctx.take(2)?;
        ctx.resource::<Accumulator>(0)?.apply(step, gradient)
    })
}

fn build_count(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let count = ctx.resource::<Accumulator>(0)?.accumulated();
        ctx.set(0, Tensor::scalar(i32::try_from(count).unwrap_or(i32::MAX)));
        Ok(())
    })
}

fn build_set_step(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let step = ctx.scalar::<i64>(1)?;
        ctx.resource::<Accumulator>(0)?.set_step(step);
        Ok(())
    })
}

fn build_take(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::later(|mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| {
            let required = view.int(1)?;
            if required <= 0 {
                return Err(invalid_argument!(
                    "Argument num_required must be positive, but was {required}"
                ));
            }
            Ok((view.resource::<Accumulator>(0)?, required))
        });
        match ready {
            Ok((accumulator, required)) => accumulator.take(required, ctx),
            Err(status) => ctx.fail(status),
        }
    })
}
