//! `MaxPool`, `MaxPoolV2`, `MaxPoolGrad`, `MaxPoolGradV2`, `AvgPool`, `AvgPoolGrad`: windows over NHWC images.
//!
//! TensorFlow: MaxPool(input: T) -> output: T and AvgPool(value: T) -> output: T, with ksize, strides, padding;
//! MaxPoolGrad(orig_input: T, orig_output: T, grad: T), AvgPoolGrad(orig_input_shape: int32, grad: T); MaxPoolV2 and
//! MaxPoolGradV2 take ksize and strides as further inputs. Padding takes no
//! part in a maximum, nor in the count of an average; of equal maxima the first gets the gradient.

use tensorfleet_graph::example::{Example, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::conv::Window;
use tensorfleet_math::num::Float;
use tensorfleet_math::pool2d::{
    Pool2d, PoolElement, avg_pool, avg_pool_grad, max_pool, max_pool_grad,
};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{Element, Shape};

use super::conv_attrs::{WindowAttrs, four, middle, pair, with_attrs};
use super::conv_shapes;
use super::conv2d::sizes;
use crate::types::{FLOATS, REAL_NUMBERS};
use crate::{by_float, by_real};

const TWO: (&str, &str) = ("ksize", "[1, 2, 2, 1]");
const STRIDE: (&str, &str) = ("strides", "[1, 2, 2, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");

const POOL: OpDef = OpDef {
    outputs: &["output: T"],
    cost: Cost::Measured,
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

const MAX: &[Example] = &[
    ex_attrs(
        "two by two",
        &[TWO, STRIDE, VALID],
        &[x(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0])],
        &[x(&[1, 1, 2, 1], &[5.0, 7.0])],
    ),
    ex_ref(
        "same, overlapping",
        &[("ksize", "[1, 3, 3, 1]"), STRIDE, SAME],
        &[ramp(&[2, 5, 4, 3], 60.0, -0.5)],
    ),
    ex_err(
        "no image",
        &[TWO, STRIDE, VALID],
        &[f32s(&[2, 2], &[0.0])],
        Code::InvalidArgument,
        "4-dimensional",
    ),
];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "MaxPoolV2",
        inputs: &["input: T", "ksize: int32", "strides: int32"],
        attrs: &[
            "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        ],
        gradient: Gradient::Rule(max_v2_gradient),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| build(node, Kind::Max))],
        exactness: Exactness::Bits,
        examples: &[
            ex_attrs(
                "two by two",
                &[VALID],
                &[
                    x(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0]),
                    i32s(&[4], &[1, 2, 2, 1]),
                    i32s(&[4], &[1, 2, 2, 1]),
                ],
                &[x(&[1, 1, 2, 1], &[5.0, 7.0])],
            ),
            ex_err(
                "ksize",
                &[VALID],
                &[
                    f32s(&[1, 2, 4, 1], &[1.0]),
                    i32s(&[3], &[1, 2, 2]),
                    i32s(&[4], &[1, 2, 2, 1]),
                ],
                Code::InvalidArgument,
                "Sliding window ksize field must specify 4 dimensions",
            ),
        ],
        ..POOL
    },
    OpDef {
        name: "MaxPoolGradV2",
        inputs: &[
            "orig_input: T",
            "orig_output: T",
            "grad: T",
            "ksize: int32",
            "strides: int32",
        ],
        attrs: &[
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = DT_FLOAT",
        ],
        infer: infer::same_as_first,
        gradient: Gradient::None("needs MaxPoolGradGrad"),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Kind::MaxGrad)
        })],
        examples: &[ex_attrs(
            "first of equals",
            &[VALID],
            &[
                x(&[1, 2, 2, 1], &[1.0, 5.0, 5.0, 2.0]),
                x(&[1, 1, 1, 1], &[5.0]),
                x(&[1, 1, 1, 1], &[3.0]),
                i32s(&[4], &[1, 2, 2, 1]),
                i32s(&[4], &[1, 2, 2, 1]),
            ],
            &[x(&[1, 2, 2, 1], &[0.0, 3.0, 0.0, 0.0])],
        )],
        ..POOL
    },
    OpDef {
        name: "MaxPool",
        inputs: &["input: T"],
        attrs: &[
            "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID', 'EXPLICIT'}",
            "explicit_paddings: list(int) = []",
            "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        ],
        infer: conv_shapes::pooled,
        gradient: Gradient::Rule(max_gradient),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| build(node, Kind::Max))],
        exactness: Exactness::Bits,
        examples: MAX,
        ..POOL
    },
    OpDef {
        name: "MaxPoolGrad",
        inputs: &["orig_input: T", "orig_output: T", "grad: T"],
        attrs: &[
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID', 'EXPLICIT'}",
            "explicit_paddings: list(int) = []",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = DT_FLOAT",
        ],
        infer: infer::same_as_first,
        gradient: Gradient::None("needs MaxPoolGradGrad"),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Kind::MaxGrad)
        })],
        examples: &[ex_attrs(
            "first of equals",
            &[TWO, STRIDE, VALID],
            &[
                x(&[1, 2, 2, 1], &[1.0, 5.0, 5.0, 2.0]),
                x(&[1, 1, 1, 1], &[5.0]),
                x(&[1, 1, 1, 1], &[3.0]),
            ],
            &[x(&[1, 2, 2, 1], &[0.0, 3.0, 0.0, 0.0])],
        )],
        ..POOL
    },
    OpDef {
        name: "AvgPool",
        inputs: &["value: T"],
        attrs: &[
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {half, bfloat16, float, double}",
        ],
        infer: conv_shapes::pooled,
        gradient: Gradient::Rule(avg_gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Kind::Avg))],
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, STRIDE, VALID],
                &[x(&[1, 2, 2, 1], &[1.0, 5.0, 2.0, 4.0])],
                &[x(&[1, 1, 1, 1], &[3.0])],
            ),
            ex_attrs(
                "padding does not count",
                &[TWO, STRIDE, SAME],
                &[x(&[1, 1, 3, 1], &[1.0, 5.0, 2.0])],
                &[x(&[1, 1, 2, 1], &[3.0, 2.0])],
            ),
        ],
        ..POOL
    },
    OpDef {
        name: "AvgPoolGrad",
        inputs: &["orig_input_shape: int32", "grad: T"],
        attrs: &[
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {half, bfloat16, float, double}",
        ],
        infer: infer::shape_in::<0>,
        gradient: Gradient::Rule(avg_grad_gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Kind::AvgGrad))],
        examples: &[ex_attrs(
            "even shares",
            &[TWO, STRIDE, VALID],
            &[i32s(&[4], &[1, 2, 2, 1]), x(&[1, 1, 1, 1], &[4.0])],
            &[x(&[1, 2, 2, 1], &[1.0, 1.0, 1.0, 1.0])],
        )],
        ..POOL
    },
];

