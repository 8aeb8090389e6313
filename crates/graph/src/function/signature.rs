//! The signature of a function out of the OpDef it travels with.

use tensorfleet_proto as pb;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::PortType;

use crate::signature::{Allowed, ArgDef, ArgKind, AttrDef, AttrKind, Scalar, Signature, TypeOf};

pub(super) fn from_proto(def: &pb::OpDef) -> Result<Signature> {
    let arg = |arg: &pb::op_def::ArgDef| -> Result<ArgDef> {
        let of = if arg.type_attr.is_empty() {
            if arg.r#type == 0 {
                None
            } else {
                Some(TypeOf::Fixed(PortType::from_number(arg.r#type)?.dtype))
            }
        } else {
            Some(TypeOf::Attr(arg.type_attr.as_str().into()))
        };
        let kind = match (
            of,
            arg.number_attr.is_empty(),
            arg.type_list_attr.is_empty(),
        ) {
            (_, _, false) => ArgKind::TypeList(arg.type_list_attr.as_str().into()),
            (Some(of), false, true) => ArgKind::Repeated {
                number: arg.number_attr.as_str().into(),
                of,
            },
            (Some(of), true, true) => ArgKind::Single(of),
            (None, ..) => return Err(invalid_argument!("argument '{}' has no type", arg.name)),
        };
        Ok(ArgDef {
            name: arg.name.as_str().into(),
            kind,
            is_ref: arg.is_ref,
        })
    };
    let attrs = def.attr.iter().map(|attr| {
        let (text, is_list) = match attr
            .r#type
            .strip_prefix("list(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            Some(inner) => (inner, true),
            None => (attr.r#type.as_str(), false),
        };
        let Some(scalar) = Scalar::from_name(text) else {
            return Err(invalid_argument!(
                "attr '{}' has the unknown type '{text}'",
                attr.name
            ));
        };
        Ok(AttrDef {
            name: attr.name.as_str().into(),
            kind: AttrKind { scalar, is_list },
            default: None,
            minimum: None,
            allowed: Allowed::Any,
        })
    });
    Ok(Signature {
        attrs: attrs.collect::<Result<_>>()?,
        inputs: def.input_arg.iter().map(arg).collect::<Result<_>>()?,
        outputs: def.output_arg.iter().map(arg).collect::<Result<_>>()?,
    })
}
