//! `RGBToHSV`, `HSVToRGB`: colours as hue, saturation and value, all from 0 to 1, and back.
//!
//! TensorFlow: RGBToHSV(images: T) -> output: T, HSVToRGB alike; the last dimension has the three channels.

use tensorfleet_graph::example::{Example, ex_err, ex_ref, f32s, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::{Num, Real};
use tensorfleet_math::par::chunks_mut;
use tensorfleet_status::{Code, Result, ensure, failed_precondition};
use tensorfleet_tensor::{DType, Tensor};

use crate::by_float;
use crate::math::cast::converted;
use crate::types::FLOATS;

/// Channels per task.
pub(super) const GRAIN: usize = 3 * 4096;

const EXAMPLES: &[Example] = &[
    ex_ref(
        "colours",
        &[],
        &[x(
            &[2, 4, 3],
            &[
                0.5, 0.25, 0.75, 0.125, 0.5, 0.25, 0.75, 0.5, 0.25, 0.25, 0.75, 0.5, 0.5, 0.75,
                0.25, 0.25, 0.5, 0.75, 0.875, 0.25, 0.5, 1.0, 0.03125, 0.0625,
            ],
        )],
    ),
    ex_ref(
        "grey",
        &[],
        &[f32s(&[2, 3], &[0.5, 0.5, 0.5, 0.0, 0.0, 0.0])],
    ),
    ex_ref("none", &[], &[f32s(&[0, 3], &[])]),
    ex_err(
        "channels",
        &[],
        &[f32s(&[2, 4], &[0.5])],
        Code::FailedPrecondition,
        "",
    ),
];

const COLOR: OpDef = OpDef {
    inputs: &["images: T"],
    outputs: &["output: T"],
    attrs: &["T: {half, bfloat16, float, double} = DT_FLOAT"],
    infer: infer::same_as_first,
    exactness: Exactness::Relative(4e-7),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "HSVToRGB",
        gradient: Gradient::Stop("as in TensorFlow, which does not differentiate it"),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Direction::ToRgb))],
        examples: EXAMPLES,
        ..COLOR
    },
    OpDef {
        name: "RGBToHSV",
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Direction::ToHsv))],
        examples: EXAMPLES,
        ..COLOR
    },
];

#[derive(Clone, Copy)]
enum Direction {
    ToRgb,
    ToHsv,
}

/// With the largest channel `M`, the smallest `m` and the two channels `X`, `Y` behind the largest one, saturation is
/// `(M - m) / M` and hue `(X - Y) / 6(M - m)` but for a constant. Masks have a one at the channel in question.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (image, grad) = (g.input(0), g.grad(0)?);
    let dtype = g.dtype(image);
    let axis = g.ints(&[-1])?;
    let largest = mask(g, "ArgMax", image)?;
    // Of equal channels the last counts as the smallest.
    let turned = g.apply("ReverseV2", &[image, axis])?;
    let smallest = mask(g, "ArgMin", turned)?;
    let smallest = g.apply("ReverseV2", &[smallest, axis])?;
    let (next, after) = (turn(g, largest, [2, 0, 1])?, turn(g, largest, [1, 2, 0])?);
    let sides = g.apply("Sub", &[next, after])?;
    let span = g.apply("Sub", &[largest, smallest])?;

    let top = weigh(g, image, largest)?;
    let bottom = weigh(g, image, smallest)?;
    let range = weigh(g, image, span)?;
    let difference = weigh(g, image, sides)?;
    let part = |g: &mut GradCtx<'_>, channel: i32| -> Result<Output> {
        let indices = g.ints(&[channel])?;
        let axis = g.ints(&[-1])?;
        let axis = g.apply("Squeeze", &[axis])?;
        g.apply("GatherV2", &[grad, indices, axis])
    };
    let (hue, saturation, value) = (part(g, 0)?, part(g, 1)?, part(g, 2)?);

    let of_value = g.apply("Mul", &[value, largest])?;
    let squared = g.apply("Mul", &[top, top])?;
    let by_top = g.apply("DivNoNan", &[bottom, squared])?;
    let by_top = g.apply("Mul", &[by_top, largest])?;
    let by_bottom = g.apply("DivNoNan", &[smallest, top])?;
    let of_saturation = g.apply("Sub", &[by_top, by_bottom])?;
    let of_saturation = g.apply("Mul", &[saturation, of_saturation])?;
    // As in TensorFlow the saturation does not depend on channels that are zero.
    let zero = g.constant(0.0, dtype)?;
    let counts = g.apply("Greater", &[image, zero])?;
    let counts = g.cast(counts, dtype)?;
    let of_saturation = g.apply("Mul", &[of_saturation, counts])?;
    let slope = g.apply("DivNoNan", &[difference, range])?;
    let slope = g.apply("Mul", &[slope, span])?;
    let slope = g.apply("Sub", &[sides, slope])?;
    let six = g.constant(6.0, dtype)?;
    let range = g.apply("Mul", &[range, six])?;
    let slope = g.apply("DivNoNan", &[slope, range])?;
    let of_hue = g.apply("Mul", &[hue, slope])?;
    let parts = [of_value, of_saturation, of_hue];
    dense(g.builder().op("AddN").list(&parts).output()?)
}

