//! `FakeQuantWithMinMaxArgs`, `FakeQuantWithMinMaxVars`, `FakeQuantWithMinMaxVarsPerChannel` and their gradients: floats rounded as
//! if they were stored in a few bits.
//!
//! TensorFlow: FakeQuantWithMinMaxVars(inputs: float, min: float, max: float) -> outputs: float, with scalars for min and max; per
//! channel these are vectors as long as the last dimension; the first op has them as attributes. The range is moved a little, so
//! that zero is one of the numbers that can be stored. Gradients pass where the input was inside of the range.

use tensorfleet_graph::example::{Example, ex_err, ex_ref, f32s};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::{self, InferCtx};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::par::{chunks_mut, rows_mut};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{PartialShape, Tensor};

use super::super::elementwise::mapped;
use super::clamp;

/// Elements that are worth a thread of their own.
const GRAIN: usize = 16 << 10;

const STOP: Gradient = Gradient::Stop("TensorFlow marks it so");

const FAKE: OpDef = OpDef {
    attrs: &["num_bits: int = 8", "narrow_range: bool = false"],
    infer: infer::same_as_first,
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};
const OF_RANGE: OpDef = OpDef {
    inputs: &["inputs: float", "min: float", "max: float"],
    outputs: &["outputs: float"],
    ..FAKE
};
const GRADIENT: OpDef = OpDef {
    inputs: &[
        "gradients: float",
        "inputs: float",
        "min: float",
        "max: float",
    ],
    outputs: &[
        "backprops_wrt_input: float",
        "backprop_wrt_min: float",
        "backprop_wrt_max: float",
    ],
    infer: shapes,
    gradient: STOP,
    ..FAKE
};

