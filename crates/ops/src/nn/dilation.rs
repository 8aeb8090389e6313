//! `Dilation2D`, `Dilation2DBackpropInput`, `Dilation2DBackpropFilter`: grayscale dilation of NHWC images.
//!
//! TensorFlow: Dilation2D(input: T, filter: T) -> output: T, with strides, rates and padding: the largest sum of an element of
//! the window and that of the filter `[height, width, channels]`. The gradients, for an out_backprop, go to the first largest sum's
//! element of the input, and of the filter.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{Padding, Window};
use tensorfleet_math::par::{Par, rows_mut};
use tensorfleet_math::pool2d::PoolElement;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{Element, PartialShape, Shape, Tensor};

use super::conv_attrs::with_attrs;
use super::volume::padding;
use crate::by_real;
use crate::types::REAL_NUMBERS;

const UNIT: (&str, &str) = ("strides", "[1, 1, 1, 1]");
const TWO: (&str, &str) = ("strides", "[1, 2, 1, 1]");
const RATE: (&str, &str) = ("rates", "[1, 1, 1, 1]");
const WIDE: (&str, &str) = ("rates", "[1, 1, 2, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");
/// Sums with [`FILTER`] are all different.
const IMAGE: Lit = x(
    &[1, 3, 4, 1],
    &[
        12.0, 36.0, 4.0, 24.0, 48.0, 8.0, 28.0, 16.0, 32.0, 44.0, 20.0, 40.0,
    ],
);
const FILTER: Lit = x(&[2, 2, 1], &[1.0, 3.0, 0.0, 2.0]);

const DILATION: OpDef = OpDef {
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        "strides: list(int) >= 4",
        "rates: list(int) >= 4",
        "padding: {'SAME', 'VALID'}",
    ],
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "Dilation2D",
        inputs: &["input: T", "filter: T"],
        outputs: &["output: T"],
        infer: dilated,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Pass::Forward)
        })],
        examples: &[
            ex_attrs(
                "one window",
                &[UNIT, RATE, VALID],
                &[x(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0]), FILTER],
                &[x(&[1, 1, 1, 1], &[6.0])],
            ),
            ex_ref("same", &[UNIT, RATE, SAME], &[IMAGE, FILTER]),
            ex_ref("strides and rates", &[TWO, WIDE, SAME], &[IMAGE, FILTER]),
            ex_ref(
                "channels",
                &[UNIT, RATE, VALID],
                &[ramp(&[2, 3, 3, 2], 30.0, -1.0), ramp(&[2, 1, 2], 0.0, 2.0)],
            ),
            ex_err(
                "depths differ",
                &[UNIT, RATE, VALID],
                &[f32s(&[1, 2, 2, 2], &[1.0]), f32s(&[2, 2, 1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "across channels",
                &[("strides", "[1, 1, 1, 2]"), RATE, VALID],
                &[f32s(&[1, 2, 2, 1], &[1.0]), f32s(&[2, 2, 1], &[1.0])],
                Code::Unimplemented,
                "",
            ),
        ],
        ..DILATION
    },
    OpDef {
        name: "Dilation2DBackpropFilter",
        inputs: &["input: T", "filter: T", "out_backprop: T"],
        outputs: &["filter_backprop: T"],
        infer: like_filter,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Pass::Filter)
        })],
        examples: &[ex_ref(
            "same",
            &[UNIT, WIDE, SAME],
            &[IMAGE, FILTER, ramp(&[1, 3, 4, 1], 1.0, 1.0)],
        )],
        ..DILATION
    },
    OpDef {
        name: "Dilation2DBackpropInput",
        inputs: &["input: T", "filter: T", "out_backprop: T"],
        outputs: &["in_backprop: T"],
        infer: infer::same_as_first,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| build(node, Pass::Input))],
        examples: &[
            ex_ref(
                "same",
                &[UNIT, WIDE, SAME],
                &[IMAGE, FILTER, ramp(&[1, 3, 4, 1], 1.0, 1.0)],
            ),
            ex_err(
                "out_backprop",
                &[UNIT, RATE, SAME],
                &[
                    f32s(&[1, 2, 2, 1], &[1.0]),
                    f32s(&[2, 2, 1], &[1.0]),
                    f32s(&[1, 2, 1, 1], &[1.0]),
                ],
                Code::InvalidArgument,
                "out_backprop has incompatible size.",
            ),
        ],
        ..DILATION
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.input(0), g.input(1), g.grad(0)?];
    let names = ["strides", "rates", "padding"];
    let to_input = with_attrs(g, "Dilation2DBackpropInput", &names, &inputs)?;
    let to_filter = with_attrs(g, "Dilation2DBackpropFilter", &names, &inputs)?;
    Ok(vec![
        Some(Grad::Dense(to_input)),
        Some(Grad::Dense(to_filter)),
    ])
}

