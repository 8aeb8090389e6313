//! `MaxPool3D`, `AvgPool3D` and their gradients over NDHWC volumes.
//!
//! TensorFlow: MaxPool3D(input: T) -> output: T, AvgPool3D alike, with ksize, strides, padding; MaxPool3DGrad(orig_input,
//! orig_output, grad) hands each window's gradient to all of its largest elements, MaxPool3DGradGrad, with `grad` shaped as the
//! input, picks what stands at the first; AvgPool3DGrad(orig_input_shape: int32, grad: T) shares out evenly.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{Padding, Window};
use tensorfleet_math::num::Float;
use tensorfleet_math::pool2d::PoolElement;
use tensorfleet_math::pool3d::{
    Pool3d, avg_pool, avg_pool_grad, max_pool, max_pool_grad, max_pool_grad_grad,
};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, bf16};

use super::conv_attrs::with_attrs;
use super::pool::check_shape;
use super::volume::{five, negative, padding, pooled, shape_of, sizes, triple};

const TYPES: &[DType] = &[DType::BF16, DType::F32];

const TWO: (&str, &str) = ("ksize", "[1, 2, 2, 2, 1]");
const THREE: (&str, &str) = ("ksize", "[1, 2, 3, 3, 1]");
const STRIDE: (&str, &str) = ("strides", "[1, 2, 2, 2, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");
const FIRST: (&str, &str) = ("data_format", "'NCDHW'");
const SHARED: [&str; 4] = ["ksize", "strides", "padding", "data_format"];

const CUBE: Lit = x(&[1, 2, 2, 2, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0]);
const SINGLES: Lit = f32s(&[1, 2, 2, 2, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0]);
const ONE: Lit = f32s(&[1, 1, 1, 1, 1], &[7.0]);
const VOLUME: Lit = ramp(&[2, 3, 5, 4, 2], 60.0, -0.5);

