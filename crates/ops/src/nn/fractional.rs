//! `FractionalAvgPool`, `FractionalMaxPool`: pooling of NHWC images by windows of random sizes that fit the ratio of sizes
//! on average.
//!
//! TensorFlow: FractionalMaxPool(value: T) -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64, with
//! pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2; FractionalAvgPool alike. The sequences say where windows
//! begin. A deterministic node makes the same windows in every step.

use tensorfleet_graph::example::{Example, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_math::pool2d::PoolElement;
use tensorfleet_math::random::{Philox, shuffle_order};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use super::conv_attrs::{four, with_attrs};
use crate::random::entropy;

pub(super) const TYPES: &[DType] = &[DType::F32, DType::F64, DType::I32, DType::I64];

const RATIO: (&str, &str) = ("pooling_ratio", "[1.0, 1.5, 1.25, 1.0]");
const SURE: (&str, &str) = ("deterministic", "true");
const SEED: (&str, &str) = ("seed", "3");
const SEED2: (&str, &str) = ("seed2", "7");

const EXAMPLES: &[Example] = &[
    ex_ref(
        "random",
        &[RATIO, SURE, SEED, SEED2],
        &[ramp(&[2, 7, 9, 2], 60.0, -1.0)],
    ),
    ex_ref(
        "pseudo-random, overlapping",
        &[
            RATIO,
            SURE,
            SEED,
            SEED2,
            ("pseudo_random", "true"),
            ("overlapping", "true"),
        ],
        &[ramp(&[2, 7, 9, 2], 60.0, -1.0)],
    ),
    ex_ref(
        "even",
        &[("pooling_ratio", "[1.0, 2.0, 2.0, 1.0]"), SURE, SEED],
        &[x(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0])],
    ),
    ex_err(
        "ratio below one",
        &[("pooling_ratio", "[1.0, 0.5, 2.0, 1.0]")],
        &[f32s(&[1, 4, 4, 1], &[1.0])],
        Code::InvalidArgument,
        "pooling_ratio cannot be smaller than 1, got: 0.5",
    ),
    ex_err(
        "channels",
        &[("pooling_ratio", "[1.0, 1.5, 1.5, 2.0]")],
        &[f32s(&[1, 4, 4, 2], &[1.0])],
        Code::Unimplemented,
        "pooling is not yet supported on the batch nor channel dimension.",
    ),
    ex_err(
        "seeds without being deterministic",
        &[RATIO, SEED],
        &[f32s(&[1, 4, 4, 1], &[1.0])],
        Code::InvalidArgument,
        "Both seed and seed2 should be 0 if deterministic is false.",
    ),
];

const POOL: OpDef = OpDef {
    inputs: &["value: T"],
    outputs: &[
        "output: T",
        "row_pooling_sequence: int64",
        "col_pooling_sequence: int64",
    ],
    attrs: &[
        "pooling_ratio: list(float) >= 4",
        "pseudo_random: bool = false",
        "overlapping: bool = false",
        "deterministic: bool = false",
        "seed: int = 0",
        "seed2: int = 0",
        "T: {float, double, int32, int64}",
    ],
    infer: pooled,
    exactness: Exactness::Relative(1e-6),
    examples: EXAMPLES,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "FractionalAvgPool",
        gradient: Gradient::Rule(avg_gradient),
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, Method::Average))],
        ..POOL
    },
    OpDef {
        name: "FractionalMaxPool",
        gradient: Gradient::Rule(max_gradient),
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, Method::Maximum))],
        ..POOL
    },
];

fn pooled(ctx: &mut InferCtx<'_>) -> Result<()> {
    let image = ctx.input(0).merge(&PartialShape::of_rank(4))?;
    let ratios = ctx.attrs().floats("pooling_ratio")?;
    let mut out = [UNKNOWN_DIM; 4];
    for (axis, (out, &ratio)) in out.iter_mut().zip(ratios).enumerate() {
        let size = image.dim(axis).filter(|size| *size >= 0 && ratio >= 1.0);
        *out = size.map_or(UNKNOWN_DIM, |size| (size as f32 / ratio).floor() as i64);
    }
    ctx.set(0, PartialShape::new(&out));
    for (output, axis) in [(1, 1), (2, 2)] {
        let length = if out[axis] < 0 {
            UNKNOWN_DIM
        } else {
            out[axis] + 1
        };
        ctx.set(output, PartialShape::new(&[length]));
    }
    Ok(())
}

