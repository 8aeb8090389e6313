//! What graph optimisation fuses onto a matrix product, a convolution or a normalisation: `fused_ops`.
//!
//! A bias or a normalisation comes first, then perhaps the sum with another tensor, then functions of one number. TensorFlow
//! fuses more where it uses oneDNN: the sum, `_MklSwish`, `_FusedHardSwish` and `Mish`, and some of these lists its own
//! kernels do not take. What a list means is plain, so that all of them run here.

use tensorfleet_kernel::{KernelCtx, NodeInfo};
use tensorfleet_math::gemm::{Element as GemmElement, Epilogue};
use tensorfleet_math::num::Float;
use tensorfleet_math::par::{Par, Serial, chunks_mut};
use tensorfleet_math::unary::{Unary, UnaryElement, apply_in_place};
use tensorfleet_status::{Result, Status, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element};

/// The steps after a product or convolution.
pub(crate) struct Fused {
    pub(crate) first: First,
    /// Whether a tensor of the output's shape is added next: the last argument.
    pub(crate) add: bool,
    pub(crate) ending: Ending,
}

/// What comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// A number for each channel is added.
    Bias,
    /// Each channel is normalised with fixed moments.
    BatchNorm,
}

/// The functions at the end, one after the other; there are two at most.
#[derive(Default)]
pub(crate) struct Ending(Vec<Function>);

/// A function of one number.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Function {
    Relu,
    Unary(Unary),
    LeakyRelu(f32),
    GeluApproximate,
    GeluExact,
    /// x · sigmoid(x)
    Swish,
    /// x · relu6(x + 3) / 6
    HardSwish,
    /// x · tanh(softplus(x))
    Mish,
}

/// Elements worth a thread of their own, and at once in a buffer.
const GRAIN: usize = 8 << 10;

impl Fused {
    /// Reads `fused_ops`, and checks that there are as many arguments as they take.
    pub(crate) fn new(node: &NodeInfo) -> Result<Fused> {
        let names = node.attrs.bytes_list("fused_ops")?;
        let names: Vec<&[u8]> = names.iter().map(AsRef::as_ref).collect();
        let (first, add, ending) = match names.as_slice() {
            [b"BiasAdd", b"Add", ending @ ..] => (First::Bias, true, ending),
            [b"BiasAdd", ending @ ..] => (First::Bias, false, ending),
            [b"FusedBatchNorm", ending @ ..] => (First::BatchNorm, false, ending),
            _ => return Err(unsupported(node)),
        };
        let fused = Fused {
            first,
            add,
            ending: Ending::read(node, ending)?,
        };
        let (wanted, named) = match (first, add) {
            (First::Bias, false) => (1, "bias"),
            (First::Bias, true) => (2, "bias, addend"),
            (First::BatchNorm, _) => (4, "scale, offset, mean, variance"),
        };
        let found = node.attrs.int("num_args")?;
        if found != wanted {
            return Err(invalid_argument!(
                "{} must have {wanted} extra arguments, got {found}: {named}",
                node.op
            ));
        }
        Ok(fused)
    }
}

/// These ops are not fused by anybody we know.
pub(crate) fn unsupported(node: &NodeInfo) -> Status {
    let names = node.attrs.bytes_list("fused_ops").unwrap_or_default();
    let names: Vec<_> = names
        .iter()
        .map(|name| String::from_utf8_lossy(name))
        .collect();
    unimplemented!("fusion is not implemented: [{}]", names.join(","))
}

/// Argument `index` of a fused op, one number for each channel. It may be written as a tensor whose other dimensions are
/// one, as the second operand of a sum.
pub(crate) fn per_channel<'a, T: Element>(
    ctx: &'a KernelCtx<'_>,
    index: usize,
    channels: usize,
) -> Result<&'a [T]> {
    let tensor = ctx.input(2 + index)?;
    let last = tensor
        .rank()
        .checked_sub(1)
        .map(|axis| tensor.shape().dim(axis));
    if last != Some(channels) || tensor.elements() != channels {
        return Err(invalid_argument!(
            "argument {index} of {} must have {channels} elements, all in its last dimension, got shape {}",
            ctx.node().op,
            tensor.shape()
        ));
    }
    tensor.slice::<T>()
}

impl Ending {
    /// One function.
    pub(crate) fn of(function: Function) -> Ending {
        Ending(vec![function])
    }

    /// The functions of these names.
    pub(crate) fn read(node: &NodeInfo, names: &[&[u8]]) -> Result<Ending> {
        if names.len() > 2 {
            return Err(unsupported(node));
        }
        let functions = names.iter().map(|name| function(node, name));
        functions.collect::<Result<_>>().map(Ending)
    }

