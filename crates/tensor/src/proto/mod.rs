//! `TensorProto` ↔ [`Tensor`] in every encoding TensorFlow uses.
//!
//! Reading accepts `tensor_content` and the typed fields for every dtype, with the last typed value
//! repeated to fill the shape. Writing uses `tensor_content`, as C++ servers and clients do; the
//! bytes of plain tensors are shared, not copied. Shapes and lengths are checked before memory is taken.

mod content;
mod shape;
mod typed;

use tensorfleet_proto::TensorProto;
use tensorfleet_status::{Result, invalid_argument};

use crate::dtype::{DType, PortType};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Variants may hold tensors that hold variants; deeper nesting than this is refused.
const MAX_NESTING: usize = 32;

impl Tensor {
    /// Decodes a proto.
    pub fn from_proto(proto: &TensorProto) -> Result<Tensor> {
        decode(proto, MAX_NESTING)
    }

    /// Encodes into `tensor_content`, sharing the bytes of plain dtypes.
    pub fn to_proto(&self) -> Result<TensorProto> {
        Ok(TensorProto {
            dtype: self.dtype().number(),
            tensor_shape: Some(self.shape().to_proto()),
            tensor_content: content::encode(self)?,
            ..TensorProto::default()
        })
    }

    /// Encodes into the typed fields that `GraphDef` constants use for small values.
    pub fn to_typed_proto(&self) -> Result<TensorProto> {
        let mut proto = TensorProto {
            dtype: self.dtype().number(),
            tensor_shape: Some(self.shape().to_proto()),
            ..TensorProto::default()
        };
        typed::encode(self, &mut proto)?;
        Ok(proto)
    }
}

fn decode(proto: &TensorProto, nesting: usize) -> Result<Tensor> {
    if nesting == 0 {
        return Err(invalid_argument!(
            "tensors are nested more than {MAX_NESTING} deep"
        ));
    }
    let dtype = match PortType::from_number(proto.dtype) {
        Ok(port) => port.dtype,
        Err(status) => return Err(status.context("tensor proto")),
    };
    let shape = match &proto.tensor_shape {
        Some(shape) => Shape::from_proto(shape)?,
        None => Shape::scalar(),
    };
    if proto.tensor_content.is_empty() {
        return typed::decode(proto, dtype, shape, nesting);
    }
    if dtype.is_plain() {
        return Tensor::from_bytes(dtype, shape, proto.tensor_content.clone())
            .map_err(|status| status.context("tensor_content"));
    }
    content::decode(&proto.tensor_content, dtype, shape, nesting)
}

/// A tensor of `shape` whose elements are `values`, the last one repeated; zeros if there are none. Values that are too many
/// are ignored, as TensorFlow's clients write one for a string tensor without elements.
fn fill<T: crate::Element>(
    shape: Shape,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<Tensor> {
    let mut tensor = Tensor::new(T::DTYPE, shape)?;
    let slots = tensor.slice_mut::<T>()?;
    let mut last = T::default();
    let mut filled = 0;
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = value.clone();
        last = value;
        filled += 1;
    }
    for slot in &mut slots[filled..] {
        *slot = last.clone();
    }
    Ok(tensor)
}

/// A tensor of one of the dtypes that have no [`Element`](crate::Element) type, from its raw bytes.
fn storage_only(dtype: DType, shape: Shape, bytes: Vec<u8>) -> Result<Tensor> {
    Tensor::from_bytes(dtype, shape, bytes.into())
}

#[cfg(test)]
mod tests;
