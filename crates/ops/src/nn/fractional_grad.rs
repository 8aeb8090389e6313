//! `FractionalAvgPoolGrad`, `FractionalMaxPoolGrad`: the gradients of pooling by windows of random sizes.
//!
//! TensorFlow: FractionalMaxPoolGrad(orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64,
//! col_pooling_sequence: int64) -> output: T hands each window's gradient to its first largest element;
//! FractionalAvgPoolGrad(orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence, col_pooling_sequence) -> output: T
//! shares it out evenly. Attr overlapping.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i64s, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_status::{Code, Result, ensure, internal};
use tensorfleet_tensor::{DType, Element, Shape};

use super::conv_attrs::four;
use super::fractional::{TYPES, window};

const ATTRS: &[&str] = &[
    "overlapping: bool = false",
    "T: {float, double, int32, int64}",
];
const OVERLAPPING: (&str, &str) = ("overlapping", "true");
const ROWS: Lit = i64s(&[2], &[0, 1]);
const COLUMNS: Lit = i64s(&[3], &[0, 2, 3]);

const GRAD: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: ATTRS,
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "FractionalAvgPoolGrad",
        inputs: &[
            "orig_input_tensor_shape: int64",
            "out_backprop: T",
            "row_pooling_sequence: int64",
            "col_pooling_sequence: int64",
        ],
        infer: infer::shape_in::<0>,
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, true))],
        examples: &[
            ex(
                "even shares",
                &[
                    i64s(&[4], &[1, 1, 3, 1]),
                    x(&[1, 1, 2, 1], &[4.0, 6.0]),
                    ROWS,
                    COLUMNS,
                ],
                &[x(&[1, 1, 3, 1], &[2.0, 2.0, 6.0])],
            ),
            ex_attrs(
                "overlapping",
                &[OVERLAPPING],
                &[
                    i64s(&[4], &[1, 1, 3, 1]),
                    x(&[1, 1, 2, 1], &[6.0, 6.0]),
                    ROWS,
                    COLUMNS,
                ],
                &[x(&[1, 1, 3, 1], &[2.0, 2.0, 8.0])],
            ),
            ex_err(
                "too short a sequence",
                &[],
                &[
                    i64s(&[4], &[1, 1, 3, 1]),
                    f32s(&[1, 1, 2, 1], &[4.0]),
                    ROWS,
                    ROWS,
                ],
                Code::InvalidArgument,
                "col_seq_tensor must have at least 3 elements, but got 2",
            ),
        ],
        ..GRAD
    },
    OpDef {
        name: "FractionalMaxPoolGrad",
        inputs: &[
            "orig_input: T",
            "orig_output: T",
            "out_backprop: T",
            "row_pooling_sequence: int64",
            "col_pooling_sequence: int64",
        ],
        infer: infer::same_as_first,
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, false))],
        examples: &[
            ex(
                "first of equals",
                &[
                    x(&[2, 1, 3, 1], &[3.0, 3.0, 1.0, 2.0, 5.0, 0.0]),
                    x(&[2, 1, 2, 1], &[3.0, 1.0, 5.0, 0.0]),
                    x(&[2, 1, 2, 1], &[4.0, 6.0, 8.0, 7.0]),
                    ROWS,
                    COLUMNS,
                ],
                &[x(&[2, 1, 3, 1], &[4.0, 0.0, 6.0, 0.0, 8.0, 7.0])],
            ),
            ex_err(
                "not what was pooled",
                &[],
                &[
                    f32s(&[2, 1, 3, 1], &[3.0]),
                    f32s(&[2, 1, 2, 1], &[4.0]),
                    f32s(&[2, 1, 2, 1], &[4.0]),
                    ROWS,
                    COLUMNS,
                ],
                Code::InvalidArgument,
                "tensor_out_dup is not the same as tensor_out",
            ),
        ],
        ..GRAD
    },
];

fn build(node: &NodeInfo, average: bool) -> Result<AnyKernel> {
    let overlapping = node.attrs.bool("overlapping")?;
    match node.attrs.dtype("T")? {
        DType::F32 => spread::<f32>(overlapping, average),
        DType::F64 => spread::<f64>(overlapping, average),
        DType::I32 => spread::<i32>(overlapping, average),
        DType::I64 => spread::<i64>(overlapping, average),
        other => Err(internal!("no pooling of {other}")),
    }
}

/// The windows of a node: pooled images and where their windows begin.
struct Windows<'a> {
    overlapping: bool,
    input: [usize; 4],
    output: [usize; 4],
    rows: &'a [i64],
    columns: &'a [i64],
}

