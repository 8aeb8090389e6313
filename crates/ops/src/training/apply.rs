//! What all optimizer ops share: which input is what, checks, locks, and the way to the loops of
//! [`tensorfleet_math::optimizer`].
//!
//! Locks are taken in the order of addresses, so that ops which share variables never wait for each other in a
//! circle. A variable whose value somebody still holds is copied first; before rows of a large one are written,
//! readers get a moment to let go (see [`settle`]).

use smallvec::SmallVec;
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::BadIndex;
use tensorfleet_math::optimizer::{self, Rule, Weight, Wide};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Code, Result, Status, ensure, internal, invalid_argument};
use tensorfleet_tensor::{Complex32, Complex64, DType, Element, Tensor, bf16, f16};

use crate::array::row_update::row_numbers;
use crate::state::target::{Target, settle};
use crate::{by_complex, by_float};

/// An optimizer with its attributes: makes the rule of one run from the op's scalar inputs, in their order.
pub(super) trait Optimizer<W: Wide, const SLOTS: usize, const SCALARS: usize>:
    Copy + Send + Sync + 'static
{
    /// What is done to each weight.
    type Rule: Rule<W, SLOTS>;

    /// The rule for these scalars.
    fn rule(self, scalars: [W; SCALARS]) -> Self::Rule;

    /// Refuses scalars.
    fn check(self, _scalars: [f64; SCALARS]) -> Result<()> {
        Ok(())
    }
}

/// Which input is what, read off the inputs as the signature has them.
struct Layout {
    inputs: &'static [&'static str],
    vars: usize,
    grad: usize,
    indices: Option<usize>,
    scalars: SmallVec<[usize; 6]>,
}

impl Layout {
    fn of(inputs: &'static [&'static str]) -> Layout {
        let mut layout = Layout {
            inputs,
            vars: 0,
            grad: 0,
            indices: None,
            scalars: SmallVec::new(),
        };
        for (index, input) in inputs.iter().enumerate() {
            match *input {
                "grad: T" | "delta: T" => layout.grad = index,
                "indices: Tindices" => layout.indices = Some(index),
                scalar if scalar.ends_with(": T") || scalar.ends_with(": int64") => {
                    layout.scalars.push(index);
                }
                _ => layout.vars += 1,
            }
        }
        layout
    }

    fn name(&self, index: usize) -> &'static str {
        let input = self.inputs.get(index).copied().unwrap_or_default();
        input.split(':').next().unwrap_or_default()
    }
}

/// The kernel of an op with these inputs, for real numbers.
pub(super) fn kernel<O, const SLOTS: usize, const SCALARS: usize>(
    node: &NodeInfo,
    inputs: &'static [&'static str],
    optimizer: O,
) -> Result<AnyKernel>
where
    O: Optimizer<f32, SLOTS, SCALARS> + Optimizer<f64, SLOTS, SCALARS>,
{
    build(
        node,
        inputs,
        move |dtype, scalars: [Complex64; SCALARS], run| {
            Optimizer::<f64, SLOTS, SCALARS>::check(optimizer, scalars.map(|scalar| scalar.re))?;
            by_float!(dtype, T => step::<T, O, SLOTS, SCALARS>(optimizer, scalars, run),
            else => Err(internal!("no optimizer for {dtype}")))
        },
    )
}

/// The kernel of an op with these inputs, for real and complex numbers.
pub(super) fn complex_kernel<O, const SLOTS: usize, const SCALARS: usize>(
    node: &NodeInfo,
    inputs: &'static [&'static str],
    optimizer: O,
) -> Result<AnyKernel>
where
    O: Optimizer<f32, SLOTS, SCALARS>
        + Optimizer<f64, SLOTS, SCALARS>
        + Optimizer<Complex32, SLOTS, SCALARS>
        + Optimizer<Complex64, SLOTS, SCALARS>,
{
    build(
        node,
        inputs,
        move |dtype, scalars: [Complex64; SCALARS], run| {
            by_float!(dtype, T => step::<T, O, SLOTS, SCALARS>(optimizer, scalars, run),
            else => by_complex!(dtype, T => step::<T, O, SLOTS, SCALARS>(optimizer, scalars, run),
                else => Err(internal!("no optimizer for {dtype}"))))
        },
    )
}