fn max_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, output, grad) = (g.input(0), g.output(0), g.grad(0)?);
    let names = [
        "ksize",
        "strides",
        "padding",
        "explicit_paddings",
        "data_format",
    ];
    dense(with_attrs(
        g,
        "MaxPoolGrad",
        &names,
        &[input, output, grad],
    )?)
}

fn max_v2_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (ksize, strides) = (g.input(1), g.input(2));
    let inputs = [g.input(0), g.output(0), g.grad(0)?, ksize, strides];
    let names = ["padding", "data_format"];
    let pooled = with_attrs(g, "MaxPoolGradV2", &names, &inputs)?;
    Ok(vec![Some(Grad::Dense(pooled)), None, None])
}

fn avg_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, grad) = (g.input(0), g.grad(0)?);
    let shape = g.shape(input)?;
    let names = ["ksize", "strides", "padding", "data_format"];
    let pooled = with_attrs(g, "AvgPoolGrad", &names, &[shape, grad])?;
    Ok(vec![Some(Grad::Dense(pooled))])
}

/// What went out in even shares comes back as a mean.
fn avg_grad_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let names = ["ksize", "strides", "padding", "data_format"];
    let pooled = with_attrs(g, "AvgPool", &names, &[grad])?;
    Ok(vec![None, Some(Grad::Dense(pooled))])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Max,
    MaxGrad,
    Avg,
    AvgGrad,
}

/// Windows and strides of a node.
#[derive(Clone, Copy)]
struct Pooling {
    window: [usize; 2],
    attrs: WindowAttrs,
    kind: Kind,
    /// Where the inputs `ksize` and `strides` begin, of nodes that do not have them as attributes.
    inputs: Option<usize>,
}

