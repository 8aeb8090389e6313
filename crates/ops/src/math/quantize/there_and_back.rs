//! `QuantizeAndDequantizeV2`, `QuantizeAndDequantizeV3`, `QuantizeAndDequantizeV4` and `QuantizeAndDequantizeV4Grad`: what is left of
//! floats that are stored as integers of some bits.
//!
//! TensorFlow: Op(input: T, input_min: T, input_max: T) -> output: T, kernels for float and double; the range is that of the input
//! unless range_given, one for all or (axis) one for each place of a dimension. V3 has the bits as an input. Of V2 and V3 the
//! gradient passes as it is, of V4 where the input is inside of the range.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, i32s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, Tensor};

use super::Channels;
use crate::math::calculus::first_of;
use crate::types::SINGLE_AND_DOUBLE;

const VALUES: &[f64] = &[-1.0, -0.5, 0.0, 0.25, 0.3125, 0.8125, 2.0, 5.0];
const GIVEN: (&str, &str) = ("range_given", "true");
const AXIS: (&str, &str) = ("axis", "0");
const OF_ATTRS: &[&str] = &[
    "signed_input: bool = true",
    "num_bits: int = 8",
    "range_given: bool = false",
    "T: {bfloat16, half, float, double}",
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'",
    "narrow_range: bool = false",
    "axis: int = -1",
];

const QUANTIZE: OpDef = OpDef {
    inputs: &["input: T", "input_min: T", "input_max: T"],
    outputs: &["output: T"],
    infer: infer::same_as_first,
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "QuantizeAndDequantizeV2",
        attrs: OF_ATTRS,
        gradient: Gradient::Rule(straight),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build)],
        examples: &[
            ex_attrs(
                "steps of a half",
                &[GIVEN, ("num_bits", "4")],
                &[x(&[8], VALUES), x(&[], &[-4.0]), x(&[], &[3.5])],
                &[x(&[8], &[-1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 2.0, 3.5])],
            ),
            ex_ref(
                "own range",
                &[],
                &[x(&[2, 4], VALUES), x(&[], &[0.0]), x(&[], &[0.0])],
            ),
            ex_ref(
                "unsigned, halves upwards",
                &[
                    ("signed_input", "false"),
                    ("round_mode", "HALF_UP"),
                    ("num_bits", "3"),
                ],
                &[x(&[8], VALUES), x(&[], &[0.0]), x(&[], &[0.0])],
            ),
            ex_ref(
                "narrow, own ranges of rows",
                &[("narrow_range", "true"), AXIS],
                &[x(&[2, 4], VALUES), x(&[], &[0.0]), x(&[], &[0.0])],
            ),
            ex_err(
                "order",
                &[GIVEN],
                &[x(&[8], VALUES), x(&[], &[1.0]), x(&[], &[0.0])],
                Code::InvalidArgument,
                "Invalid range: input_min 1 > input_max 0",
            ),
            ex_err(
                "bits",
                &[("num_bits", "62")],
                &[x(&[8], VALUES), x(&[], &[1.0]), x(&[], &[0.0])],
                Code::InvalidArgument,
                "num_bits is out of range: 62 with signed_input_ ",
            ),
            ex_err(
                "axis",
                &[("axis", "1")],
                &[x(&[8], VALUES), x(&[], &[1.0]), x(&[], &[0.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..QUANTIZE
    },
    OpDef {
        name: "QuantizeAndDequantizeV3",
        inputs: &[
            "input: T",
            "input_min: T",
            "input_max: T",
            "num_bits: int32",
        ],
        attrs: &[
            "signed_input: bool = true",
            "range_given: bool = true",
            "T: {bfloat16, half, float, double}",
            "narrow_range: bool = false",
            "axis: int = -1",
        ],
        gradient: Gradient::Rule(straight),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build)],
        examples: &[
            ex_ref(
                "four bits",
                &[],
                &[
                    x(&[8], VALUES),
                    x(&[], &[-4.0]),
                    x(&[], &[3.5]),
                    i32s(&[], &[4]),
                ],
            ),
            ex_ref(
                "own ranges of rows",
                &[("range_given", "false"), AXIS],
                &[
                    x(&[2, 4], VALUES),
                    x(&[], &[0.0]),
                    x(&[], &[0.0]),
                    i32s(&[], &[5]),
                ],
            ),
            ex_err(
                "bits",
                &[],
                &[
                    x(&[8], VALUES),
                    x(&[], &[-4.0]),
                    x(&[], &[3.5]),
                    i32s(&[], &[0]),
                ],
                Code::InvalidArgument,
                "num_bits is out of range: 0 with",
            ),
        ],
        ..QUANTIZE
    },
    OpDef {
        name: "QuantizeAndDequantizeV4",
        attrs: OF_ATTRS,
        gradient: Gradient::Rule(|g| {
            let (grad, input, axis) = (g.grad(0)?, g.input(0), g.attr("axis")?);
            let (min, max) = (g.input(1), g.input(2));
            let node = g.builder().op("QuantizeAndDequantizeV4Grad").input(grad);
            let node = node.input(input).input(min).input(max);
            let found = node.attr("axis", axis).build()?;
            Ok((0..3)
                .map(|port| Some(Grad::Dense(found.output(port))))
                .collect())
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build)],
        examples: &[ex_ref(
            "four bits",
            &[GIVEN, ("num_bits", "4")],
            &[x(&[8], VALUES), x(&[], &[-4.0]), x(&[], &[3.5])],
        )],
        ..QUANTIZE
    },
    OpDef {
        name: "QuantizeAndDequantizeV4Grad",
        inputs: &["gradients: T", "input: T", "input_min: T", "input_max: T"],
        outputs: &[
            "input_backprop: T",
            "input_min_backprop: T",
            "input_max_backprop: T",
        ],
        attrs: &["T: {bfloat16, half, float, double}", "axis: int = -1"],
        infer: |ctx| {
            ctx.set(0, ctx.input(1).clone());
            ctx.set(1, ctx.input(2).clone());
            ctx.set(2, ctx.input(2).clone());
            Ok(())
        },
        gradient: Gradient::Rule(|g| {
            let (grad, axis) = (g.grad(0)?, g.attr("axis")?);
            let (input, min, max) = (g.input(1), g.input(2), g.input(3));
            let node = g.builder().op("QuantizeAndDequantizeV4Grad").input(grad);
            let node = node.input(input).input(min).input(max);
            first_of(4, node.attr("axis", axis).build()?.output(0))
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            let axis = node.attrs.int("axis")?;
            match node.attrs.dtype("T")? {
                DType::F32 => build_gradient::<f32>(axis),
                _ => build_gradient::<f64>(axis),
            }
        })],
        examples: &[
            ex_ref(
                "inside",
                &[],
                &[
                    x(&[8], VALUES),
                    x(&[8], VALUES),
                    x(&[], &[-0.5]),
                    x(&[], &[2.0]),
                ],
            ),
            ex_ref(
                "ranges of rows",
                &[AXIS],
                &[
                    f32s(&[2, 4], VALUES),
                    f32s(&[2, 4], VALUES),
                    f32s(&[2], &[-0.5, 0.5]),
                    f32s(&[2], &[2.0, 3.0]),
                ],
            ),
        ],
        ..QUANTIZE
    },
];