impl Windows<'_> {
    fn new<'a>(
        ctx: &'a KernelCtx<'_>,
        overlapping: bool,
        input: &Shape,
        output: &Shape,
        first: usize,
    ) -> Result<Windows<'a>> {
        let sequence = |index: usize, count: usize, name: &str| -> Result<&'a [i64]> {
            let shape = ctx.input(index)?.shape();
            ensure!(
                shape.rank() == 1,
                invalid_argument,
                "{name}_pooling_sequence must be a vector, received shape {shape}"
            );
            let sequence = ctx.input(index)?.slice::<i64>()?;
            ensure!(
                sequence.len() > count,
                invalid_argument,
                "Given out_backprop shape {output}, {name}_seq_tensor must have at least {} elements, but got {}",
                count + 1,
                sequence.len()
            );
            ensure!(
                sequence.iter().all(|place| *place >= 0),
                invalid_argument,
                "{} sequence tensor values must not be negative, got {sequence:?}",
                if name == "row" { "Row" } else { "Column" }
            );
            Ok(sequence)
        };
        let windows = Windows {
            overlapping,
            input: four(input, "orig_input")?,
            output: four(output, "out_backprop")?,
            rows: sequence(first, output.dim(1), "row")?,
            columns: sequence(first + 1, output.dim(2), "col")?,
        };
        ensure!(
            windows.input[0] == windows.output[0] && windows.input[3] == windows.output[3],
            invalid_argument,
            "images {input} and what is pooled {output} differ in batch or depth"
        );
        Ok(windows)
    }

    /// The input pixels that an output pixel sees.
    fn seen(&self, at: usize) -> Vec<usize> {
        let [_, height, width, _] = self.input;
        let [_, rows, columns, _] = self.output;
        let (line, column) = (at / columns, at % columns);
        let across = window(self.columns, column, self.overlapping, width);
        let down = window(self.rows, line % rows, self.overlapping, height);
        let first = line / rows * height;
        let lines = down.map(|y| (first + y) * width);
        lines
            .flat_map(|line| across.clone().map(move |x| line + x))
            .collect()
    }
}

fn spread<T: Element + Real>(overlapping: bool, average: bool) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = if average {
            let text = "original input tensor shape must be1-dimensional and 4 elements";
            let sizes = ctx.ints(0)?;
            ensure!(sizes.len() == 4, invalid_argument, "{text}");
            let (shape, grad) = (Shape::new(&sizes)?, ctx.input(1)?);
            ensure!(
                grad.rank() == 4,
                invalid_argument,
                "out_backprop must be 4-dimensional"
            );
            let windows = Windows::new(ctx, overlapping, &shape, grad.shape(), 2)?;
            let mut sums = vec![0.0f64; shape.elements()];
            let channels = windows.output[3].max(1);
            for (at, grad) in grad.slice::<T>()?.chunks_exact(channels).enumerate() {
                let seen = windows.seen(at);
                let share = seen.len() as f64;
                for pixel in seen {
                    let sums = &mut sums[pixel * channels..];
                    for (sum, grad) in sums.iter_mut().zip(grad) {
                        *sum += grad.to_f64() / share;
                    }
                }
            }
            let mut out = ctx.allocate(T::DTYPE, shape)?;
            for (out, sum) in out.slice_mut::<T>()?.iter_mut().zip(sums) {
                *out = T::from_f64(sum);
            }
            out
        } else {
            let (input, output, grad) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
            ensure!(
                input.rank() == 4 && !input.is_empty(),
                invalid_argument,
                "orig_input should be a tensor of rank 4 and must not be empty, got {}",
                input.shape()
            );
            ensure!(
                output.rank() == 4 && !output.is_empty() && grad.shape() == output.shape(),
                invalid_argument,
                "orig_output should be a tensor of rank 4 and must not be empty, got {}, out_backprop {}",
                output.shape(),
                grad.shape()
            );
            let windows = Windows::new(ctx, overlapping, input.shape(), output.shape(), 3)?;
            let mut out = ctx.allocate(T::DTYPE, input.shape().clone())?;
            let (pixels, to) = (input.slice::<T>()?, out.slice_mut::<T>()?);
            to.fill(T::ZERO);
            let channels = windows.output[3];
            let (pooled, grad) = (output.slice::<T>()?, grad.slice::<T>()?);
            for at in 0..pooled.len() / channels {
                let seen = windows.seen(at);
                for c in 0..channels {
                    let place = |pixel: &usize| pixel * channels + c;
                    let mut places = seen.iter().map(place);
                    let first = places.next();
                    let largest =
                        |best: usize, at: usize| if pixels[best] < pixels[at] { at } else { best };
                    let found = first.map(|first| places.fold(first, largest));
                    let found = found.filter(|found| pixels[*found] == pooled[at * channels + c]);
                    let Some(found) = found else {
                        return Err(tensorfleet_status::invalid_argument!(
                            "tensor_out_dup is not the same as tensor_out"
                        ));
                    };
                    to[found] = to[found].add(grad[at * channels + c]);
                }
            }
            out
        };
        ctx.set(0, out);
        Ok(())
    })
}