const VALUES: &[f64] = &[-8.0, -6.0, -0.1, 0.0, 0.3, 5.9, 6.0, 7.5];
const MINS: &[f64] = &[-6.0, 0.0, -1.0, 2.0];
const MAXS: &[f64] = &[6.0, 0.0, 3.0, 5.0];
const NARROW: (&str, &str) = ("narrow_range", "true");
const BITS: (&str, &str) = ("num_bits", "4");

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "FakeQuantWithMinMaxArgs",
        inputs: &["inputs: float"],
        outputs: &["outputs: float"],
        attrs: &[
            "min: float = -6.0",
            "max: float = 6.0",
            "num_bits: int = 8",
            "narrow_range: bool = false",
        ],
        gradient: Gradient::Rule(|g| {
            let (grad, input) = (g.grad(0)?, g.input(0));
            let names = ["min", "max", "num_bits", "narrow_range"];
            dense(with_attrs(
                g,
                "FakeQuantWithMinMaxArgsGradient",
                &[grad, input],
                &names,
            )?)
        }),
        kernels: &[cpu(&[], |node| build_args(node, false))],
        examples: &[
            ex_ref("all", &[], &[f32s(&[2, 4], VALUES)]),
            ex_ref("narrow, four bits", &[NARROW, BITS], &[f32s(&[8], VALUES)]),
            ex_ref(
                "a range beside zero",
                &[("min", "0.5"), ("max", "2.5")],
                &[f32s(&[8], VALUES)],
            ),
            TOO_MANY_BITS,
            ex_err(
                "order",
                &[("min", "2.0"), ("max", "1.0")],
                &[f32s(&[8], VALUES)],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..FAKE
    },
    OpDef {
        name: "FakeQuantWithMinMaxArgsGradient",
        inputs: &["gradients: float", "inputs: float"],
        outputs: &["backprops: float"],
        attrs: &[
            "min: float = -6.0",
            "max: float = 6.0",
            "num_bits: int = 8",
            "narrow_range: bool = false",
        ],
        gradient: STOP,
        kernels: &[cpu(&[], |node| build_args(node, true))],
        examples: &[
            ex_ref("all", &[], &[f32s(&[8], VALUES), f32s(&[8], VALUES)]),
            ex_err(
                "sizes",
                &[],
                &[f32s(&[8], VALUES), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..FAKE
    },
    OpDef {
        name: "FakeQuantWithMinMaxVars",
        gradient: Gradient::Rule(|g| range_gradient(g, "FakeQuantWithMinMaxVarsGradient")),
        kernels: &[cpu(&[], |node| build(node, false))],
        examples: &[
            ex_ref(
                "all",
                &[],
                &[f32s(&[2, 4], VALUES), f32s(&[], &[-6.0]), f32s(&[], &[6.0])],
            ),
            ex_ref(
                "narrow, four bits",
                &[NARROW, BITS],
                &[f32s(&[8], VALUES), f32s(&[], &[-1.0]), f32s(&[], &[3.0])],
            ),
            ex_ref(
                "no range",
                &[],
                &[f32s(&[8], VALUES), f32s(&[], &[0.0]), f32s(&[], &[0.0])],
            ),
            ex_err(
                "rank",
                &[],
                &[f32s(&[8], VALUES), f32s(&[1], &[0.0]), f32s(&[], &[0.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..OF_RANGE
    },
    OpDef {
        name: "FakeQuantWithMinMaxVarsGradient",
        kernels: &[cpu(&[], |node| build_gradient(node, false))],
        examples: &[
            ex_ref(
                "all",
                &[],
                &[
                    f32s(&[8], VALUES),
                    f32s(&[8], VALUES),
                    f32s(&[], &[-1.0]),
                    f32s(&[], &[3.0]),
                ],
            ),
            ex_ref(
                "no range",
                &[],
                &[
                    f32s(&[8], VALUES),
                    f32s(&[8], VALUES),
                    f32s(&[], &[0.0]),
                    f32s(&[], &[0.0]),
                ],
            ),
        ],
        ..GRADIENT
    },
    OpDef {
        name: "FakeQuantWithMinMaxVarsPerChannel",
        gradient: Gradient::Rule(|g| {
            range_gradient(g, "FakeQuantWithMinMaxVarsPerChannelGradient")
        }),
        kernels: &[cpu(&[], |node| build(node, true))],
        examples: &[
            ex_ref(
                "all",
                &[],
                &[f32s(&[2, 4], VALUES), f32s(&[4], MINS), f32s(&[4], MAXS)],
            ),
            ex_err(
                "scalar",
                &[],
                &[f32s(&[], &[1.0]), f32s(&[4], MINS), f32s(&[4], MAXS)],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "size",
                &[],
                &[f32s(&[2, 4], VALUES), f32s(&[2], &[1.0]), f32s(&[4], MAXS)],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..OF_RANGE
    },
    OpDef {
        name: "FakeQuantWithMinMaxVarsPerChannelGradient",
        kernels: &[cpu(&[], |node| build_gradient(node, true))],
        examples: &[ex_ref(
            "all",
            &[],
            &[
                f32s(&[2, 4], VALUES),
                f32s(&[2, 4], VALUES),
                f32s(&[4], MINS),
                f32s(&[4], MAXS),
            ],
        )],
        ..GRADIENT
    },
];

const TOO_MANY_BITS: Example = ex_err(
    "bits",
    &[("num_bits", "17")],
    &[f32s(&[8], VALUES)],
    Code::InvalidArgument,
    "num_bits must be between 2 and 16, inclusive",
);

fn shapes(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, ctx.input(1).clone());
    let of_range = match ctx.input(2).rank() {
        Some(0) => PartialShape::scalar(),
        _ => ctx.input(2).clone(),
    };
    ctx.set(1, of_range.clone());
    ctx.set(2, of_range);
    Ok(())
}

fn with_attrs(
    g: &mut GradCtx<'_>,
    op: &str,
    inputs: &[tensorfleet_graph::Output],
    names: &[&str],
) -> Result<tensorfleet_graph::Output> {
    let mut kept = Vec::with_capacity(names.len());
    for name in names {
        kept.push((*name, g.attr(name)?));
    }
    let mut node = g.builder().op(op);
    for input in inputs {
        node = node.input(*input);
    }
    for (name, value) in kept {
        node = node.attr(name, value);
    }
    Ok(node.build()?.output(0))
}

fn range_gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let inputs = [g.grad(0)?, g.input(0), g.input(1), g.input(2)];
    let first = with_attrs(g, op, &inputs, &["num_bits", "narrow_range"])?;
    let outputs = (0..3).map(|port| Some(Grad::Dense(first.node.output(port))));
    Ok(outputs.collect())
}

/// The numbers that can be stored, as integers.
#[derive(Clone, Copy)]
struct Levels {
    least: f32,
    most: f32,
}

impl Levels {
    fn of(attrs: &Attrs) -> Result<Levels> {
        let bits = attrs.int("num_bits")?;
        ensure!(
            (2..=16).contains(&bits),
            invalid_argument,
            "num_bits must be between 2 and 16, inclusive"
        );
        Ok(Levels {
            least: if attrs.bool("narrow_range")? {
                1.0
            } else {
                0.0
            },
            most: ((1 << bits) - 1) as f32,
        })
    }

    /// The range with zero among its numbers; `None` for a range without width at zero.
    fn nudged(self, min: f32, max: f32) -> Option<Range> {
        if min == 0.0 && max == 0.0 {
            return None;
        }
        let steps = self.most - self.least;
        let scale = (max - min) / steps;
        let zero = self.least - min / scale;
        let zero = match zero {
            zero if zero < self.least => self.least,
            zero if zero > self.most => self.most,
            // An integer from zero on, also where the range is no number.
            zero => f32::from(zero.round() as u16),
        };
        Some(Range {
            min: (self.least - zero) * scale,
            max: (self.most - zero) * scale,
            scale,
            inverse: steps / (max - min),
        })
    }
}

#[derive(Clone, Copy)]
struct Range {
    min: f32,
    max: f32,
    scale: f32,
    inverse: f32,
}

impl Range {
    /// `x` rounded to one of the numbers; steps are counted by a division or by a product, as TensorFlow's ops do.
    #[inline(always)]
    fn rounded(&self, x: f32, by_division: bool) -> f32 {
        let zero = (-self.min * self.inverse + 0.5).floor();
        let above = clamp(x, self.min, self.max) - self.min;
        let steps = match by_division {
            true => above / self.scale,
            false => above * self.inverse,
        };
        (steps - zero + 0.5).floor() * self.scale
    }

    #[inline(always)]
    fn contains(&self, x: f32) -> bool {
        (x >= self.min) & (x <= self.max)
    }
}

fn build_args(node: &NodeInfo, is_gradient: bool) -> Result<AnyKernel> {
    let levels = Levels::of(&node.attrs)?;
    let (min, max) = (node.attrs.float("min")?, node.attrs.float("max")?);
    ensure!(
        min < max,
        invalid_argument,
        "min has to be smaller than max, was: {min} >= {max}"
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let range = levels.nudged(min, max);
        let values = if is_gradient {
            let mut values = ctx.take(0)?;
            same_size(&values, ctx.input(1)?)?;
            let (values_mut, inputs) = (values.slice_mut::<f32>()?, ctx.input(1)?.slice::<f32>()?);
            chunks_mut(ctx.par(), values_mut, GRAIN, |at, grads| {
                for (grad, x) in grads.iter_mut().zip(&inputs[at..]) {
                    *grad *= f32::from(range.is_some_and(|range| range.contains(*x)));
                }
            });
            values
        } else {
            all_rounded(ctx, range, false)?
        };
        ctx.set(0, values);
        Ok(())
    })
}

/// The first input with all elements rounded in one range.
fn all_rounded(ctx: &mut KernelCtx<'_>, range: Option<Range>, by_division: bool) -> Result<Tensor> {
    match (range, by_division) {
        (None, _) => mapped(ctx, 0, |_| 0.0f32),
        (Some(range), true) => mapped(ctx, 0, move |x| range.rounded(x, true)),
        (Some(range), false) => mapped(ctx, 0, move |x| range.rounded(x, false)),
    }
}

fn same_size(gradient: &Tensor, input: &Tensor) -> Result<()> {
    ensure!(
        gradient.shape() == input.shape(),
        invalid_argument,
        "gradient and input must be the same size"
    );
    Ok(())
}

/// The ranges in two inputs from `first` on: one, or one for each place in the last dimension of `input`.
fn ranges(
    ctx: &KernelCtx<'_>,
    input: &Tensor,
    first: usize,
    levels: Levels,
    by_channel: bool,
) -> Result<Vec<Option<Range>>> {
    let (min, max) = (ctx.input(first)?, ctx.input(first + 1)?);
    let rank = usize::from(by_channel);
    ensure!(
        input.rank() >= rank,
        invalid_argument,
        "input must be at least rank 1"
    );
    let depth = match by_channel {
        true => input.shape().dim(input.rank() - 1),
        false => 1,
    };
    for (name, bound) in [("min", min), ("max", max)] {
        ensure!(
            bound.rank() == rank,
            invalid_argument,
            "`{name}` must be rank {rank} but is rank {}",
            bound.rank()
        );
        ensure!(
            bound.elements() == depth,
            invalid_argument,
            "{name} has incorrect size, expected {depth} was {}",
            bound.elements()
        );
    }
    let bounds = min.slice::<f32>()?.iter().zip(max.slice::<f32>()?);
    Ok(bounds.map(|(min, max)| levels.nudged(*min, *max)).collect())
}

fn build(node: &NodeInfo, by_channel: bool) -> Result<AnyKernel> {
    let levels = Levels::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let ranges = ranges(ctx, ctx.input(0)?, 1, levels, by_channel)?;
        if !by_channel {
            let values = all_rounded(ctx, ranges.first().copied().flatten(), true)?;
            ctx.set(0, values);
            return Ok(());
        }
        let mut values = ctx.take(0)?;
        if !values.is_empty() {
            let (depth, all) = (ranges.len(), values.slice_mut::<f32>()?);
            rows_mut(ctx.par(), all, depth, GRAIN.div_ceil(depth), |_, rows| {
                for row in rows.chunks_exact_mut(depth) {
                    for (x, range) in row.iter_mut().zip(&ranges) {
                        *x = range.map_or(0.0, |range| range.rounded(*x, false));
                    }
                }
            });
        }
        ctx.set(0, values);
        Ok(())
    })
}

fn build_gradient(node: &NodeInfo, by_channel: bool) -> Result<AnyKernel> {
    let levels = Levels::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut grads = ctx.take(0)?;
        let input = ctx.input(1)?;
        same_size(&grads, input)?;
        let ranges = ranges(ctx, input, 2, levels, by_channel)?;
        let (mut below, mut above) = (vec![0.0f32; ranges.len()], vec![0.0f32; ranges.len()]);
        let places = grads
            .slice_mut::<f32>()?
            .iter_mut()
            .zip(input.slice::<f32>()?);
        for ((grad, x), at) in places.zip((0..ranges.len()).cycle()) {
            let Some(range) = &ranges[at] else { continue };
            if *x < range.min {
                below[at] += *grad;
            } else if *x > range.max {
                above[at] += *grad;
            }
            *grad *= f32::from(range.contains(*x));
        }
        let shape = ctx.input(2)?.shape().clone();
        ctx.set(1, Tensor::from_vec(shape.clone(), below)?);
        ctx.set(2, Tensor::from_vec(shape, above)?);
        ctx.set(0, grads);
        Ok(())
    })
}
