//! `ExtractImagePatches`, `ExtractVolumePatches`: what windows over images or volumes see, as the channels of a pixel.
//!
//! TensorFlow: ExtractImagePatches(images: T) -> patches: T, with ksizes, strides, rates and padding;
//! ExtractVolumePatches(input: T) -> patches: T, without rates. What lies outside of the input is zero.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{Padding, Window};
use tensorfleet_math::par::rows_mut;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument, out_of_range};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use crate::nn::conv_attrs::with_attrs;
use crate::types::{NUMBERS, REAL_NUMBERS};

const TWO: (&str, &str) = ("ksizes", "[1, 2, 2, 1]");
const UNIT: (&str, &str) = ("strides", "[1, 1, 1, 1]");
const RATE: (&str, &str) = ("rates", "[1, 1, 1, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");

const PATCHES: OpDef = OpDef {
    outputs: &["patches: T"],
    infer: extracted,
    gradient: Gradient::Rule(gradient),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ExtractImagePatches",
        inputs: &["images: T"],
        attrs: &[
            "ksizes: list(int) >= 4",
            "strides: list(int) >= 4",
            "rates: list(int) >= 4",
            "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}",
            "padding: {'SAME', 'VALID'}",
        ],
        kernels: &[cpu(&[("T", NUMBERS)], build)],
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, UNIT, RATE, VALID],
                &[x(&[1, 2, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
                &[x(&[1, 1, 2, 4], &[1.0, 2.0, 4.0, 5.0, 2.0, 3.0, 5.0, 6.0])],
            ),
            ex_ref(
                "strides and rates",
                &[
                    ("ksizes", "[1, 2, 3, 1]"),
                    ("strides", "[1, 2, 1, 1]"),
                    ("rates", "[1, 1, 2, 1]"),
                    SAME,
                ],
                &[ramp(&[2, 5, 4, 2], 1.0, 1.0)],
            ),
            ex_err(
                "across channels",
                &[("ksizes", "[1, 2, 2, 2]"), UNIT, RATE, VALID],
                &[f32s(&[1, 2, 3, 2], &[1.0])],
                Code::Unimplemented,
                "Only support ksizes across space.",
            ),
            ex_err(
                "no image",
                &[TWO, UNIT, RATE, VALID],
                &[f32s(&[2, 3], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..PATCHES
    },
    OpDef {
        name: "ExtractVolumePatches",
        inputs: &["input: T"],
        attrs: &[
            "ksizes: list(int) >= 5",
            "strides: list(int) >= 5",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
            "padding: {'SAME', 'VALID'}",
        ],
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
        examples: &[
            ex_ref(
                "valid",
                &[
                    ("ksizes", "[1, 2, 2, 2, 1]"),
                    ("strides", "[1, 1, 1, 1, 1]"),
                    VALID,
                ],
                &[ramp(&[1, 2, 3, 2, 1], 1.0, 1.0)],
            ),
            ex_ref(
                "strides",
                &[
                    ("ksizes", "[1, 2, 1, 3, 1]"),
                    ("strides", "[1, 2, 1, 2, 1]"),
                    SAME,
                ],
                &[ramp(&[2, 3, 2, 4, 2], 1.0, 1.0)],
            ),
            ex_err(
                "out of range",
                &[
                    ("ksizes", "[1, 2, 0, 3, 1]"),
                    ("strides", "[1, 2, 1, 2, 1]"),
                    SAME,
                ],
                &[f32s(&[1, 2, 3, 2, 1], &[1.0])],
                Code::OutOfRange,
                "ksizes is out of range.",
            ),
        ],
        ..PATCHES
    },
];

/// Each element of the input is numbered, from 1; patches of numbers say where gradients go, and padding, which is 0, nowhere.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, grad) = (g.input(0), g.grad(0)?);
    let size = g
        .builder()
        .op("Size")
        .input(input)
        .attr("out_type", DType::I64)
        .output()?;
    let one = g.builder().constant(Tensor::scalar(1i64))?;
    let end = g.apply("AddV2", &[size, one])?;
    let numbers = g.apply("Range", &[one, end, one])?;
    let numbers = g.reshape_like(numbers, input)?;
    let mut names = vec!["ksizes", "strides", "padding"];
    let is_image = g.attrs().get("rates").is_some();
    if is_image {
        names.push("rates");
    }
    let op = if is_image {
        "ExtractImagePatches"
    } else {
        "ExtractVolumePatches"
    };
    let places = with_attrs(g, op, &names, &[numbers])?;
    let places = g.apply("Sub", &[places, one])?;
    let summed = g.apply("UnsortedSegmentSum", &[grad, places, size])?;
    dense(g.reshape_like(summed, input)?)
}

/// One direction of the windows.
#[derive(Clone, Copy)]
struct Along {
    window: usize,
    stride: usize,
    rate: usize,
}

/// The windows of a node, along each dimension between batch and channels.
fn windows(attrs: &Attrs) -> Result<(Vec<Along>, Padding)> {
    let read = |name: &str| -> Result<Vec<usize>> {
        let [first, middle @ .., last] = attrs.ints(name)? else {
            return Err(invalid_argument!("{name} must have at least two numbers"));
        };
        ensure!(
            (*first, *last) == (1, 1),
            unimplemented,
            "Only support {name} across space."
        );
        let sizes = middle.iter().map(|size| {
            let size = u32::try_from(*size).ok().filter(|size| *size > 0);
            size.map(|size| size as usize)
        });
        let sizes: Option<Vec<usize>> = sizes.collect();
        sizes.ok_or_else(|| out_of_range!("{name} is out of range."))
    };
    let (ksizes, strides) = (read("ksizes")?, read("strides")?);
    let rates = match attrs.get("rates") {
        Some(_) => read("rates")?,
        None => vec![1; ksizes.len()],
    };
    ensure!(
        ksizes.len() == strides.len() && ksizes.len() == rates.len(),
        invalid_argument,
        "ksizes, strides and rates must have as many numbers"
    );
    let along = ksizes.iter().zip(&strides).zip(&rates);
    let along = along.map(|((&window, &stride), &rate)| Along {
        window,
        stride,
        rate,
    });
    let padding = match attrs.str("padding")? {
        "SAME" => Padding::Same,
        _ => Padding::Valid,
    };
    Ok((along.collect(), padding))
}

fn extracted(ctx: &mut InferCtx<'_>) -> Result<()> {
    let (along, padding) = windows(ctx.attrs())?;
    let shape = ctx
        .input(0)
        .merge(&PartialShape::of_rank(along.len() + 2))?;
    let Some(dims) = shape.dims() else {
        return Ok(());
    };
    let mut out = dims.to_vec();
    for (axis, along) in along.iter().enumerate() {
        let size = usize::try_from(dims[axis + 1]).ok();
        let found = size.and_then(|size| fit(*along, size, padding));
        out[axis + 1] = found.map_or(UNKNOWN_DIM, |window| window.output as i64);
    }
    if let Some(channels) = out.last_mut().filter(|channels| **channels >= 0) {
        let mut taps = along.iter().map(|along| along.window as i64);
        let taps = taps.try_fold(*channels, i64::checked_mul);
        *channels = taps.unwrap_or(UNKNOWN_DIM);
    }
    ctx.set(0, PartialShape::new(&out));
    Ok(())
}

fn fit(along: Along, size: usize, padding: Padding) -> Option<Window> {
    Window::new(0, size, along.window, along.rate, along.stride, padding)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (along, padding) = windows(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let shape = input.shape();
        ensure!(
            shape.rank() == along.len() + 2,
            invalid_argument,
            "input must be {}-dimensional{shape}",
            along.len() + 2
        );
        let sizes: Vec<usize> = (0..along.len()).map(|axis| shape.dim(axis + 1)).collect();
        let channels = shape.dim(shape.rank() - 1);
        let mut fits = Vec::new();
        for (along, &size) in along.iter().zip(&sizes) {
            fits.push(fit(*along, size, padding).ok_or_else(|| {
                invalid_argument!(
                    "Computed output size would be negative: [input_size: {size}, effective_filter_size: {}, stride: {}]",
                    (along.window - 1) * along.rate + 1,
                    along.stride
                )
            })?);
        }
        let taps = along
            .iter()
            .try_fold(1usize, |product, along| product.checked_mul(along.window));
        let patch = taps.and_then(|taps| taps.checked_mul(channels));
        let patch = patch
            .and_then(|patch| i64::try_from(patch).ok())
            .ok_or_else(|| {
                let sizes: Vec<usize> = along.iter().map(|along| along.window).collect();
                invalid_argument!("Output size would overflow: {sizes:?} x {channels}")
            })?;
        let mut dims = vec![shape.dim(0) as i64];
        dims.extend(fits.iter().map(|fit| fit.output as i64));
        dims.push(patch);
        let mut out = ctx.allocate(input.dtype(), Shape::new(&dims)?)?;
        if !out.is_empty() {
            let pixel = channels * input.dtype().size().unwrap_or(1);
            let (Some(from), Some(to)) = (input.bytes(), out.bytes_mut()) else {
                return Err(internal!("no bytes in {}", input.dtype()));
            };
            let taps = taps.unwrap_or(0);
            rows_mut(ctx.par(), to, taps * pixel, 64, |first, patches| {
                for (at, patch) in (first..).zip(patches.chunks_exact_mut(taps * pixel)) {
                    for (tap, to) in patch.chunks_exact_mut(pixel).enumerate() {
                        match seen(at, tap, &along, &fits, &sizes) {
                            Some(at) => to.copy_from_slice(&from[at * pixel..(at + 1) * pixel]),
                            None => to.fill(0),
                        }
                    }
                }
            });
        }
        ctx.set(0, out);
        Ok(())
    })
}

/// The input pixel that a tap of an output pixel sees.
fn seen(
    mut at: usize,
    mut tap: usize,
    along: &[Along],
    fits: &[Window],
    sizes: &[usize],
) -> Option<usize> {
    let (mut place, mut step) = (0, 1);
    for axis in (0..along.len()).rev() {
        let (window, output) = (along[axis], fits[axis].output);
        let position = (at % output) * window.stride + (tap % window.window) * window.rate;
        let position = position.checked_sub(fits[axis].before)?;
        if position >= sizes[axis] {
            return None;
        }
        place += position * step;
        step *= sizes[axis];
        (at, tap) = (at / output, tap / window.window);
    }
    Some(at * step + place)
}