    /// Hands over what adds the bias to each row of a product, then applies the functions.
    pub(crate) fn biased<T, R>(&self, bias: &[T], run: impl FnOnce(Epilogue<'_, T>) -> R) -> R
    where
        T: GemmElement + Float + UnaryElement,
    {
        match self.0.as_slice() {
            [] => run(Epilogue::Bias(bias)),
            [Function::Relu] => run(Epilogue::BiasRelu(bias)),
            _ => run(Epilogue::Rows(&|first, row| {
                for (value, bias) in row.iter_mut().zip(&bias[first..]) {
                    *value = value.add(*bias);
                }
                self.finish(row);
            })),
        }
    }

    /// Applies the functions to all values of a tensor.
    pub(crate) fn finish_all<T: Float + UnaryElement>(&self, par: &dyn Par, values: &mut [T]) {
        if self.0.is_empty() {
            return;
        }
        chunks_mut(par, values, GRAIN, |_, values| {
            values
                .chunks_mut(GRAIN)
                .for_each(|block| self.finish(block));
        });
    }

    /// Applies the functions to a finished piece of a row.
    pub(crate) fn finish<T: Float + UnaryElement>(&self, row: &mut [T]) {
        for function in &self.0 {
            function.apply(row);
        }
    }
}

fn function(node: &NodeInfo, name: &[u8]) -> Result<Function> {
    let function = match name {
        b"Relu" => Function::Relu,
        b"Relu6" => Function::Unary(Unary::Relu6),
        b"Elu" => Function::Unary(Unary::Elu),
        b"Tanh" => Function::Unary(Unary::Tanh),
        b"Sigmoid" => Function::Unary(Unary::Sigmoid),
        b"LeakyRelu" => Function::LeakyRelu(node.attrs.float("leakyrelu_alpha")?),
        b"GeluApproximate" => Function::GeluApproximate,
        b"GeluExact" => Function::GeluExact,
        b"_MklSwish" => Function::Swish,
        b"_FusedHardSwish" => Function::HardSwish,
        b"Mish" => Function::Mish,
        _ => return Err(unsupported(node)),
    };
    // Nobody fuses the others for double, and they are computed as float.
    let in_double = matches!(
        function,
        Function::Relu | Function::Unary(_) | Function::LeakyRelu(_)
    );
    if !in_double && node.attrs.dtype("T")? == DType::F64 {
        return Err(unsupported(node));
    }
    Ok(function)
}

impl Function {
    fn apply<T: Float + UnaryElement>(self, row: &mut [T]) {
        match self {
            Function::Relu => {
                for value in row {
                    *value = value.larger(T::ZERO);
                }
            }
            Function::Unary(op) => {
                // Every float type has the functions an ending can name.
                let _ = apply_in_place(&Serial, op, row);
            }
            Function::LeakyRelu(alpha) => {
                let alpha = T::from_f32(alpha);
                for value in row {
                    if *value <= T::ZERO {
                        *value = value.mul(alpha);
                    }
                }
            }
            Function::GeluApproximate => gated(row, |x| {
                for x in x {
                    let inner = 0.797_884_6 * (*x + 0.044_715 * *x * *x * *x);
                    *x = 0.5 * (1.0 + inner.tanh());
                }
            }),
            Function::GeluExact => gated(row, |x| {
                x.iter_mut()
                    .for_each(|x| *x *= std::f32::consts::FRAC_1_SQRT_2);
                unary(Unary::Erf, x);
                x.iter_mut().for_each(|x| *x = 0.5 * (1.0 + *x));
            }),
            Function::Swish => gated(row, |x| unary(Unary::Sigmoid, x)),
            Function::HardSwish => gated(row, |x| {
                x.iter_mut().for_each(|x| *x += 3.0);
                unary(Unary::Relu6, x);
                x.iter_mut().for_each(|x| *x /= 6.0);
            }),
            Function::Mish => gated(row, |x| {
                unary(Unary::Softplus, x);
                unary(Unary::Tanh, x);
            }),
        }
    }
}

/// Every value by what the function makes of it; both as float, so that halves are rounded once.
fn gated<T: Float>(row: &mut [T], gate: impl FnOnce(&mut [f32])) {
    let mut factors: Vec<f32> = row.iter().map(|value| value.to_f32()).collect();
    gate(&mut factors);
    for (value, factor) in row.iter_mut().zip(factors) {
        *value = T::from_f32(value.to_f32() * factor);
    }
}

fn unary(op: Unary, values: &mut [f32]) {
    // Float has all of them.
    let _ = apply_in_place(&Serial, op, values);
}