impl Pooling {
    /// With window and strides as the inputs say, if the node has such.
    fn with_inputs(mut self, ctx: &KernelCtx<'_>) -> Result<Pooling> {
        if let Some(first) = self.inputs {
            self.window = middle(&ctx.ints(first)?, "ksize")?;
            self.attrs.stride = middle(&ctx.ints(first + 1)?, "strides")?;
        }
        Ok(self)
    }

    fn geometry(&self, input: &Shape) -> Result<Pool2d> {
        let [batch, in_rows, in_cols, channels] = four(input, "tensor_in")?;
        let fit = |direction: usize, length: usize| {
            Window::new(
                direction,
                length,
                self.window[direction],
                1,
                self.attrs.stride[direction],
                self.attrs.padding,
            )
            .ok_or_else(|| {
                invalid_argument!(
                    "Computed output size would be negative: input {input}, window {:?}",
                    self.window
                )
            })
        };
        let (rows, cols) = (fit(0, in_rows)?, fit(1, in_cols)?);
        Ok(Pool2d {
            batch,
            in_rows,
            in_cols,
            channels,
            window_rows: self.window[0],
            window_cols: self.window[1],
            row_stride: self.attrs.stride[0],
            col_stride: self.attrs.stride[1],
            pad_top: rows.before,
            pad_left: cols.before,
            out_rows: rows.output,
            out_cols: cols.output,
        })
    }
}

fn output_shape(pool: &Pool2d) -> Result<Shape> {
    Shape::new(&[
        pool.batch as i64,
        pool.out_rows as i64,
        pool.out_cols as i64,
        pool.channels as i64,
    ])
}

fn build(node: &NodeInfo, kind: Kind) -> Result<AnyKernel> {
    let given = node.attrs.get("ksize").is_none();
    let pooling = Pooling {
        window: if given {
            [1, 1]
        } else {
            pair(&node.attrs, "ksize")?
        },
        attrs: WindowAttrs::new(node)?,
        kind,
        inputs: given.then_some(if kind == Kind::Max { 1 } else { 3 }),
    };
    let dtype = node.attrs.dtype("T")?;
    let unsupported = || Err(internal!("no pooling of {dtype}"));
    match kind {
        Kind::Max | Kind::MaxGrad => {
            by_real!(dtype, T => maxima::<T>(pooling), else => unsupported())
        }
        Kind::Avg | Kind::AvgGrad => {
            by_float!(dtype, T => averages::<T>(pooling), else => unsupported())
        }
    }
}

fn check_grad(pool: &Pool2d, grad: &Shape) -> Result<()> {
    let wanted = output_shape(pool)?;
    if wanted != *grad {
        return Err(invalid_argument!(
            "Expected grad shape to be {wanted}, but got {grad}"
        ));
    }
    Ok(())
}

fn maxima<T: Element + PoolElement>(pooling: Pooling) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let pool = pooling.with_inputs(ctx)?.geometry(input.shape())?;
        let out = if pooling.kind == Kind::Max {
            let mut out = ctx.allocate(T::DTYPE, output_shape(&pool)?)?;
            max_pool(ctx.par(), &pool, input.slice::<T>()?, out.slice_mut::<T>()?);
            out
        } else {
            let grad = ctx.input(2)?;
            check_grad(&pool, ctx.input(1)?.shape())?;
            check_grad(&pool, grad.shape())?;
            let mut out = ctx.allocate(T::DTYPE, input.shape().clone())?;
            max_pool_grad(
                ctx.par(),
                &pool,
                input.slice::<T>()?,
                grad.slice::<T>()?,
                out.slice_mut::<T>()?,
            );
            out
        };
        ctx.set(0, out);
        Ok(())
    })
}

fn averages<T: Element + Float>(pooling: Pooling) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = if pooling.kind == Kind::Avg {
            let input = ctx.input(0)?;
            let pool = pooling.geometry(input.shape())?;
            let mut out = ctx.allocate(T::DTYPE, output_shape(&pool)?)?;
            avg_pool(ctx.par(), &pool, input.slice::<T>()?, out.slice_mut::<T>()?);
            out
        } else {
            let (shape, grad) = (sizes(ctx, 0, "orig_input_shape")?, ctx.input(1)?);
            let pool = pooling.geometry(&shape)?;
            check_grad(&pool, grad.shape())?;
            let mut out = ctx.allocate(T::DTYPE, shape)?;
            avg_pool_grad(ctx.par(), &pool, grad.slice::<T>()?, out.slice_mut::<T>()?);
            out
        };
        ctx.set(0, out);
        Ok(())
    })
}
