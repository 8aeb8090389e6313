//! `CheckNumerics` and `CheckNumericsV2`: the input itself, an error if it holds a NaN or an infinity.
//!
//! TensorFlow: CheckNumerics(tensor: T) -> output: T, attr message, T in {bfloat16, half, float, double}. V2 tells the
//! infinities apart.

use tensorfleet_graph::example::{ex_attrs, ex_err, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::Element;

use super::elementwise::{input_dtype, no_function};
use crate::by_float;
use crate::types::FLOATS;

const INF: f64 = f64::INFINITY;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "CheckNumerics",
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, false))],
        examples: &[
            ex_attrs(
                "all is well",
                &[("message", "'m'")],
                &[x(&[2, 2], &[1.0, -2.0, 0.0, 4.0])],
                &[x(&[2, 2], &[1.0, -2.0, 0.0, 4.0])],
            ),
            ex_attrs(
                "empty",
                &[("message", "'m'")],
                &[x(&[0], &[])],
                &[x(&[0], &[])],
            ),
            ex_err(
                "NaN",
                &[("message", "'where it was'")],
                &[x(&[2], &[1.0, f64::NAN])],
                Code::InvalidArgument,
                "where it was : Tensor had NaN values",
            ),
            ex_err(
                "infinity",
                &[("message", "'m'")],
                &[x(&[], &[-INF])],
                Code::InvalidArgument,
                "m : Tensor had Inf values",
            ),
            ex_err(
                "both",
                &[("message", "'m'")],
                &[x(&[3], &[INF, 0.0, f64::NAN])],
                Code::InvalidArgument,
                "m : Tensor had Inf and NaN values",
            ),
        ],
        ..CHECK
    },
    OpDef {
        name: "CheckNumericsV2",
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, true))],
        examples: &[
            ex_attrs(
                "all is well",
                &[("message", "'m'")],
                &[x(&[2], &[1.0, -2.0])],
                &[x(&[2], &[1.0, -2.0])],
            ),
            ex_err(
                "one infinity",
                &[("message", "'m'")],
                &[x(&[1], &[-INF])],
                Code::InvalidArgument,
                "m : Tensor had -Inf values",
            ),
            ex_err(
                "all three",
                &[("message", "'m'")],
                &[x(&[3], &[-INF, INF, f64::NAN])],
                Code::InvalidArgument,
                "m : Tensor had -Inf, +Inf, and NaN values",
            ),
        ],
        ..CHECK
    },
];

const CHECK: OpDef = OpDef {
    inputs: &["tensor: T"],
    outputs: &["output: T"],
    attrs: &["T: {bfloat16, half, float, double}", "message: string"],
    stateful: true,
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// Checks the gradient as well.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let message = format!(
        "Not a number (NaN) or infinity (Inf) values detected in gradient. {}",
        g.attrs().str("message")?
    );
    let node = g.builder().op("CheckNumerics").input(grad);
    dense(node.attr("message", message.as_str()).output()?)
}

fn build(node: &NodeInfo, tells_signs: bool) -> Result<AnyKernel> {
    let message = node.attrs.str("message")?.to_string();
    let dtype = input_dtype(node);
    by_float!(dtype, T => build_of::<T>(message, tells_signs), else => Err(no_function(&node.op, dtype)))
}

fn build_of<T: Element + Float>(message: String, tells_signs: bool) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let values = ctx.input(0)?.slice::<T>()?;
        let is_finite = |value: &T| *value > T::LOWEST && *value < T::HIGHEST;
        // Whole blocks without a branch: the common case, all good, runs at the speed of memory.
        let good = |block: &[T]| {
            block
                .iter()
                .fold(true, |good, value| good & is_finite(value))
        };
        if !values.chunks(4096).all(good) {
            let found = describe(values, tells_signs);
            return Err(invalid_argument!("{message} : Tensor had {found} values"));
        }
        let tensor = ctx.take(0)?;
        ctx.set(0, tensor);
        Ok(())
    })
}

fn describe<T: Float>(values: &[T], tells_signs: bool) -> &'static str {
    let low = values.contains(&T::LOWEST);
    let high = values.contains(&T::HIGHEST);
    let nan = values.iter().any(|value| value.is_nan());
    match (tells_signs, low, high, nan) {
        (false, false, false, _) => "NaN",
        (false, _, _, false) => "Inf",
        (false, _, _, true) => "Inf and NaN",
        (true, true, true, true) => "-Inf, +Inf, and NaN",
        (true, true, true, false) => "-Inf and +Inf",
        (true, true, false, true) => "-Inf and NaN",
        (true, true, false, false) => "-Inf",
        (true, false, true, true) => "+Inf and NaN",
        (true, false, true, false) => "+Inf",
        (true, false, false, _) => "NaN",
    }
}