const POOL: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: &[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        "padding: {'SAME', 'VALID'}",
        "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
        "T: {half, bfloat16, float, double}",
    ],
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "AvgPool3D",
        inputs: &["input: T"],
        infer: pooled,
        gradient: Gradient::Rule(avg_gradient),
        kernels: &[cpu(&[("T", TYPES)], |node| {
            build(node, "Pooling3DOp", Pass::Avg)
        })],
        examples: &[
            ex_attrs(
                "one cube",
                &[TWO, STRIDE, VALID],
                &[CUBE],
                &[x(&[1, 1, 1, 1, 1], &[3.5])],
            ),
            ex_ref("padding does not count", &[THREE, STRIDE, SAME], &[VOLUME]),
        ],
        ..POOL
    },
    OpDef {
        name: "AvgPool3DGrad",
        inputs: &["orig_input_shape: int32", "grad: T"],
        infer: infer::shape_in::<0>,
        gradient: Gradient::Rule(avg_grad_gradient),
        kernels: &[cpu(&[("T", TYPES)], |node| {
            build(node, "AvgPooling3dGradOp", Pass::AvgGrad)
        })],
        examples: &[
            ex_attrs(
                "even shares",
                &[TWO, STRIDE, VALID],
                &[i32s(&[5], &[1, 2, 2, 2, 1]), x(&[1, 1, 1, 1, 1], &[4.0])],
                &[x(&[1, 2, 2, 2, 1], &[0.5])],
            ),
            ex_ref(
                "overlapping",
                &[THREE, STRIDE, SAME],
                &[
                    i32s(&[5], &[2, 3, 5, 4, 2]),
                    f32s(&[2, 2, 3, 2, 2], &[0.75]),
                ],
            ),
            ex_err(
                "shape",
                &[TWO, STRIDE, VALID],
                &[i32s(&[4], &[1, 2, 2, 2]), ONE],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..POOL
    },
    OpDef {
        name: "MaxPool3D",
        inputs: &["input: T"],
        attrs: &[
            "ksize: list(int) >= 5",
            "strides: list(int) >= 5",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
            "T: {half, bfloat16, float}",
        ],
        infer: pooled,
        gradient: Gradient::Rule(max_gradient),
        kernels: &[cpu(&[("T", TYPES)], |node| {
            build(node, "Pooling3DOp", Pass::Max)
        })],
        exactness: Exactness::Bits,
        examples: &[
            ex_attrs(
                "one cube",
                &[TWO, STRIDE, VALID],
                &[CUBE],
                &[x(&[1, 1, 1, 1, 1], &[7.0])],
            ),
            ex_ref("overlapping", &[THREE, STRIDE, SAME], &[VOLUME]),
            ex_err(
                "no volume",
                &[TWO, STRIDE, VALID],
                &[f32s(&[2, 2], &[0.0])],
                Code::InvalidArgument,
                "5",
            ),
            ex_err(
                "channels first",
                &[TWO, STRIDE, VALID, FIRST],
                &[f32s(&[1, 2, 2, 2, 2], &[0.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..POOL
    },
    OpDef {
        name: "MaxPool3DGrad",
        inputs: &["orig_input: TInput", "orig_output: TInput", "grad: T"],
        attrs: &[
            "ksize: list(int) >= 5",
            "strides: list(int) >= 5",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
            "T: {half, bfloat16, float} = DT_FLOAT",
            "TInput: {half, bfloat16, float} = DT_FLOAT",
        ],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(|g| by_the_other(g, "MaxPool3DGradGrad")),
        kernels: &[cpu(
            &[("T", &[DType::F32]), ("TInput", &[DType::F32])],
            |node| build(node, "MaxPooling3dGradOp", Pass::MaxGrad),
        )],
        examples: &[
            ex_attrs(
                "one cube",
                &[TWO, STRIDE, VALID],
                &[SINGLES, ONE, f32s(&[1, 1, 1, 1, 1], &[3.0])],
                &[f32s(
                    &[1, 2, 2, 2, 1],
                    &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0],
                )],
            ),
            ex_attrs(
                "all of equals",
                &[TWO, STRIDE, VALID],
                &[f32s(&[1, 2, 2, 2, 1], &[7.0]), ONE, ONE],
                &[f32s(&[1, 2, 2, 2, 1], &[7.0])],
            ),
            ex_err(
                "orig_output",
                &[TWO, STRIDE, VALID],
                &[SINGLES, SINGLES, ONE],
                Code::InvalidArgument,
                "Expected orig_output shape to be [1,1,1,1,1], but got [1,2,2,2,1]",
            ),
        ],
        ..POOL
    },
    OpDef {
        name: "MaxPool3DGradGrad",
        inputs: &["orig_input: T", "orig_output: T", "grad: T"],
        attrs: &[
            "ksize: list(int) >= 5",
            "strides: list(int) >= 5",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        ],
        infer: pooled,
        gradient: Gradient::Rule(|g| by_the_other(g, "MaxPool3DGrad")),
        kernels: &[cpu(&[("T", TYPES)], |node| {
            build(node, "MaxPooling3dGradGradOp", Pass::MaxGradGrad)
        })],
        examples: &[
            ex_attrs(
                "one cube",
                &[TWO, STRIDE, VALID],
                &[
                    CUBE,
                    x(&[1, 1, 1, 1, 1], &[7.0]),
                    ramp(&[1, 2, 2, 2, 1], 1.0, 1.0),
                ],
                &[x(&[1, 1, 1, 1, 1], &[7.0])],
            ),
            ex_err(
                "grad",
                &[TWO, STRIDE, VALID],
                &[f32s(&[1, 2, 2, 2, 1], &[7.0]), ONE, ONE],
                Code::InvalidArgument,
                "Expected grad shape to be [1,2,2,2,1], but got [1,1,1,1,1]",
            ),
        ],
        ..POOL
    },
];

fn avg_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, grad) = (g.input(0), g.grad(0)?);
    let shape = g.shape(input)?;
    dense(with_attrs(g, "AvgPool3DGrad", &SHARED, &[shape, grad])?)
}

/// What went out in even shares comes back as a mean.
fn avg_grad_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let pooled = with_attrs(g, "AvgPool3D", &SHARED, &[grad])?;
    Ok(vec![None, Some(Grad::Dense(pooled))])
}

fn max_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.input(0), g.output(0), g.grad(0)?];
    dense(with_attrs(g, "MaxPool3DGrad", &SHARED, &inputs)?)
}

/// Both ops are linear in `grad`; where the maxima are does not change by a little.
fn by_the_other(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let inputs = [g.input(0), g.input(1), g.grad(0)?];
    let grad = with_attrs(g, op, &SHARED, &inputs)?;
    Ok(vec![None, None, Some(Grad::Dense(grad))])
}

#[derive(Clone, Copy)]
enum Pass {
    Avg,
    AvgGrad,
    Max,
    MaxGrad,
    MaxGradGrad,
}

/// Windows and strides of a node.
#[derive(Clone, Copy)]
struct Pooling3d {
    window: [usize; 3],
    stride: [usize; 3],
    padding: Padding,
}

impl Pooling3d {
    fn new(node: &NodeInfo, kernel: &str) -> Result<Pooling3d> {
        let attrs = &node.attrs;
        ensure!(
            attrs.str("data_format")? == "NDHWC",
            invalid_argument,
            "Default {kernel} only supports NDHWC on device type CPU"
        );
        let (ksize, strides) = (attrs.ints("ksize")?, attrs.ints("strides")?);
        let batch = ksize.first() != Some(&1) || strides.first() != Some(&1);
        let place = if batch { "batch" } else { "depth" };
        let refuse = || unimplemented!("Pooling is not yet supported on the {place} dimension.");
        Ok(Pooling3d {
            window: triple(ksize, "ksize", refuse)?,
            stride: triple(strides, "stride", refuse)?,
            padding: padding(attrs)?,
        })
    }

