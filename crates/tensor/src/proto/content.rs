//! `tensor_content` of string, variant and resource tensors: all lengths as varints, then all bodies.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{decode_varint, encode_varint};
use tensorfleet_proto::resource_handle_proto::DtypeAndShape;
use tensorfleet_proto::{ResourceHandleProto, TensorShapeProto, VariantTensorDataProto};
use tensorfleet_status::{Result, invalid_argument, unimplemented};

use crate::dtype::{DType, PortType};
use crate::resource::{HandleData, ResourceHandle};
use crate::shape::{PartialShape, Shape};
use crate::tensor::Tensor;
use crate::tstring::TString;
use crate::variant::{OpaqueVariant, TensorList, Variant};

/// The content bytes of any tensor; plain dtypes share theirs.
pub(super) fn encode(tensor: &Tensor) -> Result<Bytes> {
    match tensor.dtype() {
        DType::String => {
            let values = tensor.slice::<TString>()?;
            Ok(join(
                values.iter().map(|value| value.as_ref()),
                values.iter().map(|value| value.len()).sum(),
            ))
        }
        DType::Resource => {
            let bodies: Vec<_> = tensor
                .slice()?
                .iter()
                .map(|handle| resource_to_proto(handle).encode_to_vec())
                .collect();
            Ok(join(
                bodies.iter().map(Vec::as_slice),
                bodies.iter().map(Vec::len).sum(),
            ))
        }
        DType::Variant => {
            let bodies: Result<Vec<_>> = tensor
                .slice()?
                .iter()
                .map(|v| Ok(variant_to_proto(v)?.encode_to_vec()))
                .collect();
            let bodies = bodies?;
            Ok(join(
                bodies.iter().map(Vec::as_slice),
                bodies.iter().map(Vec::len).sum(),
            ))
        }
        _ => Ok(tensor.to_shared_bytes().unwrap_or_default()),
    }
}

fn join<'a>(bodies: impl ExactSizeIterator<Item = &'a [u8]> + Clone, total: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(total + 2 * bodies.len());
    for body in bodies.clone() {
        encode_varint(body.len() as u64, &mut out);
    }
    for body in bodies {
        out.extend_from_slice(body);
    }
    out.freeze()
}

/// Decodes the content of a string, resource or variant tensor.
pub(super) fn decode(
    content: &Bytes,
    dtype: DType,
    shape: Shape,
    nesting: usize,
) -> Result<Tensor> {
    let bodies = split(content, shape.elements(), dtype)?.into_iter();
    match dtype {
        DType::String => {
            let values = bodies.map(|body| TString::part_of(content, body));
            Tensor::from_vec(shape, values.collect())
        }
        DType::Resource => {
            let handles: Result<Vec<ResourceHandle>> = bodies
                .map(|body| resource_from_proto(&parse(content.slice_ref(body), dtype)?))
                .collect();
            Tensor::from_vec(shape, handles?)
        }
        _ => {
            let variants: Result<Vec<Variant>> = bodies
                .map(|body| variant_from_proto(&parse(content.slice_ref(body), dtype)?, nesting))
                .collect();
            Tensor::from_vec(shape, variants?)
        }
    }
}

/// Cuts the content into `count` bodies.
fn split(content: &[u8], count: usize, dtype: DType) -> Result<Vec<&[u8]>> {
    // Every element takes a length byte at least, so a short content cannot claim many elements.
    if count > content.len() {
        return Err(invalid_argument!(
            "{} content bytes cannot hold {count} {dtype} elements",
            content.len()
        ));
    }
    let mut rest = content;
    let mut lengths = Vec::with_capacity(count);
    for index in 0..count {
        let length = decode_varint(&mut rest)
            .ok()
            .and_then(|length| usize::try_from(length).ok());
        match length {
            Some(length) => lengths.push(length),
            None => {
                return Err(invalid_argument!(
                    "the length of {dtype} element {index} is damaged"
                ));
            }
        }
    }
    let mut bodies = Vec::with_capacity(count);
    for (index, length) in lengths.into_iter().enumerate() {
        let Some((body, behind)) = rest.split_at_checked(length) else {
            return Err(invalid_argument!(
                "{dtype} element {index} has {length} bytes, only {} are left",
                rest.len()
            ));
        };
        bodies.push(body);
        rest = behind;
    }
    if !rest.is_empty() {
        return Err(invalid_argument!(
            "{} bytes are left after the last {dtype} element",
            rest.len()
        ));
    }
    Ok(bodies)
}

fn parse<M: Message + Default>(body: Bytes, dtype: DType) -> Result<M> {
    M::decode(body).map_err(|error| invalid_argument!("damaged {dtype} element: {error}"))
}