fn like_filter(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, ctx.input(1).clone());
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Forward,
    Input,
    Filter,
}

/// Sums that are worth a thread of their own.
const GRAIN: usize = 16 << 10;

/// A node's attributes.
#[derive(Clone, Copy)]
struct Dilation {
    stride: [usize; 2],
    rate: [usize; 2],
    padding: Padding,
}

impl Dilation {
    fn new(attrs: &Attrs) -> Result<Dilation> {
        let read = |name: &str, field: &str, what: &str| -> Result<[usize; 2]> {
            let &[batch, height, width, channels] = attrs.ints(name)? else {
                return Err(invalid_argument!("{field} field must specify 4 dimensions"));
            };
            ensure!(
                batch == 1 && channels == 1,
                unimplemented,
                "{what} is only supported across spatial dimensions."
            );
            match (u32::try_from(height), u32::try_from(width)) {
                (Ok(height), Ok(width)) if height > 0 && width > 0 => {
                    Ok([height as usize, width as usize])
                }
                _ => Err(invalid_argument!(
                    "{what} must be > 0, but got {height}, {width}"
                )),
            }
        };
        Ok(Dilation {
            stride: read("strides", "Sliding window stride", "Stride")?,
            rate: read("rates", "Input stride (atrous rate)", "Rate")?,
            padding: padding(attrs)?,
        })
    }

    fn fit(&self, direction: usize, input: usize, filter: usize) -> Option<Window> {
        let (rate, stride) = (self.rate[direction], self.stride[direction]);
        Window::new(direction, input, filter, rate, stride, self.padding)
    }
}

fn dilated(ctx: &mut InferCtx<'_>) -> Result<()> {
    let dilation = Dilation::new(ctx.attrs())?;
    let image = ctx.input(0).merge(&PartialShape::of_rank(4))?;
    let filter = ctx.input(1).merge(&PartialShape::of_rank(3))?;
    let Some(dims) = image.dims() else {
        return Ok(());
    };
    let mut out = dims.to_vec();
    for direction in 0..2 {
        let size = |dim: Option<i64>| dim.and_then(|dim| usize::try_from(dim).ok());
        let sizes = size(image.dim(direction + 1)).zip(size(filter.dim(direction)));
        let found = sizes.and_then(|(input, filter)| dilation.fit(direction, input, filter));
        out[direction + 1] = found.map_or(-1, |window| window.output as i64);
    }
    ctx.set(0, PartialShape::new(&out));
    Ok(())
}

/// Where the windows lie.
struct Places {
    image: [usize; 4],
    filter: [usize; 2],
    windows: [Window; 2],
    dilation: Dilation,
}

impl Places {
    fn new(dilation: Dilation, image: &Shape, filter: &Shape) -> Result<Places> {
        ensure!(
            image.rank() == 4,
            invalid_argument,
            "input must be 4-dimensional{image}"
        );
        ensure!(
            filter.rank() == 3,
            invalid_argument,
            "filter must be 3-dimensional: {filter}"
        );
        let sizes = [image.dim(0), image.dim(1), image.dim(2), image.dim(3)];
        ensure!(
            sizes[3] == filter.dim(2),
            invalid_argument,
            "input and filter must have the same depth: {} vs {}",
            sizes[3],
            filter.dim(2)
        );
        let fit = |direction: usize| {
            let (input, window) = (sizes[direction + 1], filter.dim(direction));
            dilation.fit(direction, input, window).ok_or_else(|| {
                invalid_argument!(
                    "Computed output size would be negative: [input_size: {input}, filter_size: {window}]"
                )
            })
        };
        Ok(Places {
            image: sizes,
            filter: [filter.dim(0), filter.dim(1)],
            windows: [fit(0)?, fit(1)?],
            dilation,
        })
    }

    fn output(&self) -> Result<Shape> {
        let [batch, _, _, channels] = self.image.map(|size| size as i64);
        let [rows, columns] = self.windows.map(|window| window.output as i64);
        Shape::new(&[batch, rows, columns, channels])
    }

