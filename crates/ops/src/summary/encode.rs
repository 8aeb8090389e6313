//! What the summary ops share: numbers as doubles, protos as tensors.

use prost::Message;
use tensorfleet_kernel::KernelCtx;
use tensorfleet_proto::Summary;
use tensorfleet_proto::summary::Value;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Bytes, DType, Tensor, bf16, f16};

/// All elements of a tensor of real numbers.
pub(super) fn doubles(tensor: &Tensor) -> Result<Vec<f64>> {
    macro_rules! each {
        ($type:ty, $convert:expr) => {
            tensor.slice::<$type>()?.iter().map($convert).collect()
        };
    }
    Ok(match tensor.dtype() {
        DType::F32 => each!(f32, |v| f64::from(*v)),
        DType::F64 => each!(f64, |v| *v),
        DType::F16 => each!(f16, |v| v.to_f64()),
        DType::BF16 => each!(bf16, |v| v.to_f64()),
        DType::I8 => each!(i8, |v| f64::from(*v)),
        DType::I16 => each!(i16, |v| f64::from(*v)),
        DType::I32 => each!(i32, |v| f64::from(*v)),
        DType::I64 => each!(i64, |v| *v as f64),
        DType::U8 => each!(u8, |v| f64::from(*v)),
        DType::U16 => each!(u16, |v| f64::from(*v)),
        DType::U32 => each!(u32, |v| f64::from(*v)),
        DType::U64 => each!(u64, |v| *v as f64),
        DType::Bool => each!(bool, |v| f64::from(*v)),
        other => return Err(invalid_argument!("numbers were expected, got {other}")),
    })
}

/// The one tag in input `index`.
pub(super) fn tag(ctx: &KernelCtx<'_>, index: usize) -> Result<String> {
    let tensor = ctx.input(index)?;
    if tensor.elements() != 1 {
        return Err(invalid_argument!(
            "tags must be scalar, got shape {}",
            tensor.shape()
        ));
    }
    Ok(String::from_utf8_lossy(&tensor.to_scalar::<Bytes>()?).into_owned())
}

/// A serialised summary of these values as a scalar string.
pub(super) fn summary(values: Vec<Value>) -> Tensor {
    Tensor::string(Summary { value: values }.encode_to_vec())
}