fn avg_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, grad) = (g.input(0), g.grad(0)?);
    let shape = g.builder().op("Shape").input(input);
    let shape = shape.attr("out_type", DType::I64).output()?;
    let inputs = [shape, grad, g.output(1), g.output(2)];
    dense(with_attrs(
        g,
        "FractionalAvgPoolGrad",
        &["overlapping"],
        &inputs,
    )?)
}

fn max_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [
        g.input(0),
        g.output(0),
        g.grad(0)?,
        g.output(1),
        g.output(2),
    ];
    dense(with_attrs(
        g,
        "FractionalMaxPoolGrad",
        &["overlapping"],
        &inputs,
    )?)
}

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Average,
    Maximum,
}

/// A node's attributes.
#[derive(Clone)]
struct Fractions {
    ratios: [f32; 4],
    pseudo_random: bool,
    overlapping: bool,
    /// The seeds of a deterministic node.
    seeds: Option<(i64, i64)>,
}

impl Fractions {
    fn new(node: &NodeInfo, method: Method) -> Result<Fractions> {
        let attrs = &node.attrs;
        let Ok(ratios) = <[f32; 4]>::try_from(attrs.floats("pooling_ratio")?) else {
            return Err(invalid_argument!(
                "pooling_ratio field must specify 4 dimensions"
            ));
        };
        // NaN is no ratio either.
        if let Some(ratio) = ratios.iter().find(|ratio| ratio.is_nan() || **ratio < 1.0) {
            return Err(invalid_argument!(
                "pooling_ratio cannot be smaller than 1, got: {ratio}"
            ));
        }
        if ratios[0] != 1.0 || ratios[3] != 1.0 {
            let name = match method {
                Method::Average => "average",
                Method::Maximum => "max",
            };
            return Err(unimplemented!(
                "Fractional {name} pooling is not yet supported on the batch nor channel dimension."
            ));
        }
        let (seed, seed2) = (attrs.int("seed")?, attrs.int("seed2")?);
        let seeds = match (attrs.bool("deterministic")?, seed == 0 && seed2 == 0) {
            (true, true) => Some((entropy(), entropy())),
            (true, false) => Some((seed, seed2)),
            (false, true) => None,
            (false, false) => {
                return Err(invalid_argument!(
                    "Both seed and seed2 should be 0 if deterministic is false."
                ));
            }
        };
        Ok(Fractions {
            ratios,
            pseudo_random: attrs.bool("pseudo_random")?,
            overlapping: attrs.bool("overlapping")?,
            seeds,
        })
    }

    /// Where the windows of `output` positions over `input` begin, and where the last ends.
    fn sequence(&self, stream: &mut Philox, input: usize, output: usize) -> Vec<i64> {
        let lengths = if self.pseudo_random {
            pseudo_random(stream, input, output)
        } else {
            let longer = input % output;
            let samples = (output as u64).div_ceil(4);
            let order = shuffle_order(stream.reserve_samples(samples), output);
            let length = |place: usize| input / output + usize::from(place < longer);
            order
                .into_iter()
                .map(|place| length(place) as i64)
                .collect()
        };
        let mut ends = vec![0];
        let mut end = 0;
        ends.extend(lengths.iter().map(|length| {
            end += length;
            end
        }));
        ends
    }
}