    /// Finds the pixels of the input and of the filter that an output pixel sees together.
    fn see(&self, at: usize, seen: &mut Vec<(usize, usize)>) {
        let [_, height, width, _] = self.image;
        let [rows, columns] = self.windows.map(|window| window.output);
        let (line, column) = (at / columns, at % columns);
        let along = |direction: usize, out: usize, size: usize| {
            let begin = out * self.dilation.stride[direction];
            let (rate, before) = (
                self.dilation.rate[direction],
                self.windows[direction].before,
            );
            (0..self.filter[direction]).filter_map(move |tap| {
                let place = (begin + tap * rate).checked_sub(before)?;
                (place < size).then_some((place, tap))
            })
        };
        seen.clear();
        for (y, row) in along(0, line % rows, height) {
            let first = (line / rows * height + y) * width;
            let across = along(1, column, width);
            seen.extend(across.map(|(x, tap)| (first + x, row * self.filter[1] + tap)));
        }
    }

    /// The largest sum of what each output pixel sees, channel by channel.
    fn forward<T: PoolElement>(&self, par: &dyn Par, pixels: &[T], taps: &[T], out: &mut [T]) {
        let channels = self.image[3];
        let grain = GRAIN.div_ceil(channels * (self.filter[0] * self.filter[1]).max(1));
        rows_mut(par, out, channels, grain, |first, out| {
            let mut seen = Vec::new();
            for (at, best) in (first..).zip(out.chunks_exact_mut(channels)) {
                self.see(at, &mut seen);
                best.fill(T::BOTTOM);
                for &(pixel, tap) in &seen {
                    let pixel = &pixels[pixel * channels..(pixel + 1) * channels];
                    let tap = &taps[tap * channels..(tap + 1) * channels];
                    for ((best, x), y) in best.iter_mut().zip(pixel).zip(tap) {
                        let sum = x.add(*y);
                        *best = if sum > *best { sum } else { *best };
                    }
                }
            }
        });
    }
}

fn build(node: &NodeInfo, pass: Pass) -> Result<AnyKernel> {
    let (dilation, dtype) = (Dilation::new(&node.attrs)?, node.attrs.dtype("T")?);
    by_real!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = dilate::<T>(ctx, dilation, pass)?;
        ctx.set(0, out);
        Ok(())
    }), else => Err(internal!("no dilation of {dtype}")))
}

fn dilate<T: Element + PoolElement>(
    ctx: &KernelCtx<'_>,
    dilation: Dilation,
    pass: Pass,
) -> Result<Tensor> {
    let (input, filter) = (ctx.input(0)?, ctx.input(1)?);
    let places = Places::new(dilation, input.shape(), filter.shape())?;
    let output = places.output()?;
    let grad = match pass {
        Pass::Forward => None,
        _ => Some(ctx.input(2)?),
    };
    if let Some(grad) = grad {
        ensure!(
            grad.rank() == 4,
            invalid_argument,
            "out_backprop must be 4-dimensional{}",
            grad.shape()
        );
        ensure!(
            *grad.shape() == output,
            invalid_argument,
            "out_backprop has incompatible size."
        );
    }
    let shape = match pass {
        Pass::Forward => output.clone(),
        Pass::Input => input.shape().clone(),
        Pass::Filter => filter.shape().clone(),
    };
    let mut out = ctx.allocate(T::DTYPE, shape)?;
    let to = out.slice_mut::<T>()?;
    let channels = places.image[3];
    if channels == 0 {
        return Ok(out);
    }
    let (pixels, taps) = (input.slice::<T>()?, filter.slice::<T>()?);
    let Some(grad) = grad else {
        places.forward(ctx.par(), pixels, taps, to);
        return Ok(out);
    };
    to.fill(T::ZERO);
    let grad = grad.slice::<T>()?;
    let mut seen = Vec::new();
    for at in 0..output.elements() / channels {
        places.see(at, &mut seen);
        for c in 0..channels {
            let (mut best, mut found) = (T::BOTTOM, seen.first().copied());
            for &(pixel, tap) in &seen {
                let sum = pixels[pixel * channels + c].add(taps[tap * channels + c]);
                if sum > best {
                    (best, found) = (sum, Some((pixel, tap)));
                }
            }
            if let Some((pixel, tap)) = found {
                let place = if pass == Pass::Input { pixel } else { tap };
                let place = place * channels + c;
                to[place] = to[place].add(grad[at * channels + c]);
            }
        }
    }
    Ok(out)
}
