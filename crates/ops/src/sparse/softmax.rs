//! `SparseSoftmax`: softmax over the values of each row of a sparse tensor; what is not there counts as if it were minus infinity.
//!
//! TensorFlow: SparseSoftmax(sp_indices: int64, sp_values: T, sp_shape: int64) -> output: T, in row-major order.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, i64s, ramp, script, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, f16};

use super::parts::Part;

const TYPES: &[DType] = &[DType::F16, DType::F32, DType::F64];

pub(crate) static OP: OpDef = OpDef {
    name: "SparseSoftmax",
    inputs: &["sp_indices: int64", "sp_values: T", "sp_shape: int64"],
    outputs: &["output: T"],
    attrs: &["T: {half, float, double}"],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", TYPES)], build)],
    exactness: Exactness::Relative(2e-3),
    examples: &[
        ex(
            "rows",
            &[
                i64s(&[3, 2], &[0, 0, 0, 2, 1, 1]),
                x(&[3], &[2.0, 2.0, 7.0]),
                i64s(&[2], &[2, 3]),
            ],
            &[x(&[3], &[0.5, 0.5, 1.0])],
        ),
        ex_ref(
            "several values",
            &[],
            &[
                i64s(&[5, 2], &[0, 0, 0, 1, 0, 3, 2, 0, 2, 1]),
                ramp(&[5], 0.0, 0.5),
                i64s(&[2], &[3, 4]),
            ],
        ),
        ex(
            "nothing",
            &[i64s(&[0, 2], &[]), x(&[0], &[]), i64s(&[2], &[2, 3])],
            &[x(&[0], &[])],
        ),
        ex_err(
            "rank",
            &[],
            &[i64s(&[1, 1], &[0]), f32s(&[1], &[1.0]), i64s(&[1], &[2])],
            Code::InvalidArgument,
            "Input should have rank >= 2, but received shape: ",
        ),
        ex_err(
            "negative shape",
            &[],
            &[
                i64s(&[1, 2], &[0, 0]),
                f32s(&[1], &[1.0]),
                i64s(&[2], &[2, -2]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    scripts: &[script(
        "rows of rows, put in order",
        "i = int64[3, 3]{1, 0, 1, 0, 0, 0, 0, 0, 1}
         v = float[3]{2, 3, 3}
         s = int64[3]{2, 1, 2}
         y = SparseSoftmax(i, v, s)",
        &["fetch y => float[3]{0.5, 0.5, 1}"],
    )],
    ..OpDef::BLANK
};

/// As of a dense softmax: each row's gradients less their mean, weighted by the result.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (indices, shape, out, grad) = (g.input(0), g.input(2), g.output(0), g.grad(0)?);
    let product = g.apply("Mul", &[out, grad])?;
    let last = g.ints(&[-1])?;
    let node = g.builder().op("SparseReduceSum").input(indices);
    let node = node.input(product).input(shape).input(last);
    let sums = node.attr("keep_dims", true).output()?;
    let less = g.apply("Neg", &[sums])?;
    let shifted = g.apply("SparseDenseCwiseAdd", &[indices, grad, shape, less])?;
    let to_values = g.apply("Mul", &[shifted, out])?;
    Ok(vec![None, Some(Grad::Dense(to_values)), None])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    match node.attrs.dtype("T")? {
        DType::F16 => kernel::<f16>(|value| f64::from(value.to_f32()), f16::from_f64),
        DType::F32 => kernel::<f32>(f64::from, |value| value as f32),
        _ => kernel::<f64>(|value| value, |value| value),
    }
}

fn kernel<T: Element + Copy>(widen: fn(T) -> f64, narrow: fn(f64) -> T) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let rows = rows(ctx)?;
        let values = ctx.input(1)?.slice::<T>()?;
        let mut out = Vec::with_capacity(values.len());
        for row in rows {
            let row: Vec<f64> = row.iter().map(|at| widen(values[*at])).collect();
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers = row.iter().map(|value| (value - most).exp());
            let powers: Vec<f64> = powers.collect();
            let sum: f64 = powers.iter().sum();
            out.extend(powers.iter().map(|power| narrow(power / sum)));
        }
        let out = Tensor::from_vec(Shape::vector(out.len()), out)?;
        ctx.set(0, out);
        Ok(())
    })
}

/// The places of the values of each row, all in row-major order.
fn rows(ctx: &KernelCtx<'_>) -> Result<Vec<Vec<usize>>> {
    let part = Part::of(ctx, 0)?;
    ensure!(
        part.rank() >= 2,
        invalid_argument,
        "Input should have rank >= 2, but received shape: {:?}",
        part.shape
    );
    // Indices may lie outside of the shape, but that must be one.
    Shape::new(&part.shape)?;
    let mut order: Vec<usize> = (0..part.len()).collect();
    order.sort_by_key(|at| part.row(*at));
    let row = |at: usize| &part.row(at)[..part.rank() - 1];
    let rows = order.chunk_by(|a, b| row(*a) == row(*b));
    Ok(rows.map(<[usize]>::to_vec).collect())
}
