//! Literals of examples as tensors.

use anyhow::{Context, Result, bail};
use tensorfleet_graph::example::{Data, Lit};
use tensorfleet_math::cast::Float8;
use tensorfleet_tensor::{Complex32, Complex64, DType, Shape, TString, Tensor, bf16, f16};

/// The tensor that a literal stands for in this dtype.
pub fn tensor(lit: &Lit, dtype: DType) -> Result<Tensor> {
    let shape = Shape::new(lit.dims)?;
    let count = shape.elements();
    macro_rules! numbers {
        ($convert:expr) => {
            Tensor::from_vec(
                shape,
                numbers(lit, count)?.into_iter().map($convert).collect(),
            )?
        };
    }
    Ok(match dtype {
        DType::F32 => numbers!(|v| v as f32),
        DType::F64 => numbers!(|v| v),
        DType::F16 => numbers!(f16::from_f64),
        DType::BF16 => numbers!(bf16::from_f64),
        DType::I8 => numbers!(|v| v as i8),
        DType::I16 => numbers!(|v| v as i16),
        DType::I32 => Tensor::from_vec(
            shape,
            integers(lit, count)?
                .into_iter()
                .map(|v| v as i32)
                .collect(),
        )?,
        DType::I64 => Tensor::from_vec(shape, integers(lit, count)?)?,
        DType::U8 => numbers!(|v| v as u8),
        DType::U16 => numbers!(|v| v as u16),
        DType::U32 => numbers!(|v| v as u32),
        DType::U64 => Tensor::from_vec(
            shape,
            integers(lit, count)?
                .into_iter()
                .map(|v| v as u64)
                .collect(),
        )?,
        DType::C64 => Tensor::from_vec(
            shape,
            complex(lit, count)?
                .into_iter()
                .map(|(re, im)| Complex32::new(re as f32, im as f32))
                .collect(),
        )?,
        DType::C128 => Tensor::from_vec(
            shape,
            complex(lit, count)?
                .into_iter()
                .map(|(re, im)| Complex64::new(re, im))
                .collect(),
        )?,
        DType::Bool => match lit.data {
            Data::B(values) => Tensor::from_vec(shape, repeat(values, count)?)?,
            _ => numbers!(|v| v != 0.0),
        },
        DType::String => match lit.data {
            Data::S(values) => Tensor::from_vec(
                shape,
                repeat(values, count)?
                    .into_iter()
                    .map(|text| TString::copy_from_slice(text.as_bytes()))
                    .collect(),
            )?,
            _ => bail!("a string literal was expected"),
        },
        // What has no arithmetic is stored as a type that has.
        DType::QI8 => numbers!(|v| v as i8).reinterpreted(dtype)?,
        DType::QU8 => numbers!(|v| v as u8).reinterpreted(dtype)?,
        DType::QI16 => numbers!(|v| v as i16).reinterpreted(dtype)?,
        DType::QU16 => numbers!(|v| v as u16).reinterpreted(dtype)?,
        DType::QI32 => numbers!(|v| v as i32).reinterpreted(dtype)?,
        DType::I4 | DType::U4 => numbers!(|v| v as i8 & 15).reinterpreted(dtype)?,
        DType::F8E5M2 => numbers!(|v| Float8::E5M2.narrow(v, false)).reinterpreted(dtype)?,
        DType::F8E4M3Fn => numbers!(|v| Float8::E4M3Fn.narrow(v, false)).reinterpreted(dtype)?,
        other => bail!("literals of dtype {other} cannot be written"),
    })
}

fn repeat<T: Clone>(values: &[T], count: usize) -> Result<Vec<T>> {
    match values {
        [one] => Ok(vec![one.clone(); count]),
        all if all.len() == count => Ok(all.to_vec()),
        all => bail!("{} values for {count} elements", all.len()),
    }
}

fn numbers(lit: &Lit, count: usize) -> Result<Vec<f64>> {
    match lit.data {
        Data::F(values) => repeat(values, count),
        Data::I(values) => Ok(repeat(values, count)?
            .into_iter()
            .map(|v| v as f64)
            .collect()),
        Data::B(values) => Ok(repeat(values, count)?.into_iter().map(f64::from).collect()),
        Data::Ramp(start, step) => Ok((0..count)
            .map(|index| start + step * index as f64)
            .collect()),
        _ => bail!("numbers were expected"),
    }
}

/// Integers without a detour over floats, which would lose bits.
fn integers(lit: &Lit, count: usize) -> Result<Vec<i64>> {
    match lit.data {
        Data::I(values) => repeat(values, count),
        _ => Ok(numbers(lit, count)?.into_iter().map(|v| v as i64).collect()),
    }
}

fn complex(lit: &Lit, count: usize) -> Result<Vec<(f64, f64)>> {
    match lit.data {
        Data::C(values) => repeat(values, count),
        _ => Ok(numbers(lit, count)?.into_iter().map(|v| (v, 0.0)).collect()),
    }
}

/// Whether every value of a generic literal can be written exactly in this dtype.
pub fn fits(lit: &Lit, dtype: DType) -> bool {
    let Ok(shape) = Shape::new(lit.dims) else {
        return false;
    };
    match lit.data {
        Data::S(_) => return dtype == DType::String,
        Data::B(_) => return dtype == DType::Bool,
        Data::C(_) => return dtype.is_complex(),
        _ => {}
    }
    if dtype == DType::Bool || dtype == DType::String {
        return false;
    }
    let Ok(values) = numbers(lit, shape.elements()) else {
        return false;
    };
    values.iter().all(|value| exact(*value, dtype))
}

fn exact(value: f64, dtype: DType) -> bool {
    let (low, high) = match dtype {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => return true,
        DType::F16 => return f16::from_f64(value).to_f64() == value || value.is_nan(),
        DType::BF16 => return bf16::from_f64(value).to_f64() == value || value.is_nan(),
        DType::I8 => (-128.0, 127.0),
        DType::I16 => (-32768.0, 32767.0),
        DType::I32 => (-2147483648.0, 2147483647.0),
        DType::I64 => (-9.0e15, 9.0e15),
        DType::U8 => (0.0, 255.0),
        DType::U16 => (0.0, 65535.0),
        DType::U32 => (0.0, 4294967295.0),
        DType::U64 => (0.0, 9.0e15),
        _ => return false,
    };
    value.fract() == 0.0 && (low..=high).contains(&value)
}

/// Parses a literal text such as `float[2]{1, 2}`.
pub fn parse(text: &str) -> Result<Tensor> {
    tensorfleet_graph::text::parse_literal(text).with_context(|| format!("literal {text}"))
}
