//! How elementwise kernels run: scalars at once, in place where an input may be overwritten, else into new memory.
//!
//! The function is a value of [`Unary`] or [`Binary`]; there is one instance of each kernel per dtype, not per op.

use std::borrow::Cow;

use smallvec::SmallVec;
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::binary::{self, Binary, BinaryElement, Fault};
use tensorfleet_math::broadcast::{Broadcast, out_shape};
use tensorfleet_math::map::{map, map_in_place};
use tensorfleet_math::movement::{Item, View, copy_view};
use tensorfleet_math::num::Num;
use tensorfleet_math::par::Serial;
use tensorfleet_math::unary::{self, Unary, UnaryElement};
use tensorfleet_status::{Result, Status, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use crate::by_number;

/// The kernel of an elementwise function of one input.
pub(crate) fn unary(node: &NodeInfo, op: Unary) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_number!(dtype, T => unary_of::<T>(op), else => match dtype {
        DType::Bool => unary_of::<bool>(op),
        _ => Err(no_function(op, dtype)),
    })
}

fn unary_of<T: Element + UnaryElement>(op: Unary) -> Result<AnyKernel> {
    if !T::supports(op) {
        return Err(no_function(op, T::DTYPE));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        if x.rank() == 0 {
            let mut y = [T::default()];
            T::run(op, x.slice::<T>()?, &mut y);
            ctx.set(0, Tensor::scalar(y[0]));
            return Ok(());
        }
        let mut x = ctx.take(0)?;
        let y = if x.is_unique() {
            unary::apply_in_place(ctx.par(), op, x.slice_mut::<T>()?).map_err(status)?;
            x
        } else {
            let mut y = ctx.allocate(T::DTYPE, x.shape().clone())?;
            unary::apply(ctx.par(), op, x.slice::<T>()?, y.slice_mut::<T>()?).map_err(status)?;
            y
        };
        ctx.set(0, y);
        Ok(())
    })
}

/// Input `index` with `f` of each element; in its own memory where that may be overwritten.
pub(crate) fn mapped<T: Element + Copy>(
    ctx: &mut KernelCtx<'_>,
    index: usize,
    f: impl Fn(T) -> T + Copy + Sync,
) -> Result<Tensor> {
    let mut x = ctx.take(index)?;
    if x.is_unique() {
        map_in_place(ctx.par(), x.slice_mut::<T>()?, f);
        return Ok(x);
    }
    let mut y = ctx.allocate(T::DTYPE, x.shape().clone())?;
    map(ctx.par(), x.slice::<T>()?, y.slice_mut::<T>()?, f);
    Ok(y)
}

/// Whether a function of two inputs broadcasts them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shapes {
    /// They are broadcast against each other.
    Broadcast,
    /// They have the same number of elements: the gradient functions.
    SameSize,
}

/// The kernel of an elementwise function of two inputs that broadcasts.
pub(crate) fn binary(node: &NodeInfo, op: Binary) -> Result<AnyKernel> {
    binary_with(node, op, Shapes::Broadcast)
}

/// The kernel of an elementwise function of two inputs.
pub(crate) fn binary_with(node: &NodeInfo, op: Binary, shapes: Shapes) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    if shapes == Shapes::Broadcast {
        let direct = match dtype {
            DType::F32 => direct::<f32>(op),
            DType::F64 => direct::<f64>(op),
            DType::I32 => direct::<i32>(op),
            DType::I64 => direct::<i64>(op),
            _ => None,
        };
        if let Some(kernel) = direct {
            return kernel;
        }
    }
    by_number!(dtype, T => binary_of::<T>(op, shapes), else => match dtype {
        DType::Bool => binary_of::<bool>(op, shapes),
        _ => Err(no_function(op, dtype)),
    })
}

fn binary_of<T: Element + BinaryElement>(op: Binary, shapes: Shapes) -> Result<AnyKernel> {
    if !T::supports(op) {
        return Err(no_function(op, T::DTYPE));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        if x.rank() == 0 && y.rank() == 0 {
            let (x, y) = (x.slice::<T>()?, y.slice::<T>()?);
            let mut z = [T::default()];
            T::check(op, y).map_err(|fault| refused(&ctx.node().op, fault))?;
            T::run(op, x, y, &mut z);
            ctx.set(0, Tensor::scalar(z[0]));
            return Ok(());
        }
        let z = binary_arrays::<T>(ctx, op, shapes)?;
        ctx.set(0, z);
        Ok(())
    })
}

/// A function that is also a type: its kernel holds nothing, so that a run of scalars touches no memory but theirs.
trait Direct: 'static {
    const OP: Binary;

    /// Bit for bit what the loops give.
    fn eval<T: Num>(x: T, y: T) -> T;
}

macro_rules! direct {
    ($($op:ident $function:ident),*) => {$(
        struct $op;
        impl Direct for $op {
            const OP: Binary = Binary::$op;
            #[inline]
            fn eval<T: Num>(x: T, y: T) -> T {
                x.$function(y)
            }
        }
    )*};
}

direct!(Add add, Sub sub, Mul mul);

/// The kernels of what scalar graphs are made of: counters, step sizes, losses.
fn direct<T: Element + BinaryElement + Num>(op: Binary) -> Option<Result<AnyKernel>> {
    match op {
        Binary::Add => Some(direct_of::<T, Add>()),
        Binary::Sub => Some(direct_of::<T, Sub>()),
        Binary::Mul => Some(direct_of::<T, Mul>()),
        _ => None,
    }
}