/// Lengths of windows whose ends lie on a line that is moved at random.
fn pseudo_random(stream: &mut Philox, input: usize, output: usize) -> Vec<i64> {
    let alpha = input as f64 / output as f64;
    let shortest = (input / output) as f64;
    let first = (shortest + 2.0) / alpha - 1.0;
    let last = (input as f64 + 1.0 - shortest) / alpha - (output as f64 - 1.0);
    let sample = stream.reserve_samples(1).sample_at(0);
    let mantissa = u64::from(sample[0] & 0xf_ffff) << 32 | u64::from(sample[1]);
    let moved = (f64::from_bits(1023 << 52 | mantissa) - 1.0) * first.min(last);
    let end = |at: usize| match at {
        0 => 1,
        at if at == output => input as i64 + 1,
        at => (alpha * (at as f64 + moved)).ceil() as i64,
    };
    (0..output).map(|at| end(at + 1) - end(at)).collect()
}

/// The input positions of window `at`.
pub(super) fn window(
    sequence: &[i64],
    at: usize,
    overlapping: bool,
    input: usize,
) -> std::ops::Range<usize> {
    let end = sequence[at + 1] + i64::from(overlapping);
    let end = (end.max(0) as usize).min(input);
    (sequence[at].max(0) as usize).min(end)..end
}

fn build(node: &NodeInfo, method: Method) -> Result<AnyKernel> {
    let fractions = Fractions::new(node, method)?;
    match node.attrs.dtype("T")? {
        DType::F32 => pool::<f32>(fractions, method),
        DType::F64 => pool::<f64>(fractions, method),
        DType::I32 => pool::<i32>(fractions, method),
        DType::I64 => pool::<i64>(fractions, method),
        other => Err(internal!("no pooling of {other}")),
    }
}

fn pool<T: Element + PoolElement + Real>(
    fractions: Fractions,
    method: Method,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        ensure!(
            input.rank() == 4,
            invalid_argument,
            "tensor_in must be 4-dimensional"
        );
        let [batch, height, width, channels] = four(input.shape(), "tensor_in")?;
        for (axis, ratio) in fractions.ratios.iter().enumerate() {
            let size = input.shape().dim(axis);
            ensure!(
                size as f32 >= *ratio,
                invalid_argument,
                "Pooling ratio is higher than input dimension size for dimension {axis}. Input dim size: {size} pooling ratio: {ratio}"
            );
        }
        let size = |size: usize, ratio: f32| (size as f32 / ratio).floor() as usize;
        let rows = size(height, fractions.ratios[1]);
        let columns = size(width, fractions.ratios[2]);
        let (seed, seed2) = fractions.seeds.unwrap_or_else(|| (entropy(), entropy()));
        let mut stream = Philox::new(seed, seed2);
        let row_ends = fractions.sequence(&mut stream, height, rows);
        let column_ends = fractions.sequence(&mut stream, width, columns);
        let shape = [batch, rows, columns, channels].map(|dim| dim as i64);
        let mut out = ctx.allocate(T::DTYPE, Shape::new(&shape)?)?;
        let pixels = input.slice::<T>()?;
        let overlapping = fractions.overlapping;
        for (at, pixel) in out.slice_mut::<T>()?.chunks_exact_mut(channels).enumerate() {
            let (line, column) = (at / columns, at % columns);
            let (image, row) = (line / rows, line % rows);
            let across = window(&column_ends, column, overlapping, width);
            let down = window(&row_ends, row, overlapping, height);
            let count = T::from_f64((across.len() * down.len()) as f64);
            let average = method == Method::Average;
            pixel.fill(if average { T::ZERO } else { T::BOTTOM });
            for y in down {
                for x in across.clone() {
                    let from = ((image * height + y) * width + x) * channels;
                    for (out, &x) in pixel.iter_mut().zip(&pixels[from..from + channels]) {
                        *out = match average {
                            true => out.add(x),
                            false if x > *out => x,
                            false => *out,
                        };
                    }
                }
            }
            if average {
                pixel.iter_mut().for_each(|out| *out = out.div(count));
            }
        }
        ctx.set(0, out);
        ctx.set(1, Tensor::vector(&row_ends));
        ctx.set(2, Tensor::vector(&column_ends));
        Ok(())
    })
}
