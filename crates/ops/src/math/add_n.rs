//! `AddN` and `AccumulateNV2`: the sum of tensors of one shape; lists of tensors are summed element by element.
//!
//! TensorFlow: AddN(inputs: N * T) -> sum: T for numbers and variants; AccumulateNV2(inputs: N * T) -> sum: T, attr shape. The
//! inputs are added from the first to the last. TensorFlow rewrites AccumulateNV2 into a chain of updates; here it is a sum.

use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_graph::example::{ex, ex_attrs, ex_err, script, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::binary::{self, Binary, BinaryElement};
use tensorfleet_math::broadcast::Broadcast;
use tensorfleet_math::num::Num;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Code, Result, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, Tensor, TensorList, Variant};

use super::elementwise::{input_dtype, no_function, status};
use crate::by_number;
use crate::data_flow::optional;
use crate::data_flow::tensor_map::TensorMap;
use crate::data_flow::variant_number::VariantNumber;
use crate::ragged::variant::RaggedVariant;
use crate::types::NUMBERS;

const NAMED: &str = "Input 0: [2] != input 1: [3]";

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "AddN",
        inputs: &["inputs: N * T"],
        outputs: &["sum: T"],
        attrs: &[
            "N: int >= 1",
            "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
        ],
        commutative: true,
        aggregate: true,
        infer: infer::all_same,
        gradient: Gradient::Rule(gradient),
        kernels: &[
            cpu(&[("T", NUMBERS)], build),
            cpu(&[("T", &[DType::Variant])], build_lists),
        ],
        examples: &[
            ex("one", &[x(&[2], &[1.0, 2.0])], &[x(&[2], &[1.0, 2.0])]),
            ex(
                "two",
                &[x(&[2], &[1.0, 2.0]), x(&[2], &[10.0, 20.0])],
                &[x(&[2], &[11.0, 22.0])],
            ),
            ex(
                "three scalars",
                &[x(&[], &[1.0]), x(&[], &[2.0]), x(&[], &[4.0])],
                &[x(&[], &[7.0])],
            ),
            ex(
                "four",
                &[
                    x(&[1, 3], &[1.0, 2.0, 3.0]),
                    x(&[1, 3], &[1.0]),
                    x(&[1, 3], &[2.0]),
                    x(&[1, 3], &[3.0, 2.0, 1.0]),
                ],
                &[x(&[1, 3], &[7.0])],
            ),
            ex(
                "empty",
                &[x(&[0], &[]), x(&[0], &[]), x(&[0], &[])],
                &[x(&[0], &[])],
            ),
            ex_err(
                "shapes differ",
                &[],
                &[x(&[2], &[1.0]), x(&[3], &[1.0])],
                Code::InvalidArgument,
                NAMED,
            ),
        ],
        scripts: &[script(
            "lists of tensors",
            "a = float[2,2]{1, 2, 3, 4}
             b = float[2,2]{10, 20, 30, 40}
             shape = int32[1]{2}
             la = TensorListFromTensor(a, shape)
             lb = TensorListFromTensor(b, shape)
             sum = AddN([la, lb, la])
             out = TensorListStack(sum, shape) {element_dtype=DT_FLOAT}",
            &["fetch out => float[2,2]{12, 24, 36, 48}"],
        )],
        ..OpDef::BLANK
    },
    OpDef {
        name: "AccumulateNV2",
        inputs: &["inputs: N * T"],
        outputs: &["sum: T"],
        attrs: &[
            "N: int >= 1",
            "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
            "shape: shape",
        ],
        commutative: true,
        aggregate: true,
        infer: infer::all_same,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", NUMBERS)], build)],
        examples: &[ex_attrs(
            "three",
            &[("shape", "[2]")],
            &[
                x(&[2], &[1.0, 2.0]),
                x(&[2], &[3.0]),
                x(&[2], &[10.0, 20.0]),
            ],
            &[x(&[2], &[14.0, 25.0])],
        )],
        ..OpDef::BLANK
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    Ok(vec![Some(Grad::Dense(grad)); g.num_inputs()])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_number!(dtype, T => AnyKernel::sync(sum::<T>), else => Err(no_function(&node.op, dtype)))
}

fn sum<T: Element + Num + BinaryElement>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    check_shapes(ctx)?;
    let out = match ctx.num_inputs() {
        1 => ctx.take(0)?,
        2 => {
            let (x, y) = (ctx.take(0)?, ctx.take(1)?);
            added::<T>(ctx.par(), x, y)?
        }
        count => {
            let mut out = ctx.allocate(T::DTYPE, ctx.input(0)?.shape().clone())?;
            let mut slices = SmallVec::<[&[T]; 8]>::new();
            for index in 0..count {
                slices.push(ctx.input(index)?.slice::<T>()?);
            }
            binary::add_n(ctx.par(), &slices, out.slice_mut::<T>()?);
            out
        }
    };
    ctx.set(0, out);
    Ok(())
}

fn check_shapes(ctx: &KernelCtx<'_>) -> Result<()> {
    let first = ctx.input(0)?.shape();
    for index in 1..ctx.num_inputs() {
        let other = ctx.input(index)?.shape();
        if first != other {
            return Err(invalid_argument!(
                "Inputs to operation {} of type {} must have the same size and shape.  Input 0: {first} != input {index}: {other}",
                ctx.node().name,
                ctx.node().op
            ));
        }
    }
    Ok(())
}

