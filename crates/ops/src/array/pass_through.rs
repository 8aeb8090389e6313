//! Ops that hand their input on and differ in what gradients, rewrites or feeds make of them.
//!
//! TensorFlow: StopGradient, PreventGradient, Snapshot, GuaranteeConst (input: T) -> output: T;
//! PlaceholderWithDefault(input: dtype) -> output: dtype. An unfed `PlaceholderWithDefault` is its input.

use tensorfleet_graph::example::{ex, ex_attrs, script, strs, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::DType;

use crate::types::PLAIN;

const PASS: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &["T: type"],
    infer: infer::same_as_first,
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "numbers",
            &[x(&[3], &[1.0, 2.0, 0.0])],
            &[x(&[3], &[1.0, 2.0, 0.0])],
        ),
        ex("empty", &[x(&[0, 2], &[])], &[x(&[0, 2], &[])]),
    ],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "GuaranteeConst",
        stateful: true,
        kernels: &[cpu(&[], build_constant)],
        scripts: &[script(
            "a variable is none",
            "v = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='v'}
             same = GuaranteeConst(v)",
            &["run same fails INVALID_ARGUMENT Input tensor cannot be a resource variable handle."],
        )],
        ..PASS
    },
    OpDef {
        name: "PlaceholderWithDefault",
        inputs: &["input: dtype"],
        outputs: &["output: dtype"],
        attrs: &["dtype: type", "shape: shape"],
        infer: infer_placeholder,
        gradient: Gradient::Rule(gradient),
        examples: &[
            ex_attrs(
                "not fed",
                &[("shape", "[?]")],
                &[x(&[2], &[1.0, 2.0])],
                &[x(&[2], &[1.0, 2.0])],
            ),
            ex_attrs(
                "strings of unknown rank",
                &[("shape", "?")],
                &[strs(&[1], &["a"])],
                &[strs(&[1], &["a"])],
            ),
        ],
        ..PASS
    },
    OpDef {
        name: "PreventGradient",
        attrs: &["T: type", "message: string = ''"],
        gradient: Gradient::None("PreventGradient forbids it"),
        ..PASS
    },
    OpDef {
        name: "Snapshot",
        kernels: &[cpu(&[("T", PLAIN)], build)],
        ..PASS
    },
    OpDef {
        name: "StopGradient",
        gradient: Gradient::Stop("that is what it is for"),
        ..PASS
    },
];

fn infer_placeholder(ctx: &mut InferCtx<'_>) -> Result<()> {
    // The shape that feeds must have, not that of the default.
    let shape = ctx.attrs().shape("shape")?.clone();
    ctx.set(0, shape);
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    dense(g.grad(0)?)
}

/// A handle stays the same, but what it names does not.
fn build_constant(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let tensor = ctx.take(0)?;
        ensure!(
            tensor.dtype() != DType::Resource,
            invalid_argument,
            "Input tensor cannot be a resource variable handle."
        );
        ctx.set(0, tensor);
        Ok(())
    })
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let tensor = ctx.take(0)?;
        ctx.set(0, tensor);
        Ok(())
    })
}