/// Encodes a handle; the object it may carry stays behind.
fn resource_to_proto(handle: &ResourceHandle) -> ResourceHandleProto {
    let dtypes_and_shapes = handle
        .dtypes_and_shapes
        .iter()
        .map(|(dtype, shape)| DtypeAndShape {
            dtype: dtype.number(),
            shape: Some(shape.to_proto()),
        });
    ResourceHandleProto {
        device: handle.device.clone(),
        container: handle.container.clone(),
        name: handle.name.clone(),
        hash_code: handle.hash_code,
        maybe_type_name: handle.type_name.clone(),
        dtypes_and_shapes: dtypes_and_shapes.collect(),
    }
}

pub(super) fn resource_from_proto(proto: &ResourceHandleProto) -> Result<ResourceHandle> {
    let mut dtypes_and_shapes = Vec::with_capacity(proto.dtypes_and_shapes.len());
    for entry in &proto.dtypes_and_shapes {
        let dtype = PortType::from_number(entry.dtype)?.dtype;
        let shape = match &entry.shape {
            Some(shape) => PartialShape::from_proto(shape)?,
            None => PartialShape::scalar(),
        };
        dtypes_and_shapes.push((dtype, shape));
    }
    Ok(ResourceHandle::new(HandleData {
        device: proto.device.clone(),
        container: proto.container.clone(),
        name: proto.name.clone(),
        hash_code: proto.hash_code,
        type_name: proto.maybe_type_name.clone(),
        dtypes_and_shapes,
        object: None,
    }))
}

fn variant_to_proto(variant: &Variant) -> Result<VariantTensorDataProto> {
    let (metadata, tensors) = match variant {
        Variant::Empty => return Ok(VariantTensorDataProto::default()),
        Variant::List(list) => (
            list_metadata(list),
            list.items.iter().flatten().cloned().collect(),
        ),
        Variant::Opaque(opaque) => (opaque.metadata.clone(), opaque.tensors.clone()),
        Variant::Object(object) => match object.encode() {
            Some(encoded) => encoded,
            None => {
                return Err(unimplemented!(
                    "a variant of type {} cannot leave its process",
                    object.type_name()
                ));
            }
        },
    };
    let tensors: Result<Vec<_>> = tensors.iter().map(Tensor::to_proto).collect();
    Ok(VariantTensorDataProto {
        type_name: variant.type_name().to_owned(),
        metadata,
        tensors: tensors?,
    })
}

pub(super) fn variant_from_proto(
    proto: &VariantTensorDataProto,
    nesting: usize,
) -> Result<Variant> {
    if proto.type_name.is_empty() && proto.tensors.is_empty() {
        return Ok(Variant::Empty);
    }
    let tensors: Result<Vec<_>> = proto
        .tensors
        .iter()
        .map(|tensor| super::decode(tensor, nesting - 1))
        .collect();
    let tensors = tensors?;
    if proto.type_name == TensorList::TYPE_NAME {
        return Ok(Variant::List(Arc::new(list_from(
            &proto.metadata,
            tensors,
        )?)));
    }
    Ok(Variant::Opaque(Arc::new(OpaqueVariant {
        type_name: proto.type_name.clone(),
        metadata: proto.metadata.clone(),
        tensors,
    })))
}

/// TensorFlow's list metadata: number and indices of unset items, dtype, limit, element shape.
fn list_metadata(list: &TensorList) -> Bytes {
    let unset: Vec<u64> = (0u64..)
        .zip(&list.items)
        .filter(|(_, item)| item.is_none())
        .map(|(index, _)| index)
        .collect();
    let mut out = BytesMut::new();
    encode_varint(unset.len() as u64, &mut out);
    for index in &unset {
        encode_varint(*index, &mut out);
    }
    encode_varint(list.element_dtype.number() as u64, &mut out);
    encode_varint(list.max_num_elements as u64, &mut out);
    out.extend_from_slice(&list.element_shape.to_proto().encode_to_vec());
    out.freeze()
}

fn list_from(metadata: &Bytes, tensors: Vec<Tensor>) -> Result<TensorList> {
    let damaged = || invalid_argument!("damaged metadata of a tensor list");
    let mut rest = metadata.clone();
    let mut next = || decode_varint(&mut rest).map_err(|_| damaged());
    let unset_count = next()?;
    if unset_count > metadata.len() as u64 {
        return Err(damaged());
    }
    let unset: Vec<u64> = (0..unset_count).map(|_| next()).collect::<Result<_>>()?;
    let number = i32::try_from(next()?).map_err(|_| damaged())?;
    let element_dtype = DType::from_number(number).ok_or_else(damaged)?;
    let max_num_elements = next()? as i64;
    let element_shape =
        PartialShape::from_proto(&parse::<TensorShapeProto>(rest, DType::Variant)?)?;

    let total = tensors.len() + unset.len();
    let mut is_unset = vec![false; total];
    for index in unset {
        let slot = usize::try_from(index)
            .ok()
            .and_then(|index| is_unset.get_mut(index))
            .ok_or_else(damaged)?;
        *slot = true;
    }
    let mut values = tensors.into_iter();
    let items = is_unset
        .into_iter()
        .map(|unset| if unset { None } else { values.next() })
        .collect();
    Ok(TensorList {
        element_dtype,
        element_shape,
        max_num_elements,
        items,
    })
}