/// `x + y` of one shape, in the memory of one of them if nobody else has it.
fn added<T: Element + BinaryElement>(
    par: &dyn Par,
    mut x: Tensor,
    mut y: Tensor,
) -> Result<Tensor> {
    let plan = Broadcast::same(x.elements());
    if x.is_unique() {
        let y = y.slice::<T>()?;
        binary::apply_lhs(par, Binary::Add, &plan, x.slice_mut::<T>()?, y).map_err(status)?;
        return Ok(x);
    }
    if y.is_unique() {
        let x = x.slice::<T>()?;
        binary::apply_rhs(par, Binary::Add, &plan, x, y.slice_mut::<T>()?).map_err(status)?;
        return Ok(y);
    }
    let mut z = Tensor::new(T::DTYPE, x.shape().clone())?;
    let (x, y) = (x.slice::<T>()?, y.slice::<T>()?);
    binary::apply(par, Binary::Add, &plan, x, y, z.slice_mut::<T>()?).map_err(status)?;
    Ok(z)
}

fn build_lists(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        for index in 0..ctx.num_inputs() {
            let shape = ctx.input(index)?.shape();
            if shape.rank() != 0 {
                return Err(invalid_argument!(
                    "AddN of non-scalar Tensor with dtype=DT_VARIANT is not supported; inputs[{index}] has shape: {shape}"
                ));
            }
        }
        let mut sum = ctx.take(0)?.to_scalar::<Variant>()?;
        for index in 1..ctx.num_inputs() {
            let next = ctx.take(index)?.to_scalar::<Variant>()?;
            sum = add_variants(ctx.par(), sum, next)?;
        }
        ctx.set(0, Tensor::scalar(sum));
        Ok(())
    })
}

/// The sum of two lists, optionals or numbers, element by element.
fn add_variants(par: &dyn Par, a: Variant, b: Variant) -> Result<Variant> {
    if a.type_name() != b.type_name() {
        return Err(internal!(
            "BinaryOpVariants: Variants a and b have different type ids.  Type names: '{}' vs. '{}'",
            a.type_name(),
            b.type_name()
        ));
    }
    if let (Some(x), Some(y)) = (VariantNumber::of(&a), VariantNumber::of(&b))
        && let Some(sum) = x.plus(y)
    {
        return Ok(sum.into_variant());
    }
    if let (Some(x), Some(y)) = (optional::components(&a), optional::components(&b)) {
        return add_optionals(par, x, y);
    }
    if let (Some(x), Some(y)) = (a.downcast::<TensorMap>(), b.downcast::<TensorMap>()) {
        let sum = x.merge(y, |x, y| add_items(par, x.clone(), y.clone()))?;
        return Ok(sum.into_variant());
    }
    if let (Some(x), Some(y)) = (RaggedVariant::of(&a), RaggedVariant::of(&b)) {
        return Ok(x.sum(&y, par, add_items)?.into_variant());
    }
    let (Variant::List(a), Variant::List(b)) = (&a, &b) else {
        return Err(unimplemented!(
            "no addition of variants of type '{}' and '{}'",
            a.type_name(),
            b.type_name()
        ));
    };
    if a.element_dtype != b.element_dtype {
        return Err(invalid_argument!(
            "Trying to add two lists of tensors of different dtypes. One is {} and the other is {}",
            a.element_dtype,
            b.element_dtype
        ));
    }
    if a.items.len() != b.items.len() {
        return Err(invalid_argument!(
            "Trying to add two lists of tensors with different lengths. One is {} and the other is {}",
            a.items.len(),
            b.items.len()
        ));
    }
    let shape = a.element_shape.merge(&b.element_shape).map_err(|_| {
        invalid_argument!(
            "Trying to add two lists of tensors with incompatible element shapes. One is {} and the other is {}",
            a.element_shape,
            b.element_shape
        )
    })?;
    let mut out = TensorList::new(a.element_dtype, shape);
    out.max_num_elements = a.max_num_elements;
    for (x, y) in a.items.iter().zip(&b.items) {
        out.items.push(match (x, y) {
            (Some(x), Some(y)) => Some(add_items(par, x.clone(), y.clone())?),
            (x, y) => x.clone().or_else(|| y.clone()),
        });
    }
    Ok(Variant::List(Arc::new(out)))
}

fn add_optionals(par: &dyn Par, a: Option<&[Tensor]>, b: Option<&[Tensor]>) -> Result<Variant> {
    match (a, b) {
        (None, None) => Ok(optional::variant(None)),
        (Some(a), Some(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b);
            let sums = pairs.map(|(x, y)| add_items(par, x.clone(), y.clone()));
            Ok(optional::variant(Some(sums.collect::<Result<_>>()?)))
        }
        (Some(a), Some(b)) => Err(invalid_argument!(
            "Cannot add optionals because they have different numbers of components ({} vs. {})",
            a.len(),
            b.len()
        )),
        _ => Err(invalid_argument!(
            "Cannot add optionals because one has a value and the other doesn't."
        )),
    }
}

pub(crate) fn add_items(par: &dyn Par, x: Tensor, y: Tensor) -> Result<Tensor> {
    if x.dtype() != y.dtype() || x.shape() != y.shape() {
        return Err(invalid_argument!(
            "Trying to add list elements of different kind: {} {} and {} {}",
            x.dtype(),
            x.shape(),
            y.dtype(),
            y.shape()
        ));
    }
    let dtype = x.dtype();
    if dtype == DType::Variant {
        let pairs = x.slice::<Variant>()?.iter().zip(y.slice::<Variant>()?);
        let sums = pairs.map(|(x, y)| add_variants(par, x.clone(), y.clone()));
        return Tensor::from_vec(x.shape().clone(), sums.collect::<Result<_>>()?);
    }
    by_number!(dtype, T => added::<T>(par, x, y), else => Err(no_function("AddN", dtype)))
}