/// The gradient as if nothing had been rounded.
fn straight(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    first_of(g.num_inputs(), grad)
}

/// The attributes.
#[derive(Clone, Copy)]
struct Plan {
    is_signed: bool,
    is_narrow: bool,
    is_given: bool,
    rounds_up: bool,
    /// `None` if the bits are input 3.
    bits: Option<i64>,
    axis: i64,
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let is_signed = attrs.bool("signed_input")?;
    let bits = attrs.int("num_bits").ok();
    if let Some(bits) = bits {
        check_bits(bits, is_signed)?;
    }
    let plan = Plan {
        is_signed,
        is_narrow: attrs.bool("narrow_range")?,
        is_given: attrs.bool("range_given")?,
        rounds_up: bits.is_some() && attrs.str("round_mode")? == "HALF_UP",
        bits,
        axis: attrs.int("axis")?,
    };
    match attrs.dtype("T")? {
        DType::F32 => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| run::<f32>(ctx, plan)),
        _ => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| run::<f64>(ctx, plan)),
    }
}

fn check_bits(bits: i64, is_signed: bool) -> Result<()> {
    ensure!(
        bits > 0 && bits < if is_signed { 62 } else { 63 },
        invalid_argument,
        "num_bits is out of range: {bits} with signed_input_ {}",
        u8::from(is_signed)
    );
    Ok(())
}

