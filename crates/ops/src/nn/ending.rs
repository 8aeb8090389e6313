//! What graph optimisation fuses onto a matrix product or a convolution: `fused_ops`.

use tensorfleet_kernel::NodeInfo;
use tensorfleet_math::num::Float;
use tensorfleet_math::par::Serial;
use tensorfleet_math::unary::{Unary, UnaryElement, apply_in_place};
use tensorfleet_status::{Result, Status, unimplemented};

/// What comes first, and the function after it.
#[derive(Clone, Copy)]
pub(crate) enum Fused {
    /// A number for each channel is added.
    Bias(Ending),
    /// Each channel is normalised with fixed moments.
    BatchNorm(Ending),
}

/// The function at the end.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    Nothing,
    Relu,
    Function(Unary),
    LeakyRelu(f32),
    GeluApproximate,
    GeluExact,
}

impl Fused {
    /// Reads `fused_ops`.
    pub(crate) fn new(node: &NodeInfo) -> Result<Fused> {
        let names = node.attrs.bytes_list("fused_ops")?;
        let names: Vec<&[u8]> = names.iter().map(AsRef::as_ref).collect();
        let (first, last) = match names.as_slice() {
            [first] => (*first, &b""[..]),
            [first, last] => (*first, *last),
            _ => return Err(unsupported(node)),
        };
        let ending = match last {
            b"" => Ending::Nothing,
            b"Relu" => Ending::Relu,
            b"Relu6" => Ending::Function(Unary::Relu6),
            b"Elu" => Ending::Function(Unary::Elu),
            b"Tanh" => Ending::Function(Unary::Tanh),
            b"Sigmoid" => Ending::Function(Unary::Sigmoid),
            b"LeakyRelu" => Ending::LeakyRelu(node.attrs.float("leakyrelu_alpha")?),
            b"GeluApproximate" => Ending::GeluApproximate,
            b"GeluExact" => Ending::GeluExact,
            _ => return Err(unsupported(node)),
        };
        match first {
            b"BiasAdd" => Ok(Fused::Bias(ending)),
            b"FusedBatchNorm" => Ok(Fused::BatchNorm(ending)),
            _ => Err(unsupported(node)),
        }
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

impl Ending {
    /// Adds the bias to a piece of a row, then applies the function.
    pub(crate) fn finish_biased<T: Float + UnaryElement>(self, bias: &[T], row: &mut [T]) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value = value.add(*bias);
        }
        self.finish(row);
    }

    /// Applies the function to a finished piece of a row.
    pub(crate) fn finish<T: Float + UnaryElement>(self, row: &mut [T]) {
        let each = |row: &mut [T], f: &dyn Fn(f32) -> f32| {
            for value in row {
                *value = T::from_f32(f(value.to_f32()));
            }
        };
        match self {
            Ending::Nothing => {}
            Ending::Relu => {
                for value in row {
                    *value = value.larger(T::ZERO);
                }
            }
            Ending::Function(op) => {
                // Every float type has the functions an ending can name.
                let _ = apply_in_place(&Serial, op, row);
            }
            Ending::LeakyRelu(alpha) => {
                let alpha = T::from_f32(alpha);
                for value in row {
                    if *value <= T::ZERO {
                        *value = value.mul(alpha);
                    }
                }
            }
            Ending::GeluApproximate => each(row, &|x| {
                let inner = 0.797_884_6 * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }),
            Ending::GeluExact => {
                let mut scaled: Vec<f32> = row
                    .iter()
                    .map(|x| x.to_f32() * std::f32::consts::FRAC_1_SQRT_2)
                    .collect();
                let _ = apply_in_place(&Serial, Unary::Erf, &mut scaled);
                for (value, erf) in row.iter_mut().zip(scaled) {
                    *value = T::from_f32(0.5 * value.to_f32() * (1.0 + erf));
                }
            }
        }
    }
}
