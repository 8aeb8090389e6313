//! The attr language: `x: T`, `values: N * T`, `T: {float, double} = DT_FLOAT`, `N: int >= 1 = 2`.

use std::sync::Arc;

use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::DType;

use super::literal::{Cursor, value};
use super::{Allowed, ArgDef, ArgKind, AttrDef, AttrKind, Scalar, TypeOf};

pub(super) fn arg(text: &str) -> Result<ArgDef> {
    let bad = || internal!("'{text}' is no argument in the attr language");
    let (name, spec) = text.split_once(':').ok_or_else(bad)?;
    let mut spec = spec.trim();
    let mut is_ref = false;
    if let Some(inner) = spec.strip_prefix("Ref(") {
        spec = inner.strip_suffix(')').ok_or_else(bad)?.trim();
        is_ref = true;
    }
    let kind = match spec.split_once('*') {
        Some((number, of)) => ArgKind::Repeated {
            number: number.trim().into(),
            of: type_of(of.trim()),
        },
        // Whether a bare name is one type or a list of types only the attribute can say: `settle_lists` does.
        None => ArgKind::Single(type_of(spec)),
    };
    Ok(ArgDef {
        name: name.trim().into(),
        kind,
        is_ref,
    })
}

fn type_of(text: &str) -> TypeOf {
    match DType::from_name(text) {
        Some(dtype) if text.starts_with(|c: char| c.is_ascii_lowercase()) => TypeOf::Fixed(dtype),
        _ => TypeOf::Attr(text.into()),
    }
}

/// Turns single arguments whose attribute is a `list(type)` into type lists.
pub(super) fn settle_lists(args: &mut [ArgDef], attrs: &[AttrDef]) {
    let list_of_types = AttrKind {
        scalar: Scalar::Type,
        is_list: true,
    };
    for arg in args {
        if let ArgKind::Single(TypeOf::Attr(name)) = &arg.kind {
            let is_list = attrs
                .iter()
                .any(|attr| attr.name == *name && attr.kind == list_of_types);
            if is_list {
                arg.kind = ArgKind::TypeList(Arc::clone(name));
            }
        }
    }
}

pub(super) fn attr(text: &str) -> Result<AttrDef> {
    let bad = || internal!("'{text}' is no attribute in the attr language");
    let (name, spec) = text.split_once(':').ok_or_else(bad)?;
    let mut cursor = Cursor::new(spec);
    let (kind, allowed) = kind(&mut cursor).ok_or_else(bad)?;
    let mut minimum = None;
    if cursor.eat(">=") {
        minimum = Some(
            cursor
                .number()
                .and_then(|number| number.parse().ok())
                .ok_or_else(bad)?,
        );
    }
    let mut default = None;
    if cursor.eat("=") {
        default = Some(value(&mut cursor, kind).ok_or_else(bad)?);
    }
    if !cursor.at_end() {
        return Err(bad());
    }
    Ok(AttrDef {
        name: name.trim().into(),
        kind,
        default,
        minimum,
        allowed,
    })
}

fn kind(cursor: &mut Cursor<'_>) -> Option<(AttrKind, Allowed)> {
    if cursor.eat("list(") {
        let (inner, allowed) = kind(cursor)?;
        let closed = cursor.eat(")");
        return (closed && !inner.is_list).then_some((
            AttrKind {
                is_list: true,
                ..inner
            },
            allowed,
        ));
    }
    let one = |scalar| AttrKind {
        scalar,
        is_list: false,
    };
    if cursor.eat("{") {
        return if cursor.peek() == Some('\'') {
            let mut strings = Vec::new();
            while !cursor.eat("}") {
                strings.push(String::from_utf8(cursor.quoted()?).ok()?.into());
                cursor.eat(",");
            }
            Some((one(Scalar::String), Allowed::Strings(strings)))
        } else {
            let mut types = Vec::new();
            while !cursor.eat("}") {
                types.push(DType::from_name(cursor.word()?)?);
                cursor.eat(",");
            }
            Some((one(Scalar::Type), Allowed::Types(types)))
        };
    }
    let scalar = Scalar::from_name(cursor.word()?)?;
    Some((one(scalar), Allowed::Any))
}