fn run<T: Element + Float + std::fmt::Display>(ctx: &mut KernelCtx<'_>, plan: Plan) -> Result<()> {
    let mut values = ctx.take(0)?;
    let channels = Channels::of(&values, plan.axis)?;
    let bits = match plan.bits {
        Some(bits) => bits,
        None => {
            ensure!(
                values.rank() > 0,
                invalid_argument,
                "Axis requested is larger than input dimensions. Axis: {} Input Dimensions: 0",
                plan.axis
            );
            let bits = ctx.int(3)?;
            check_bits(bits, plan.is_signed)?;
            bits
        }
    };
    let given = match plan.is_given {
        true => Some((
            bounds::<T>(ctx.input(1)?, "input_min", &channels)?,
            bounds::<T>(ctx.input(2)?, "input_max", &channels)?,
        )),
        false => None,
    };
    let values_of = values.slice_mut::<T>()?;
    for channel in 0..channels.count {
        let (mut min, mut max) = match &given {
            Some((mins, maxs)) => (mins[channel], maxs[channel]),
            None => {
                let mut range = (T::HIGHEST, T::LOWEST);
                for run in channels.runs(channel) {
                    for value in &values_of[run] {
                        range = (range.0.smaller(*value), range.1.larger(*value));
                    }
                }
                range
            }
        };
        if plan.is_given && channels.count == 1 && plan.axis == -1 {
            ensure!(
                min <= max,
                invalid_argument,
                "Invalid range: input_min {min} > input_max {max}"
            );
        }
        let (scale, inverse) = plan.scale(bits, &mut min, &mut max);
        for run in channels.runs(channel) {
            for value in &mut values_of[run] {
                let mut inside = *value;
                if plan.is_given {
                    inside = if inside > max { max } else { inside };
                    inside = if inside < min { min } else { inside };
                }
                *value = plan.rounded(inside.mul(scale)).mul(inverse);
            }
        }
    }
    ctx.set(0, values);
    Ok(())
}

impl Plan {
    /// The factor that takes the range to the integers and its inverse; one end of the range is moved so that zero stays.
    fn scale<T: Float>(self, bits: i64, min: &mut T, max: &mut T) -> (T, T) {
        let lowest = match (self.is_signed, self.is_narrow) {
            (false, _) => 0,
            (true, false) => -(1i64 << (bits - 1)),
            (true, true) => -(1i64 << (bits - 1)) + 1,
        };
        let highest = (1i64 << if self.is_signed { bits - 1 } else { bits }) - 1;
        let (lowest, highest) = (T::from_f64(lowest as f64), T::from_f64(highest as f64));
        let largest = T::from_f64(if size_of::<T>() == 4 {
            f64::from(f32::MAX)
        } else {
            f64::MAX
        });
        let from = |integer: T, end: T| match integer.mul(end) > T::ZERO {
            true => integer.div(end),
            false => largest,
        };
        let (of_min, of_max) = (from(lowest, *min), from(highest, *max));
        if of_min < of_max {
            let inverse = min.div(lowest);
            *max = highest.mul(inverse);
            (of_min, inverse)
        } else {
            let inverse = max.div(highest);
            *min = lowest.mul(inverse);
            (of_max, inverse)
        }
    }

    fn rounded<T: Float>(self, x: T) -> T {
        match self.rounds_up {
            true => T::from_f64(x.add(T::from_f64(0.5)).to_f64().floor()),
            false => T::from_f64(x.to_f64().round_ties_even()),
        }
    }
}

/// One end of each channel's range.
fn bounds<'a, T: Element>(bound: &'a Tensor, name: &str, channels: &Channels) -> Result<&'a [T]> {
    if channels.axis == -1 {
        ensure!(
            bound.rank() == 0,
            invalid_argument,
            "{name} must be a scalar."
        );
    } else {
        ensure!(
            bound.rank() == 1,
            invalid_argument,
            "Shape must be rank 1 for {name}_tensor when the axis is specified"
        );
        if bound.elements() != channels.count {
            return Err(invalid_argument!(
                "{name}_tensor has incorrect size, was {} expected {} to match dim {} of the input {}",
                bound.elements(),
                channels.count,
                channels.axis,
                bound.shape()
            ));
        }
    }
    bound.slice::<T>()
}

fn build_gradient<T: Element + Float>(axis: i64) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut grads = ctx.take(0)?;
        let input = ctx.input(1)?;
        ensure!(
            grads.shape() == input.shape(),
            invalid_argument,
            "gradient and input must be the same size"
        );
        let channels = Channels::of(input, axis)?;
        let mins = bounds::<T>(ctx.input(2)?, "input_min", &channels)?;
        let maxs = bounds::<T>(ctx.input(3)?, "input_max", &channels)?;
        let (values, grads_of) = (input.slice::<T>()?, grads.slice_mut::<T>()?);
        for channel in 0..channels.count {
            let (min, max) = (mins[channel], maxs[channel]);
            for run in channels.runs(channel) {
                for (grad, value) in grads_of[run.clone()].iter_mut().zip(&values[run]) {
                    let is_inside = *value >= min && *value <= max;
                    *grad = grad.mul(if is_inside { T::ONE } else { T::ZERO });
                }
            }
        }
        for output in [1, 2] {
            let shape = ctx.input(output + 1)?.shape().clone();
            ctx.set(output, Tensor::zeros(T::DTYPE, shape)?);
        }
        ctx.set(0, grads);
        Ok(())
    })
}