fn build<const SCALARS: usize>(
    node: &NodeInfo,
    inputs: &'static [&'static str],
    step: impl Fn(DType, [Complex64; SCALARS], Run<'_, '_>) -> Result<()> + Send + Sync + 'static,
) -> Result<AnyKernel> {
    let layout = Layout::of(inputs);
    let dtype = node.attrs.dtype("T")?;
    if layout.scalars.len() != SCALARS {
        return Err(internal!("{} does not take inputs {inputs:?}", node.op));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut scalars = [Complex64::default(); SCALARS];
        for (value, index) in scalars.iter_mut().zip(&layout.scalars) {
            *value = scalar(ctx, *index, layout.name(*index))?;
        }
        let var = update(ctx, &layout, dtype, &mut |run| step(dtype, scalars, run))?;
        var.forward(ctx);
        Ok(())
    })
}

/// What a rule is applied to; all shapes agree.
struct Run<'a, 'b> {
    par: &'a dyn Par,
    /// The variable and its slots.
    tensors: &'a mut [&'b mut Tensor],
    grad: &'a Tensor,
    /// For some rows only: which, and their length.
    rows: Option<(&'a [i64], usize)>,
}

fn step<T, O, const SLOTS: usize, const SCALARS: usize>(
    optimizer: O,
    scalars: [Complex64; SCALARS],
    run: Run<'_, '_>,
) -> Result<()>
where
    T: Weight<Wide: Scalar> + Element,
    O: Optimizer<T::Wide, SLOTS, SCALARS>,
{
    let rule = optimizer.rule(scalars.map(T::Wide::from_complex));
    let Some((var, others)) = run.tensors.split_first_mut() else {
        return Err(internal!("no variable to update"));
    };
    let var = var.slice_mut::<T>()?;
    if others.len() != SLOTS {
        return Err(internal!("{} slots where {SLOTS} are needed", others.len()));
    }
    let mut slots: [&mut [T]; SLOTS] = std::array::from_fn(|_| Default::default());
    for (slot, tensor) in slots.iter_mut().zip(others) {
        *slot = tensor.slice_mut()?;
    }
    let grad = run.grad.slice::<T>()?;
    match run.rows {
        None => optimizer::apply(run.par, rule, var, slots, grad),
        Some((indices, row_len)) => {
            optimizer::apply_sparse(run.par, rule, row_len, var, slots, indices, grad)
                .map_err(bad_index)?;
        }
    }
    Ok(())
}

/// What a scalar input becomes.
trait Scalar: Wide {
    fn from_complex(value: Complex64) -> Self;
}

macro_rules! scalars {
    ($($type:ty: |$value:ident| $convert:expr;)*) => {
        $(impl Scalar for $type {
            fn from_complex($value: Complex64) -> $type {
                $convert
            }
        })*
    };
}

scalars! {
    f32: |value| value.re as f32;
    f64: |value| value.re;
    Complex32: |value| Complex32::new(value.re as f32, value.im as f32);
    Complex64: |value| value;
}

/// Locks the variables, checks all shapes and calls `step`; returns the first variable.
fn update(
    ctx: &KernelCtx<'_>,
    layout: &Layout,
    dtype: DType,
    step: &mut dyn FnMut(Run<'_, '_>) -> Result<()>,
) -> Result<Target> {
    let grad = ctx.input(layout.grad)?;
    let indices = layout.indices.map(|index| ctx.input(index)).transpose()?;
    let targets: SmallVec<[Target; 4]> = (0..layout.vars)
        .map(|index| Target::of(ctx, index).map_err(|status| invalid_reference(&status)))
        .collect::<Result<_>>()?;
    let mut order: SmallVec<[usize; 4]> = (0..layout.vars).collect();
    order.sort_unstable_by_key(|index| targets[*index].address());
    if let Some(pair) = order
        .windows(2)
        .find(|pair| targets[pair[0]].address() == targets[pair[1]].address())
    {
        return Err(invalid_argument!(
            "{} and {} are the same variable",
            layout.name(pair[0]),
            layout.name(pair[1])
        ));
    }
    let locked = order.iter().map(|index| (*index, targets[*index].write()));
    let mut guards: SmallVec<[_; 4]> = locked.collect();
    guards.sort_unstable_by_key(|(index, _)| *index);
    let mut tensors: SmallVec<[&mut Tensor; 4]> = SmallVec::new();
    let values = guards.iter_mut().map(|(_, guard)| guard.as_mut());
    tensors.extend(values.map_while(|value| value));
    if let Some(target) = targets.get(tensors.len()) {
        drop(tensors);
        drop(guards);
        let status = target.uninitialized(ctx);
        return Err(match target {
            Target::Ref(_) => status,
            Target::Resource(_) => invalid_reference(&status),
        });
    }
    check_slots(layout, dtype, &tensors)?;
    let Some(var) = tensors.first() else {
        return Err(internal!("no variable to update"));
    };
    let rows;
    let rows = match indices {
        None => {
            same_shape(layout, layout.grad, var, grad)?;
            None
        }
        Some(indices) => {
            let row_len = check_rows(var, grad, indices)?;
            rows = row_numbers(indices)?;
            tensors.iter_mut().for_each(|tensor| settle(tensor));
            Some((&*rows, row_len))
        }
    };
    step(Run {
        par: ctx.par(),
        tensors: &mut tensors,
        grad,
        rows,
    })?;
    drop(tensors);
    drop(guards);
    targets
        .into_iter()
        .next()
        .ok_or_else(|| internal!("no variable to update"))
}

