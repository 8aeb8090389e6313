//! The typed value fields of `TensorProto`: `float_val`, `int_val`, `string_val`, …

use bytes::Bytes;
use half::{bf16, f16};
use num_complex::{Complex, Complex32, Complex64};
use tensorfleet_proto::TensorProto;
use tensorfleet_status::{Result, invalid_argument};

use super::{content, fill, storage_only};
use crate::dtype::DType;
use crate::element::Element;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tstring::TString;

/// Reads the typed field of `dtype`.
pub(super) fn decode(
    proto: &TensorProto,
    dtype: DType,
    shape: Shape,
    nesting: usize,
) -> Result<Tensor> {
    // int_val and half_val hold several narrower types; as TensorFlow does, keep the low bits.
    macro_rules! narrow {
        ($field:ident as $type:ty) => {
            fill(shape, proto.$field.iter().map(|value| *value as $type))
        };
    }
    match dtype {
        DType::F32 => fill(shape, proto.float_val.iter().copied()),
        DType::F64 => fill(shape, proto.double_val.iter().copied()),
        DType::I32 => fill(shape, proto.int_val.iter().copied()),
        DType::I64 => fill(shape, proto.int64_val.iter().copied()),
        DType::U32 => fill(shape, proto.uint32_val.iter().copied()),
        DType::U64 => fill(shape, proto.uint64_val.iter().copied()),
        DType::Bool => fill(shape, proto.bool_val.iter().copied()),
        DType::String => fill(shape, proto.string_val.iter().map(TString::from)),
        DType::I8 => narrow!(int_val as i8),
        DType::I16 => narrow!(int_val as i16),
        DType::U8 => narrow!(int_val as u8),
        DType::U16 => narrow!(int_val as u16),
        DType::F16 => fill(
            shape,
            proto
                .half_val
                .iter()
                .map(|bits| f16::from_bits(*bits as u16)),
        ),
        DType::BF16 => fill(
            shape,
            proto
                .half_val
                .iter()
                .map(|bits| bf16::from_bits(*bits as u16)),
        ),
        DType::C64 => complex(shape, &proto.scomplex_val),
        DType::C128 => complex(shape, &proto.dcomplex_val),
        DType::Resource => {
            let handles: Result<Vec<_>> = proto
                .resource_handle_val
                .iter()
                .map(content::resource_from_proto)
                .collect();
            fill(shape, handles?.into_iter())
        }
        DType::Variant => {
            let variants: Result<Vec<_>> = proto
                .variant_val
                .iter()
                .map(|v| content::variant_from_proto(v, nesting))
                .collect();
            fill(shape, variants?.into_iter())
        }
        DType::QI8 | DType::QU8 | DType::I4 | DType::U4 | DType::I2 | DType::U2 => {
            relabel(dtype, narrow!(int_val as u8)?)
        }
        DType::QI16 | DType::QU16 => relabel(dtype, narrow!(int_val as u16)?),
        DType::QI32 => relabel(dtype, fill(shape, proto.int_val.iter().copied())?),
        _ => relabel(dtype, fill(shape, proto.float8_val.iter().copied())?),
    }
}

/// The same bytes as a dtype that has no element type of its own.
fn relabel(dtype: DType, tensor: Tensor) -> Result<Tensor> {
    let bytes = tensor.bytes().map(<[u8]>::to_vec).unwrap_or_default();
    storage_only(dtype, tensor.shape().clone(), bytes)
}

fn complex<T: Copy>(shape: Shape, parts: &[T]) -> Result<Tensor>
where
    Complex<T>: Element,
{
    if !parts.len().is_multiple_of(2) {
        return Err(invalid_argument!(
            "{} numbers are no list of complex values",
            parts.len()
        ));
    }
    fill(
        shape,
        parts
            .chunks_exact(2)
            .map(|pair| Complex::new(pair[0], pair[1])),
    )
}

/// Writes all values into the typed field of the tensor's dtype, the repeated tail cut off.
pub(super) fn encode(tensor: &Tensor, proto: &mut TensorProto) -> Result<()> {
    macro_rules! widen {
        ($type:ty, $field:ident as $wide:ty) => {
            proto.$field = trimmed(tensor.slice::<$type>()?)
                .iter()
                .map(|value| *value as $wide)
                .collect()
        };
    }
    match tensor.dtype() {
        DType::F32 => {
            proto.float_val = trimmed_bits(tensor.slice::<f32>()?, |value| value.to_bits()).to_vec()
        }
        DType::F64 => {
            proto.double_val =
                trimmed_bits(tensor.slice::<f64>()?, |value| value.to_bits()).to_vec()
        }
        DType::I32 => widen!(i32, int_val as i32),
        DType::I64 => widen!(i64, int64_val as i64),
        DType::U32 => widen!(u32, uint32_val as u32),
        DType::U64 => widen!(u64, uint64_val as u64),
        DType::I8 => widen!(i8, int_val as i32),
        DType::I16 => widen!(i16, int_val as i32),
        DType::U8 => widen!(u8, int_val as i32),
        DType::U16 => widen!(u16, int_val as i32),
        DType::Bool => proto.bool_val = trimmed(tensor.slice::<bool>()?).to_vec(),
        DType::String => {
            let values = trimmed(tensor.slice::<TString>()?);
            proto.string_val = values.iter().map(Bytes::from).collect();
        }
        DType::F16 => {
            let values = trimmed_bits(tensor.slice::<f16>()?, |value| value.to_bits());
            proto.half_val = values
                .iter()
                .map(|value| i32::from(value.to_bits()))
                .collect();
        }
        DType::BF16 => {
            let values = trimmed_bits(tensor.slice::<bf16>()?, |value| value.to_bits());
            proto.half_val = values
                .iter()
                .map(|value| i32::from(value.to_bits()))
                .collect();
        }
        DType::C64 => {
            let values = trimmed_bits(tensor.slice::<Complex32>()?, |v| {
                (v.re.to_bits(), v.im.to_bits())
            });
            proto.scomplex_val = values
                .iter()
                .flat_map(|value| [value.re, value.im])
                .collect();
        }
        DType::C128 => {
            let values = trimmed_bits(tensor.slice::<Complex64>()?, |v| {
                (v.re.to_bits(), v.im.to_bits())
            });
            proto.dcomplex_val = values
                .iter()
                .flat_map(|value| [value.re, value.im])
                .collect();
        }
        // The rest is storage only or rare: the content form says it all.
        _ => proto.tensor_content = content::encode(tensor)?,
    }
    Ok(())
}

/// All but the repeated last value, which readers fill in again.
fn trimmed<T: PartialEq>(values: &[T]) -> &[T] {
    let repeated = values
        .iter()
        .rev()
        .skip(1)
        .take_while(|value| Some(*value) == values.last())
        .count();
    &values[..values.len() - repeated]
}

/// Like [`trimmed`], comparing bits so that NaN equals itself and 0.0 differs from -0.0.
fn trimmed_bits<T, B: PartialEq>(values: &[T], bits: impl Fn(&T) -> B) -> &[T] {
    let last = values.last().map(&bits);
    let repeated = values
        .iter()
        .rev()
        .skip(1)
        .take_while(|value| Some(bits(value)) == last)
        .count();
    &values[..values.len() - repeated]
}