/// Ones where `op` finds the channel, zeros elsewhere.
fn mask(g: &mut GradCtx<'_>, op: &str, image: Output) -> Result<Output> {
    let dtype = g.dtype(image);
    let axis = g.builder().constant(Tensor::scalar(-1i32))?;
    let found = g.apply(op, &[image, axis])?;
    let depth = g.builder().constant(Tensor::scalar(3i32))?;
    let (one, zero) = (g.constant(1.0, dtype)?, g.constant(0.0, dtype)?);
    g.apply("OneHot", &[found, depth, one, zero])
}

/// The channels in another order.
fn turn(g: &mut GradCtx<'_>, channels: Output, order: [i32; 3]) -> Result<Output> {
    let order = g.ints(&order)?;
    let axis = g.builder().constant(Tensor::scalar(-1i32))?;
    g.apply("GatherV2", &[channels, order, axis])
}

/// The weighted sum of the channels, which keeps its dimension.
fn weigh(g: &mut GradCtx<'_>, channels: Output, weights: Output) -> Result<Output> {
    let product = g.apply("Mul", &[channels, weights])?;
    let axis = g.ints(&[-1])?;
    let sum = g.builder().op("Sum").input(product).input(axis);
    sum.attr("keep_dims", true).output()
}

fn build(node: &NodeInfo, direction: Direction) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let image = ctx.input(0)?;
        let shape = image.shape();
        ensure!(
            shape.rank() >= 1,
            invalid_argument,
            "input must be at least 1D{shape}"
        );
        let channels = shape.dim(shape.rank() - 1);
        if channels != 3 {
            return Err(failed_precondition!(
                "input must have 3 channels but input only has {channels} channels."
            ));
        }
        // Halves are rounded once, at the end; doubles keep their digits.
        let wide = if dtype == DType::F64 {
            dtype
        } else {
            DType::F32
        };
        let mut out = converted(ctx.par(), image, wide)?;
        by_float!(wide, T => chunks_mut(ctx.par(), out.slice_mut::<T>()?, GRAIN, |_, pixels| {
            for pixel in pixels.as_chunks_mut::<3>().0 {
                let from = pixel.map(Real::to_f64);
                let to = match direction {
                    Direction::ToRgb => to_rgb(from),
                    Direction::ToHsv => to_hsv(from),
                };
                *pixel = to.map(<T as Num>::from_f64);
            }
        }), else => {});
        ctx.set(0, converted(ctx.par(), &out, dtype)?);
        Ok(())
    })
}

fn to_hsv([r, g, b]: [f64; 3]) -> [f64; 3] {
    let value = r.max(g).max(b);
    let range = value - r.min(g).min(b);
    let saturation = if value > 0.0 { range / value } else { 0.0 };
    if range <= 0.0 {
        return [0.0, saturation, value];
    }
    let norm = 1.0 / (6.0 * range);
    let hue = if r == value {
        norm * (g - b)
    } else if g == value {
        norm * (b - r) + 2.0 / 6.0
    } else {
        norm * (r - g) + 4.0 / 6.0
    };
    [if hue < 0.0 { hue + 1.0 } else { hue }, saturation, value]
}

fn to_rgb([hue, saturation, value]: [f64; 3]) -> [f64; 3] {
    let turn = hue * 6.0;
    [
        (turn - 3.0).abs() - 1.0,
        2.0 - (turn - 2.0).abs(),
        2.0 - (turn - 4.0).abs(),
    ]
    .map(|share| (1.0 - saturation + saturation * share.clamp(0.0, 1.0)) * value)
}