fn check_slots(layout: &Layout, dtype: DType, tensors: &[&mut Tensor]) -> Result<()> {
    for (index, tensor) in tensors.iter().enumerate() {
        ensure!(
            tensor.dtype() == dtype,
            invalid_argument,
            "{} is of dtype {}, expected {dtype}",
            layout.name(index),
            tensor.dtype()
        );
        if let Some(var) = tensors.first() {
            same_shape(layout, index, var, tensor)?;
        }
    }
    Ok(())
}

fn same_shape(layout: &Layout, index: usize, var: &Tensor, other: &Tensor) -> Result<()> {
    ensure!(
        var.shape() == other.shape(),
        invalid_argument,
        "var and {} do not have the same shape{} {}",
        layout.name(index),
        var.shape(),
        other.shape()
    );
    Ok(())
}

/// The length of rows, if the gradient has such a row for each index.
fn check_rows(var: &Tensor, grad: &Tensor, indices: &Tensor) -> Result<usize> {
    ensure!(
        var.rank() >= 1,
        invalid_argument,
        "var must be at least 1 dimensional, got shape {}",
        var.shape()
    );
    ensure!(
        indices.rank() == 1,
        invalid_argument,
        "indices must be one-dimensional, got shape {}",
        indices.shape()
    );
    ensure!(
        grad.rank() == var.rank(),
        invalid_argument,
        "grad must have the same number of dimensions as var, got shapes {} and {}",
        grad.shape(),
        var.shape()
    );
    for axis in 1..var.rank() {
        ensure!(
            var.shape().dim(axis) == grad.shape().dim(axis),
            invalid_argument,
            "var and grad must match in dimension {axis}, got shapes {} and {}",
            var.shape(),
            grad.shape()
        );
    }
    ensure!(
        grad.shape().dim(0) == indices.elements(),
        invalid_argument,
        "grad must be the same size as indices in the first dimension, got shapes {} and {}",
        grad.shape(),
        indices.shape()
    );
    let row_len = var.shape().elements_in(1..var.rank());
    ensure!(
        row_len > 0,
        invalid_argument,
        "Inner dimension should be greater than zero."
    );
    Ok(row_len)
}

fn scalar(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<Complex64> {
    let tensor = ctx.input(index)?;
    if tensor.rank() != 0 {
        let name = match name {
            "l1" => "l1 regularization strength",
            "l2" => "l2 regularization strength",
            "l2_shrinkage" => "l2 shrinkage regularization strength",
            name => name,
        };
        return Err(invalid_argument!(
            "{name} is not a scalar: {}",
            tensor.shape()
        ));
    }
    let real = match tensor.dtype() {
        DType::F16 => tensor.to_scalar::<f16>()?.to_f64(),
        DType::BF16 => tensor.to_scalar::<bf16>()?.to_f64(),
        DType::F32 => tensor.to_scalar::<f32>()?.into(),
        DType::I64 => tensor.to_scalar::<i64>()? as f64,
        DType::C64 => {
            let value = tensor.to_scalar::<Complex32>()?;
            return Ok(Complex64::new(value.re.into(), value.im.into()));
        }
        DType::C128 => return tensor.to_scalar::<Complex64>(),
        _ => tensor.to_scalar::<f64>()?,
    };
    Ok(real.into())
}

/// Refuses a negative strength of regularisation.
pub(super) fn check_strength(name: &str, strength: f64) -> Result<()> {
    ensure!(
        strength >= 0.0,
        invalid_argument,
        "{name} regularization strength is not a non-negative scalar: {strength}"
    );
    Ok(())
}

/// What TensorFlow calls a handle to a variable that is not there; INTERNAL, by its count.
#[cold]
fn invalid_reference(status: &Status) -> Status {
    match status.code() {
        Code::NotFound => internal!("Invalid variable reference. {}", status.message()),
        _ => status.clone(),
    }
}

#[cold]
fn bad_index(bad: BadIndex) -> Status {
    invalid_argument!(
        "Index {} at offset {} in indices is out of range",
        bad.value,
        bad.position
    )
}