    /// The windows over volumes of this shape.
    fn over(&self, input: &Shape) -> Result<Pool3d> {
        let Some([batch, d, h, w, channels]) = five(input) else {
            return Err(invalid_argument!("tensor_in must be 5-dimensional"));
        };
        let (input, mut before, mut output) = ([d, h, w], [0; 3], [0; 3]);
        for axis in 0..3 {
            let (window, stride) = (self.window[axis], self.stride[axis]);
            let found = Window::new(0, input[axis], window, 1, stride, self.padding)
                .ok_or_else(|| negative(input, self.window, self.stride, self.padding))?;
            (before[axis], output[axis]) = (found.before, found.output);
        }
        Ok(Pool3d {
            batch,
            channels,
            input,
            window: self.window,
            stride: self.stride,
            before,
            output,
        })
    }
}

fn output_shape(pool: &Pool3d) -> Result<Shape> {
    let [d, h, w] = pool.output;
    shape_of([pool.batch, d, h, w, pool.channels])
}

fn build(node: &NodeInfo, kernel: &str, pass: Pass) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling3d::new(node, kernel)?, node.attrs.dtype("T")?);
    match dtype {
        DType::F32 => run_pass::<f32>(pooling, pass),
        DType::BF16 => run_pass::<bf16>(pooling, pass),
        _ => Err(internal!("no pooling of {dtype}")),
    }
}

fn run_pass<T: Element + Float + PoolElement>(pooling: Pooling3d, pass: Pass) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = match pass {
            Pass::Avg | Pass::Max => forward::<T>(ctx, &pooling, pass)?,
            Pass::AvgGrad => share::<T>(ctx, &pooling)?,
            Pass::MaxGrad | Pass::MaxGradGrad => at_maxima::<T>(ctx, &pooling, pass)?,
        };
        ctx.set(0, out);
        Ok(())
    })
}

fn forward<T: Element + Float + PoolElement>(
    ctx: &KernelCtx<'_>,
    pooling: &Pooling3d,
    pass: Pass,
) -> Result<Tensor> {
    let input = ctx.input(0)?;
    let pool = pooling.over(input.shape())?;
    let mut out = ctx.allocate(T::DTYPE, output_shape(&pool)?)?;
    let (from, to) = (input.slice::<T>()?, out.slice_mut::<T>()?);
    match pass {
        Pass::Avg => avg_pool(ctx.par(), &pool, from, to),
        _ => max_pool(ctx.par(), &pool, from, to),
    }
    Ok(out)
}

fn share<T: Element + Float>(ctx: &KernelCtx<'_>, pooling: &Pooling3d) -> Result<Tensor> {
    let grad = ctx.input(1)?;
    let text = "tensor_in must be 1-dimensional and 5 elements";
    let shape = sizes(&ctx.ints(0)?, text)?;
    let pool = pooling.over(&shape)?;
    check_shape(&output_shape(&pool)?, "out_backprop", grad.shape())?;
    let mut out = ctx.allocate(T::DTYPE, shape)?;
    avg_pool_grad(ctx.par(), &pool, grad.slice::<T>()?, out.slice_mut::<T>()?);
    Ok(out)
}

fn at_maxima<T: Element + Float>(
    ctx: &KernelCtx<'_>,
    pooling: &Pooling3d,
    pass: Pass,
) -> Result<Tensor> {
    let (input, output, grad) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let pool = pooling.over(input.shape())?;
    let pooled = output_shape(&pool)?;
    check_shape(&pooled, "orig_output", output.shape())?;
    let tensors = (
        input.slice::<T>()?,
        output.slice::<T>()?,
        grad.slice::<T>()?,
    );
    if let Pass::MaxGrad = pass {
        check_shape(&pooled, "grad", grad.shape())?;
        let mut out = ctx.allocate(T::DTYPE, input.shape().clone())?;
        max_pool_grad(ctx.par(), &pool, tensors, out.slice_mut::<T>()?);
        return Ok(out);
    }
    check_shape(input.shape(), "grad", grad.shape())?;
    ensure!(
        !input.is_empty() && !output.is_empty(),
        invalid_argument,
        "received empty tensor tensor_in or tensor_out: {}, {pooled}",
        input.shape()
    );
    let mut out = ctx.allocate(T::DTYPE, pooled)?;
    max_pool_grad_grad(ctx.par(), &pool, tensors, out.slice_mut::<T>()?);
    Ok(out)
}
