//! `BatchMatMul`, `BatchMatMulV2`, `BatchMatMulV3`: products of the matrices in the last two dimensions.
//!
//! TensorFlow: BatchMatMul(x: T, y: T) -> output: T with attrs adj_x, adj_y (conjugated and transposed first). The first form
//! wants equal leading dimensions, the others broadcast them. V3 has a type of its own for each argument: 8-bit integers give
//! int32, or bfloat16 together with bfloat16; they are widened first.

use std::borrow::Cow;

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, of, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::infer::{InferCtx, broadcast_shapes};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::gemm::{self, Batch, Dims, Operand};
use tensorfleet_math::unary::{self, Unary, UnaryElement};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor, UNKNOWN_DIM, bf16};

use super::inner_dims;
use crate::math::calculus::both;
use crate::math::elementwise::{broadcast, expanded, input_dtype, no_function, status};
use crate::math::unary::complex;
use crate::types::{COMPLEX, FLOATS, INDEX, dtypes};
use crate::{by_complex, by_float};

const TYPES: &[DType] = dtypes![FLOATS, &[DType::I16], INDEX, COMPLEX];
const BYTES: &[DType] = &[DType::I8, DType::U8];

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "BatchMatMul",
        attrs: &[
            "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
            "adj_x: bool = false",
            "adj_y: bool = false",
            "grad_x: bool = false",
            "grad_y: bool = false",
        ],
        gradient: Gradient::Rule(|g| {
            let [first, second] = products(g)?;
            both(first, second)
        }),
        kernels: &[cpu(&[("T", super::single::TYPES)], |node| {
            build(node, Leading::Equal)
        })],
        examples: &[
            ex(
                "two products",
                &[ramp(&[2, 1, 2], 1.0, 1.0), ramp(&[2, 2, 1], 1.0, 1.0)],
                &[x(&[2, 1, 1], &[5.0, 25.0])],
            ),
            ex_err(
                "leading dimensions differ",
                &[],
                &[x(&[2, 1, 1], &[1.0]), x(&[1, 1, 1], &[1.0])],
                Code::InvalidArgument,
                "In[0].dim(0) and In[1].dim(0) must be the same: [2,1,1] vs [1,1,1]",
            ),
        ],
        ..BATCH
    },
    OpDef {
        name: "BatchMatMulV2",
        attrs: &[
            "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
            "adj_x: bool = false",
            "adj_y: bool = false",
            "grad_x: bool = false",
            "grad_y: bool = false",
        ],
        gradient: Gradient::Rule(broadcast_gradient),
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, Leading::Broadcast))],
        examples: &[
            ex(
                "matrices",
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), x(&[2, 1], &[5.0, 6.0])],
                &[x(&[2, 1], &[17.0, 39.0])],
            ),
            ex(
                "one matrix on the right",
                &[ramp(&[2, 2, 2], 1.0, 1.0), x(&[2, 1], &[1.0, 2.0])],
                &[x(&[2, 2, 1], &[5.0, 11.0, 17.0, 23.0])],
            ),
            ex(
                "one matrix on the left",
                &[x(&[1, 2], &[1.0, 2.0]), ramp(&[2, 2, 2], 1.0, 1.0)],
                &[x(&[2, 1, 2], &[7.0, 10.0, 19.0, 22.0])],
            ),
            ex(
                "both broadcast",
                &[
                    x(&[2, 1, 1, 1], &[1.0, 2.0]),
                    x(&[3, 1, 1], &[3.0, 4.0, 5.0]),
                ],
                &[x(&[2, 3, 1, 1], &[3.0, 4.0, 5.0, 6.0, 8.0, 10.0])],
            ),
            ex_attrs(
                "both adjoint",
                &[("adj_x", "true"), ("adj_y", "true")],
                &[ramp(&[1, 2, 2], 1.0, 1.0), ramp(&[1, 2, 2], 1.0, 1.0)],
                &[x(&[1, 2, 2], &[7.0, 15.0, 10.0, 22.0])],
            ),
            ex_attrs(
                "adjoint conjugates",
                &[("adj_x", "true")],
                &[
                    complex(&[1, 1], &[(0.0, 1.0)]),
                    complex(&[1, 1], &[(0.0, 1.0)]),
                ],
                &[complex(&[1, 1], &[(1.0, 0.0)])],
            ),
            ex(
                "nothing to sum",
                &[x(&[2, 1, 0], &[]), x(&[1, 0, 2], &[])],
                &[x(&[2, 1, 2], &[0.0])],
            ),
            ex(
                "no products",
                &[x(&[0, 1, 2], &[]), x(&[1, 2, 1], &[1.0, 2.0])],
                &[x(&[0, 1, 1], &[])],
            ),
            ex_err(
                "leading dimensions do not fit",
                &[],
                &[x(&[2, 1, 1], &[1.0]), x(&[3, 1, 1], &[1.0])],
                Code::InvalidArgument,
                "must have compatible batch dimensions: [2,1,1] vs. [3,1,1]",
            ),
            ex_err(
                "inner sizes differ",
                &[],
                &[x(&[2, 2, 3], &[1.0]), x(&[2, 2, 3], &[1.0])],
                Code::InvalidArgument,
                "In[0]: [2,2,3], In[1]: [2,2,3]",
            ),
        ],
        ..BATCH
    },
    OpDef {
        name: "BatchMatMulV3",
        inputs: &["x: Ta", "y: Tb"],
        outputs: &["output: Tout"],
        attrs: &[
            "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
            "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
            "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}",
            "adj_x: bool = false",
            "adj_y: bool = false",
            "grad_x: bool = false",
            "grad_y: bool = false",
        ],
        gradient: Gradient::Rule(broadcast_gradient),
        kernels: &[
            cpu(
                &[("Ta", BYTES), ("Tb", BYTES), ("Tout", &[DType::I32])],
                |node| build(node, Leading::Broadcast),
            ),
            cpu(
                &[
                    ("Ta", BYTES),
                    ("Tb", &[DType::BF16]),
                    ("Tout", &[DType::BF16]),
                ],
                |node| build(node, Leading::Broadcast),
            ),
            cpu(
                &[
                    ("Ta", &[DType::BF16]),
                    ("Tb", BYTES),
                    ("Tout", &[DType::BF16]),
                ],
                |node| build(node, Leading::Broadcast),
            ),
            cpu(&[("Ta", TYPES), ("Tb", TYPES), ("Tout", TYPES)], |node| {
                build(node, Leading::Broadcast)
            }),
        ],
        examples: &[
            ex_attrs(
                "bytes",
                &[("Tout", "DT_INT32")],
                &[
                    of(DType::U8, &[1, 2], &[200.0, 255.0]),
                    of(DType::I8, &[2, 1], &[100.0, -128.0]),
                ],
                &[of(DType::I32, &[1, 1], &[-12640.0])],
            ),
            ex_attrs(
                "float",
                &[("Tout", "DT_FLOAT")],
                &[
                    of(DType::F32, &[1, 2], &[1.0, 2.0]),
                    of(DType::F32, &[2, 1], &[3.0, -4.0]),
                ],
                &[of(DType::F32, &[1, 1], &[-5.0])],
            ),
        ],
        ..BATCH
    },
];

