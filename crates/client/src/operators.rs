//! `+ - * / %` and `-x` on tensors, variables and numbers.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor, bf16, f16};

use crate::output::{Operand, Output};
use crate::variable::Variable;

#[track_caller]
fn binary(op: &str, name: &str, a: &Output, b: &Output) -> Output {
    a.graph().op(op).name(name).input(a).input(b).output()
}

/// A scalar with the dtype of `like`.
#[track_caller]
pub(crate) fn number_like(like: &Output, value: f64) -> Output {
    let graph = like.graph();
    if like.is_void() {
        return like.clone();
    }
    match number(like.dtype(), value) {
        Ok(tensor) => graph.constant(tensor),
        Err(status) => graph.fail(status),
    }
}

/// A scalar tensor of this dtype.
pub(crate) fn number(dtype: DType, value: f64) -> Result<Tensor> {
    Ok(match dtype {
        DType::F32 => Tensor::scalar(value as f32),
        DType::F64 => Tensor::scalar(value),
        DType::F16 => Tensor::scalar(f16::from_f64(value)),
        DType::BF16 => Tensor::scalar(bf16::from_f64(value)),
        DType::I8 => Tensor::scalar(value as i8),
        DType::U8 => Tensor::scalar(value as u8),
        DType::I16 => Tensor::scalar(value as i16),
        DType::U16 => Tensor::scalar(value as u16),
        DType::I32 => Tensor::scalar(value as i32),
        DType::U32 => Tensor::scalar(value as u32),
        DType::I64 => Tensor::scalar(value as i64),
        DType::U64 => Tensor::scalar(value as u64),
        DType::Bool => Tensor::scalar(value != 0.0),
        other => {
            return Err(invalid_argument!(
                "{value} cannot be a constant of dtype {}",
                other.name()
            ));
        }
    })
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:literal, $name:literal) => {
        operator!(@pairs $trait, $method, $op, $name,
            (Output, Output), (Output, &Output), (&Output, Output), (&Output, &Output),
            (Output, &Variable), (&Output, &Variable), (&Variable, Output), (&Variable, &Output),
            (&Variable, &Variable));
        // One kind of float and one of integer: more would leave the type of a literal open.
        operator!(@numbers $trait, $method, $op, $name, f64, i32);
    };
    (@pairs $trait:ident, $method:ident, $op:literal, $name:literal, $(($left:ty, $right:ty)),*) => {$(
        impl $trait<$right> for $left {
            type Output = Output;

            #[track_caller]
            fn $method(self, other: $right) -> Output {
                binary($op, $name, &self.to_output(), &other.to_output())
            }
        }
    )*};
    (@numbers $trait:ident, $method:ident, $op:literal, $name:literal, $($number:ty),*) => {$(
        impl $trait<$number> for Output {
            type Output = Output;

            #[track_caller]
            fn $method(self, other: $number) -> Output {
                let other = number_like(&self, f64::from(other));
                binary($op, $name, &self, &other)
            }
        }

        impl $trait<$number> for &Output {
            type Output = Output;

            #[track_caller]
            fn $method(self, other: $number) -> Output {
                let other = number_like(self, f64::from(other));
                binary($op, $name, self, &other)
            }
        }

        impl $trait<Output> for $number {
            type Output = Output;

            #[track_caller]
            fn $method(self, other: Output) -> Output {
                let this = number_like(&other, f64::from(self));
                binary($op, $name, &this, &other)
            }
        }

        impl $trait<&Output> for $number {
            type Output = Output;

            #[track_caller]
            fn $method(self, other: &Output) -> Output {
                let this = number_like(other, f64::from(self));
                binary($op, $name, &this, other)
            }
        }
    )*};
}

operator!(Add, add, "AddV2", "add");
operator!(Sub, sub, "Sub", "sub");
operator!(Mul, mul, "Mul", "mul");
operator!(Div, div, "RealDiv", "truediv");
operator!(Rem, rem, "FloorMod", "mod");

impl Neg for Output {
    type Output = Output;

    #[track_caller]
    fn neg(self) -> Output {
        -&self
    }
}

impl Neg for &Output {
    type Output = Output;

    #[track_caller]
    fn neg(self) -> Output {
        self.graph().op("Neg").input(self).output()
    }
}