fn direct_of<T: Element + BinaryElement + Num, D: Direct>() -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        if x.rank() == 0
            && y.rank() == 0
            && let ([x], [y]) = (x.slice::<T>()?, y.slice::<T>()?)
        {
            ctx.set(0, Tensor::scalar(D::eval(*x, *y)));
            return Ok(());
        }
        let z = binary_arrays::<T>(ctx, D::OP, Shapes::Broadcast)?;
        ctx.set(0, z);
        Ok(())
    })
}

fn binary_arrays<T: Element + BinaryElement>(
    ctx: &mut KernelCtx<'_>,
    op: Binary,
    shapes: Shapes,
) -> Result<Tensor> {
    let (mut x, mut y) = (ctx.take(0)?, ctx.take(1)?);
    let (plan, shape) = match shapes {
        Shapes::Broadcast => broadcast(x.shape(), y.shape())?,
        Shapes::SameSize => same_size(x.shape(), y.shape())?,
    };
    let par = ctx.par();
    let (result, z) = if plan.lhs_is_full() && x.is_unique() {
        let y = y.slice::<T>()?;
        let result = binary::apply_lhs(par, op, &plan, x.slice_mut::<T>()?, y);
        (result, x.reshaped(shape)?)
    } else if plan.rhs_is_full() && y.is_unique() {
        let x = x.slice::<T>()?;
        let result = binary::apply_rhs(par, op, &plan, x, y.slice_mut::<T>()?);
        (result, y.reshaped(shape)?)
    } else {
        let mut z = ctx.allocate(T::DTYPE, shape)?;
        let (x, y) = (x.slice::<T>()?, y.slice::<T>()?);
        (binary::apply(par, op, &plan, x, y, z.slice_mut::<T>()?), z)
    };
    result.map_err(|fault| refused(&ctx.node().op, fault))?;
    Ok(z)
}

/// How two inputs are broadcast against each other, and the shape of the result.
pub(crate) fn broadcast(x: &Shape, y: &Shape) -> Result<(Broadcast, Shape)> {
    if x == y {
        return Ok((Broadcast::same(x.elements()), x.clone()));
    }
    if y.rank() == 0 {
        return Ok((Broadcast::scalar_rhs(x.elements()), x.clone()));
    }
    if x.rank() == 0 {
        return Ok((Broadcast::scalar_lhs(y.elements()), y.clone()));
    }
    let mismatch = |_| invalid_argument!("Incompatible shapes: {x} vs. {y}");
    let (left, right) = (lengths(x), lengths(y));
    let out = out_shape(&[&left, &right]).map_err(mismatch)?;
    // The product of the dimensions is checked here, before anything multiplies them.
    let shape = shape_of(&out)?;
    let plan = Broadcast::new(&left, &right).map_err(mismatch)?;
    Ok((plan, shape))
}

fn same_size(x: &Shape, y: &Shape) -> Result<(Broadcast, Shape)> {
    let (left, right) = (x.elements(), y.elements());
    if left != right {
        return Err(invalid_argument!(
            "The two arguments to a cwise op must have same number of elements, got {left} and {right}"
        ));
    }
    Ok((Broadcast::same(left), x.clone()))
}

/// The dimensions as lengths.
pub(crate) fn lengths(shape: &Shape) -> SmallVec<[usize; 6]> {
    shape.iter().map(|dim| *dim as usize).collect()
}

/// The shape with these lengths.
pub(crate) fn shape_of(lengths: &[usize]) -> Result<Shape> {
    let dims: SmallVec<[i64; 6]> = lengths.iter().map(|len| *len as i64).collect();
    Shape::new(&dims)
}

/// The dtype of the first input.
pub(crate) fn input_dtype(node: &NodeInfo) -> DType {
    node.input_types
        .first()
        .map_or(DType::F32, |port| port.dtype)
}

#[cold]
pub(crate) fn no_function(op: impl std::fmt::Debug, dtype: DType) -> Status {
    unimplemented!("{op:?} is not defined for {dtype}")
}

#[cold]
pub(crate) fn status(fault: Fault) -> Status {
    invalid_argument!("{fault}")
}

/// TensorFlow reports a zero divisor of the truncating ops as an internal error; the code is kept, the text says what it was.
#[cold]
fn refused(op: &str, fault: Fault) -> Status {
    match op {
        "TruncateDiv" | "TruncateMod" => {
            internal!("Unexpected error in binary operator: {fault}")
        }
        _ => status(fault),
    }
}

/// The elements of an input as the output of a broadcast sees them; copied only where they are repeated.
pub(crate) fn expanded<'a, T: Item>(values: &'a [T], from: &Shape, to: &Shape) -> Cow<'a, [T]> {
    if from == to {
        return Cow::Borrowed(values);
    }
    let view = View::broadcast(&lengths(from), &lengths(to));
    match values.first() {
        Some(first) if !view.is_empty() => {
            let mut all = vec![first.clone(); view.len()];
            copy_view(&Serial, values, &view, &mut all);
            Cow::Owned(all)
        }
        _ => Cow::Owned(Vec::new()),
    }
}