const BATCH: OpDef = OpDef {
    inputs: &["x: T", "y: T"],
    outputs: &["output: T"],
    infer,
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

/// What is asked of the leading dimensions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leading {
    Equal,
    Broadcast,
}

pub(super) fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let adjoint = [ctx.attrs().bool("adj_x")?, ctx.attrs().bool("adj_y")?];
    let (Some(x), Some(y)) = (ctx.input(0).dims(), ctx.input(1).dims()) else {
        return Ok(());
    };
    let ([x_lead @ .., x_rows, x_columns], [y_lead @ .., y_rows, y_columns]) = (x, y) else {
        return Err(invalid_argument!("shapes must have rank 2 or more"));
    };
    let lead = broadcast_shapes(&PartialShape::new(x_lead), &PartialShape::new(y_lead))?;
    let mut dims = lead.dims().unwrap_or(&[UNKNOWN_DIM]).to_vec();
    dims.push(if adjoint[0] { *x_columns } else { *x_rows });
    dims.push(if adjoint[1] { *y_rows } else { *y_columns });
    ctx.set(0, PartialShape::new(&dims));
    Ok(())
}

/// The gradients before leading dimensions are summed.
fn products(g: &mut GradCtx<'_>) -> Result<[Output; 2]> {
    let (x, y, grad) = (g.input(0), g.input(1), g.grad(0)?);
    Ok(match (g.attrs().bool("adj_x")?, g.attrs().bool("adj_y")?) {
        (false, false) => [
            product(g, grad, y, [false, true])?,
            product(g, x, grad, [true, false])?,
        ],
        (false, true) => [
            product(g, grad, y, [false, false])?,
            product(g, grad, x, [true, false])?,
        ],
        (true, false) => [
            product(g, y, grad, [false, true])?,
            product(g, x, grad, [false, false])?,
        ],
        (true, true) => [
            product(g, y, grad, [true, true])?,
            product(g, grad, x, [true, true])?,
        ],
    })
}

