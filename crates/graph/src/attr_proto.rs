//! `AttrValue` of the wire ↔ our own.

use std::collections::BTreeMap;

use tensorfleet_kernel::{AttrList, AttrValue, Attrs, FuncRef};
use tensorfleet_proto as pb;
use tensorfleet_proto::attr_value::{ListValue, Value};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{PartialShape, PortType, Tensor, UNKNOWN_DIM};

/// Functions in attributes of functions in attributes … deeper than this are refused.
const MAX_NESTING: usize = 16;

pub(crate) fn attrs_from_proto(attrs: &BTreeMap<String, pb::AttrValue>) -> Result<Attrs> {
    decode_attrs(attrs, MAX_NESTING)
}

fn decode_attrs(attrs: &BTreeMap<String, pb::AttrValue>, nesting: usize) -> Result<Attrs> {
    let mut out = Attrs::new();
    for (name, value) in attrs {
        let decoded = match &value.value {
            Some(Value::List(list)) if name.starts_with('_') && !list.shape.is_empty() => {
                noted_shapes(list).map(Some)
            }
            _ => decode(value, nesting),
        };
        let decoded = decoded.map_err(|status: Status| status.context(format!("attr '{name}'")))?;
        if let Some(decoded) = decoded {
            out.set(name.as_str(), decoded);
        }
    }
    Ok(out)
}

/// Shapes in a note of TensorFlow's optimiser (`_input_shapes`): sizes it does not know are -1, or -2, -3 … where it knows
/// which of them are the same.
fn noted_shapes(list: &ListValue) -> Result<AttrValue> {
    let shapes = list.shape.iter().map(|shape| {
        let mut shape = shape.clone();
        for dim in &mut shape.dim {
            dim.size = dim.size.max(UNKNOWN_DIM);
        }
        PartialShape::from_proto(&shape)
    });
    let shapes = shapes.collect::<Result<_>>()?;
    Ok(AttrValue::List(AttrList::Shape(shapes)))
}

/// `None` for a value that is not set at all.
fn decode(value: &pb::AttrValue, nesting: usize) -> Result<Option<AttrValue>> {
    let Some(value) = &value.value else {
        return Ok(None);
    };
    Ok(Some(match value {
        Value::S(bytes) => AttrValue::S(bytes.clone()),
        Value::I(value) => AttrValue::I(*value),
        Value::F(value) => AttrValue::F(*value),
        Value::B(value) => AttrValue::B(*value),
        Value::Type(number) => AttrValue::Type(PortType::from_number(*number)?),
        Value::Shape(shape) => AttrValue::Shape(PartialShape::from_proto(shape)?),
        Value::Tensor(tensor) => AttrValue::Tensor(Tensor::from_proto(tensor)?),
        Value::Func(func) => AttrValue::Func(func_from_proto(func, nesting)?),
        Value::List(list) => AttrValue::List(decode_list(list, nesting)?),
        Value::Placeholder(name) => AttrValue::Placeholder(name.clone()),
    }))
}

fn func_from_proto(func: &pb::NameAttrList, nesting: usize) -> Result<FuncRef> {
    let Some(nesting) = nesting.checked_sub(1) else {
        return Err(invalid_argument!(
            "functions in attributes are nested more than {MAX_NESTING} deep"
        ));
    };
    Ok(FuncRef {
        name: func.name.as_str().into(),
        attrs: decode_attrs(&func.attr, nesting)?,
    })
}

fn decode_list(list: &ListValue, nesting: usize) -> Result<AttrList> {
    Ok(if !list.s.is_empty() {
        AttrList::S(list.s.clone())
    } else if !list.i.is_empty() {
        AttrList::I(list.i.clone())
    } else if !list.f.is_empty() {
        AttrList::F(list.f.clone())
    } else if !list.b.is_empty() {
        AttrList::B(list.b.clone())
    } else if !list.r#type.is_empty() {
        AttrList::Type(
            list.r#type
                .iter()
                .map(|number| PortType::from_number(*number))
                .collect::<Result<_>>()?,
        )
    } else if !list.shape.is_empty() {
        AttrList::Shape(
            list.shape
                .iter()
                .map(PartialShape::from_proto)
                .collect::<Result<_>>()?,
        )
    } else if !list.tensor.is_empty() {
        AttrList::Tensor(
            list.tensor
                .iter()
                .map(Tensor::from_proto)
                .collect::<Result<_>>()?,
        )
    } else if !list.func.is_empty() {
        AttrList::Func(
            list.func
                .iter()
                .map(|func| func_from_proto(func, nesting))
                .collect::<Result<_>>()?,
        )
    } else {
        AttrList::Empty
    })
}

