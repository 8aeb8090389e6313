//! What the summary ops share: tags and protos as tensors.

use prost::Message;
use tensorfleet_kernel::KernelCtx;
use tensorfleet_proto::Summary;
use tensorfleet_proto::summary::Value;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{TString, Tensor};

/// The one tag in input `index`.
pub(super) fn tag(ctx: &KernelCtx<'_>, index: usize) -> Result<String> {
    let tensor = ctx.input(index)?;
    if tensor.elements() != 1 {
        return Err(invalid_argument!(
            "tags must be scalar, got shape {}",
            tensor.shape()
        ));
    }
    Ok(String::from_utf8_lossy(&tensor.to_scalar::<TString>()?).into_owned())
}

/// A serialised summary of these values as a scalar string.
pub(super) fn summary(values: Vec<Value>) -> Tensor {
    Tensor::string(Summary { value: values }.encode_to_vec())
}