/// `x · y` of the last two dimensions, either adjoint.
pub(crate) fn product(
    g: &mut GradCtx<'_>,
    x: Output,
    y: Output,
    adjoint: [bool; 2],
) -> Result<Output> {
    let node = g.builder().op("BatchMatMulV2").input(x).input(y);
    node.attr("adj_x", adjoint[0])
        .attr("adj_y", adjoint[1])
        .output()
}

fn broadcast_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grads = products(g)?;
    sum_leading(g, grads)
}

/// Sums gradients whose leading dimensions were broadcast back to the shapes of inputs 0 and 1.
pub(crate) fn sum_leading(g: &mut GradCtx<'_>, grads: [Output; 2]) -> Result<InputGrads> {
    let shapes = [g.shape(g.input(0))?, g.shape(g.input(1))?];
    let (zero, minus_two, one) = (g.ints(&[0])?, g.ints(&[-2])?, g.ints(&[1])?);
    let mut leading = Vec::with_capacity(2);
    for shape in shapes {
        let node = g.builder().op("StridedSlice").input(shape);
        let node = node.input(zero).input(minus_two).input(one);
        leading.push(node.attr("begin_mask", 1i64).output()?);
    }
    let axes = g.builder().op("BroadcastGradientArgs");
    let axes = axes.input(leading[0]).input(leading[1]).build()?;
    let mut summed = Vec::with_capacity(2);
    for (index, grad) in grads.into_iter().enumerate() {
        let sum = g.apply("Sum", &[grad, axes.output(index)])?;
        summed.push(g.apply("Reshape", &[sum, shapes[index]])?);
    }
    both(summed[0], summed[1])
}

fn build(node: &NodeInfo, leading: Leading) -> Result<AnyKernel> {
    let adjoint = [node.attrs.bool("adj_x")?, node.attrs.bool("adj_y")?];
    let types = [
        input_dtype(node),
        node.input_types
            .get(1)
            .map_or(DType::F32, |port| port.dtype),
    ];
    let out = node
        .output_types
        .first()
        .map_or(DType::F32, |port| port.dtype);
    match (types, out) {
        ([DType::I8 | DType::U8, DType::I8 | DType::U8], DType::I32) => {
            return widened::<i32>(adjoint, leading);
        }
        (
            [DType::I8 | DType::U8, DType::BF16] | [DType::BF16, DType::I8 | DType::U8],
            DType::BF16,
        ) => {
            return widened::<bf16>(adjoint, leading);
        }
        ([x, y], out) if x != y || x != out => {
            return Err(no_function(format!("{} of {x} and {y}", node.op), out));
        }
        _ => {}
    }
    match out {
        DType::I16 => build_of::<i16>(adjoint, leading),
        DType::I32 => build_of::<i32>(adjoint, leading),
        DType::I64 => build_of::<i64>(adjoint, leading),
        _ => by_float!(out, T => build_of::<T>(adjoint, leading), else =>
            by_complex!(out, T => build_of::<T>(adjoint, leading), else => Err(no_function(&node.op, out)))),
    }
}

fn build_of<T>(adjoint: [bool; 2], leading: Leading) -> Result<AnyKernel>
where
    T: Element + gemm::Element + UnaryElement,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        let plan = Plan::new(x.shape(), y.shape(), adjoint, leading)?;
        let x = conjugated(ctx, x.slice::<T>()?, adjoint[0])?;
        let y = conjugated(ctx, y.slice::<T>()?, adjoint[1])?;
        let out = plan.run::<T>(ctx, &x, &y)?;
        ctx.set(0, out);
        Ok(())
    })
}

/// For inputs of one byte: both are widened to the type of the output.
fn widened<T: Element + gemm::Element + From<i8> + From<u8>>(
    adjoint: [bool; 2],
    leading: Leading,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        let plan = Plan::new(x.shape(), y.shape(), adjoint, leading)?;
        let (x, y) = (wide::<T>(x)?, wide::<T>(y)?);
        let out = plan.run::<T>(ctx, &x, &y)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn wide<T: Element + gemm::Element + From<i8> + From<u8>>(tensor: &Tensor) -> Result<Cow<'_, [T]>> {
    Ok(match tensor.dtype() {
        DType::I8 => tensor.slice::<i8>()?.iter().map(|v| T::from(*v)).collect(),
        DType::U8 => tensor.slice::<u8>()?.iter().map(|v| T::from(*v)).collect(),
        _ => Cow::Borrowed(tensor.slice::<T>()?),
    })
}