pub(crate) fn attrs_to_proto(attrs: &Attrs) -> Result<BTreeMap<String, pb::AttrValue>> {
    attrs
        .iter()
        .map(|(name, value)| Ok((name.to_string(), to_proto(value)?)))
        .collect()
}

/// Tensors up to this many bytes are written into the typed fields, as TensorFlow's clients do.
const TYPED_LIMIT: usize = 64;

fn tensor_to_proto(tensor: &Tensor) -> Result<pb::TensorProto> {
    if tensor.dtype().is_plain() && tensor.byte_size() > TYPED_LIMIT {
        tensor.to_proto()
    } else {
        tensor.to_typed_proto()
    }
}

fn to_proto(value: &AttrValue) -> Result<pb::AttrValue> {
    let value = match value {
        AttrValue::S(bytes) => Value::S(bytes.clone()),
        AttrValue::I(value) => Value::I(*value),
        AttrValue::F(value) => Value::F(*value),
        AttrValue::B(value) => Value::B(*value),
        AttrValue::Type(port) => Value::Type(port.number()),
        AttrValue::Shape(shape) => Value::Shape(shape.to_proto()),
        AttrValue::Tensor(tensor) => Value::Tensor(tensor_to_proto(tensor)?),
        AttrValue::Func(func) => Value::Func(func_to_proto(func)?),
        AttrValue::List(list) => Value::List(list_to_proto(list)?),
        AttrValue::Placeholder(name) => Value::Placeholder(name.clone()),
    };
    Ok(pb::AttrValue { value: Some(value) })
}

fn func_to_proto(func: &FuncRef) -> Result<pb::NameAttrList> {
    Ok(pb::NameAttrList {
        name: func.name.to_string(),
        attr: attrs_to_proto(&func.attrs)?,
    })
}

fn list_to_proto(list: &AttrList) -> Result<ListValue> {
    let mut out = ListValue::default();
    match list {
        AttrList::Empty => {}
        AttrList::S(values) => out.s = values.clone(),
        AttrList::I(values) => out.i = values.clone(),
        AttrList::F(values) => out.f = values.clone(),
        AttrList::B(values) => out.b = values.clone(),
        AttrList::Type(values) => out.r#type = values.iter().map(|port| port.number()).collect(),
        AttrList::Shape(values) => out.shape = values.iter().map(PartialShape::to_proto).collect(),
        AttrList::Tensor(values) => {
            out.tensor = values.iter().map(tensor_to_proto).collect::<Result<_>>()?;
        }
        AttrList::Func(values) => {
            out.func = values.iter().map(func_to_proto).collect::<Result<_>>()?;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(name: &str) -> BTreeMap<String, pb::AttrValue> {
        let dim = |size| pb::tensor_shape_proto::Dim {
            size,
            name: String::new(),
        };
        let shape = pb::TensorShapeProto {
            dim: vec![dim(-4), dim(32), dim(-1)],
            unknown_rank: false,
        };
        let list = ListValue {
            shape: vec![shape],
            ..ListValue::default()
        };
        let value = Some(Value::List(list));
        BTreeMap::from([(name.to_owned(), pb::AttrValue { value })])
    }

    #[test]
    fn sizes_that_a_note_numbers_are_unknown() {
        let attrs = attrs_from_proto(&shapes("_input_shapes")).unwrap();
        let Some(AttrValue::List(AttrList::Shape(found))) = attrs.get("_input_shapes") else {
            panic!("no shapes");
        };
        assert_eq!(found.as_slice(), [PartialShape::new(&[-1, 32, -1])]);
        let status = attrs_from_proto(&shapes("output_shapes")).unwrap_err();
        assert!(status.message().contains("-4"), "{status}");
    }
}