/// The elements, conjugated if they are complex and `adjoint` says so.
fn conjugated<'a, T: UnaryElement>(
    ctx: &KernelCtx<'_>,
    values: &'a [T],
    adjoint: bool,
) -> Result<Cow<'a, [T]>> {
    if !adjoint || !T::supports(Unary::Conj) {
        return Ok(Cow::Borrowed(values));
    }
    let mut copy = values.to_vec();
    unary::apply_in_place(ctx.par(), Unary::Conj, &mut copy).map_err(status)?;
    Ok(Cow::Owned(copy))
}

/// What is multiplied with what.
pub(super) struct Plan {
    dims: Dims,
    shape: Shape,
    adjoint: [bool; 2],
    /// Matrices on each side and in the product.
    counts: [usize; 3],
    leading: [Shape; 3],
}

impl Plan {
    pub(super) fn new(x: &Shape, y: &Shape, adjoint: [bool; 2], leading: Leading) -> Result<Plan> {
        check_leading(x, y, leading)?;
        let lead = |shape: &Shape| Shape::new(&shape[..shape.rank() - 2]);
        let (x_lead, y_lead) = (lead(x)?, lead(y)?);
        let (_, out_lead) = broadcast(&x_lead, &y_lead).map_err(|_| {
            invalid_argument!("In[0] and In[1] must have compatible batch dimensions: {x} vs. {y}")
        })?;
        let dims = inner_dims(x, y, adjoint)?;
        let shape = out_lead.concat(&[dims.m as i64, dims.n as i64])?;
        Ok(Plan {
            dims,
            shape,
            adjoint,
            counts: [x_lead.elements(), y_lead.elements(), out_lead.elements()],
            leading: [x_lead, y_lead, out_lead],
        })
    }

    pub(super) fn run<T: Element + gemm::Element>(
        &self,
        ctx: &KernelCtx<'_>,
        x: &[T],
        y: &[T],
    ) -> Result<Tensor> {
        let mut out = ctx.allocate(T::DTYPE, self.shape.clone())?;
        let into = out.slice_mut::<T>()?;
        let [x_count, y_count, count] = self.counts;
        let Dims { m, n, k } = self.dims;
        if y_count == 1 && !self.adjoint[0] && x_count == count {
            // One matrix on the right: the rows of all matrices on the left are the rows of one.
            let dims = Dims { m: m * count, n, k };
            gemm::matmul(ctx.par(), dims, (x, false), (y, self.adjoint[1]), into);
            return Ok(out);
        }
        let operand = |data, rows, columns, transposed| Operand {
            data,
            stride: if transposed { rows } else { columns },
            transposed,
        };
        let left = operand(x, m, k, self.adjoint[0]);
        let right = operand(y, k, n, self.adjoint[1]);
        let is_even = |side: usize| side == count || side == 1;
        if is_even(x_count) && is_even(y_count) {
            let step = |side: usize, size: usize| if side == count { size } else { 0 };
            let batch = Batch::Strided {
                count,
                a: step(x_count, m * k),
                b: step(y_count, k * n),
            };
            gemm::gemm_batched(ctx.par(), self.dims, batch, left, right, into);
            return Ok(out);
        }
        let numbers = |side: usize| (0..self.counts[side]).collect::<Vec<usize>>();
        let (x_of, y_of) = (numbers(0), numbers(1));
        let x_of = expanded(&x_of, &self.leading[0], &self.leading[2]);
        let y_of = expanded(&y_of, &self.leading[1], &self.leading[2]);
        let pairs = x_of.iter().zip(y_of.iter());
        let offsets: Vec<(usize, usize)> = pairs.map(|(x, y)| (x * m * k, y * k * n)).collect();
        let batch = Batch::Listed(&offsets);
        gemm::gemm_batched(ctx.par(), self.dims, batch, left, right, into);
        Ok(out)
    }
}

fn check_leading(x: &Shape, y: &Shape, leading: Leading) -> Result<()> {
    if leading == Leading::Broadcast {
        for (index, shape) in [x, y].into_iter().enumerate() {
            if shape.rank() < 2 {
                return Err(invalid_argument!(
                    "In[{index}] ndims must be >= 2: {}",
                    shape.rank()
                ));
            }
        }
        return Ok(());
    }
    if x.rank() != y.rank() {
        return Err(invalid_argument!(
            "In[0] and In[1] has different ndims: {x} vs. {y}"
        ));
    }
    if x.rank() < 2 {
        return Err(invalid_argument!(
            "In[0] and In[1] ndims must be >= 2: {}",
            x.rank()
        ));
    }
    for axis in 0..x.rank() - 2 {
        if x[axis] != y[axis] {
            return Err(invalid_argument!(
                "In[0].dim({axis}) and In[1].dim({axis}) must be the same: {x} vs {y}"
            ));
        }
    }
    Ok(())
}
