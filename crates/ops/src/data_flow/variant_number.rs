//! Numbers in variants, and what a variant is called in texts.
//!
//! TensorFlow knows `int`, `float`, `double` and `bool` as types of variants. They arrive as constants of a graph, the number's
//! bytes as the metadata, and stay as they are: only ops that compute with them look inside.

use std::fmt;
use std::sync::Arc;

use tensorfleet_tensor::{Bytes, OpaqueVariant, Tensor, Variant, summarize};

use super::optional;
use crate::string::general;

/// A number that is an element of a DT_VARIANT tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum VariantNumber {
    Int(i32),
    Float(f32),
    Double(f64),
    Bool(bool),
}

impl VariantNumber {
    /// The number inside, if it is one and its bytes are as many as it needs.
    pub(crate) fn of(variant: &Variant) -> Option<VariantNumber> {
        let Variant::Opaque(opaque) = variant else {
            return None;
        };
        let bytes = &*opaque.metadata;
        Some(match opaque.type_name.as_str() {
            "int" => VariantNumber::Int(i32::from_le_bytes(bytes.try_into().ok()?)),
            "float" => VariantNumber::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
            "double" => VariantNumber::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            "bool" => match bytes {
                [byte] => VariantNumber::Bool(*byte != 0),
                _ => return None,
            },
            _ => return None,
        })
    }

    pub(crate) fn into_variant(self) -> Variant {
        let metadata = match self {
            VariantNumber::Int(value) => Bytes::copy_from_slice(&value.to_le_bytes()),
            VariantNumber::Float(value) => Bytes::copy_from_slice(&value.to_le_bytes()),
            VariantNumber::Double(value) => Bytes::copy_from_slice(&value.to_le_bytes()),
            VariantNumber::Bool(value) => Bytes::copy_from_slice(&[u8::from(value)]),
        };
        Variant::Opaque(Arc::new(OpaqueVariant {
            type_name: self.type_name().to_owned(),
            metadata,
            tensors: Vec::new(),
        }))
    }

    fn type_name(self) -> &'static str {
        match self {
            VariantNumber::Int(_) => "int",
            VariantNumber::Float(_) => "float",
            VariantNumber::Double(_) => "double",
            VariantNumber::Bool(_) => "bool",
        }
    }

    /// Zero of the same type.
    pub(crate) fn zero(self) -> VariantNumber {
        match self {
            VariantNumber::Int(_) => VariantNumber::Int(0),
            VariantNumber::Float(_) => VariantNumber::Float(0.0),
            VariantNumber::Double(_) => VariantNumber::Double(0.0),
            VariantNumber::Bool(_) => VariantNumber::Bool(false),
        }
    }

    /// The sum of two numbers of one type; bools are true if one of them is.
    pub(crate) fn plus(self, other: VariantNumber) -> Option<VariantNumber> {
        use VariantNumber::{Bool, Double, Float, Int};
        Some(match (self, other) {
            (Int(x), Int(y)) => Int(x.wrapping_add(y)),
            (Float(x), Float(y)) => Float(x + y),
            (Double(x), Double(y)) => Double(x + y),
            (Bool(x), Bool(y)) => Bool(x || y),
            _ => return None,
        })
    }
}

/// As C++ streams write it: six digits.
impl fmt::Display for VariantNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariantNumber::Int(value) => write!(f, "{value}"),
            VariantNumber::Float(value) => f.write_str(&general(f64::from(*value), 6)),
            VariantNumber::Double(value) => f.write_str(&general(*value, 6)),
            VariantNumber::Bool(value) => write!(f, "{}", u8::from(*value)),
        }
    }
}

/// The text that `AsString` makes of a variant.
pub(crate) fn text(variant: &Variant) -> String {
    let value = match (VariantNumber::of(variant), optional::components(variant)) {
        (Some(number), _) => number.to_string(),
        (_, Some(None)) => "OptionalVariant<None>".to_owned(),
        (_, Some(Some(values))) => {
            let values: Vec<String> = values.iter().map(tensor_text).collect();
            format!("OptionalVariant<values: ({})>", values.join(", "))
        }
        _ => match variant {
            Variant::Empty => "[empty]".to_owned(),
            // TensorFlow's names are spelled with their namespace, their texts without.
            other => other
                .type_name()
                .rsplit("::")
                .next()
                .unwrap_or_default()
                .to_owned(),
        },
    };
    format!("Variant<type: {} value: {value}>", variant.type_name())
}

fn tensor_text(tensor: &Tensor) -> String {
    let mut values = String::new();
    // A string takes any text.
    let _ = summarize(tensor, 3, &mut values);
    format!(
        "Tensor<type: {} shape: {} values: {values}>",
        tensor.dtype(),
        tensor.shape()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opaque(type_name: &str, metadata: &[u8]) -> Variant {
        Variant::Opaque(Arc::new(OpaqueVariant {
            type_name: type_name.to_owned(),
            metadata: Bytes::copy_from_slice(metadata),
            tensors: Vec::new(),
        }))
    }

    #[test]
    fn numbers_come_and_go_as_bytes() {
        use VariantNumber::{Bool, Double, Float, Int};
        for number in [Int(-5), Float(1.5), Double(-0.1), Bool(true)] {
            assert_eq!(
                VariantNumber::of(&number.into_variant()),
                Some(number),
                "{number}"
            );
        }
        assert_eq!(VariantNumber::of(&opaque("int", &[1, 2])), None);
        assert_eq!(VariantNumber::of(&opaque("int", &[1, 0, 0, 0, 2])), None);
        assert_eq!(VariantNumber::of(&opaque("bool", &[])), None);
        assert_eq!(VariantNumber::of(&opaque("long", &[0; 8])), None);
    }

    /// Texts of TensorFlow 2.21.
    #[test]
    fn texts_are_tensorflows() {
        use VariantNumber::{Bool, Double, Float, Int};
        let cases = [
            (Int(-5), "int value: -5"),
            (Float(0.1), "float value: 0.1"),
            (Float(1e10), "float value: 1e+10"),
            (Double(123_456_789.0), "double value: 1.23457e+08"),
            (Double(f64::NAN), "double value: nan"),
            (Float(f32::INFINITY), "float value: inf"),
            (Bool(true), "bool value: 1"),
        ];
        for (number, want) in cases {
            assert_eq!(
                text(&number.into_variant()),
                format!("Variant<type: {want}>")
            );
        }
        assert_eq!(text(&Variant::Empty), "Variant<type:  value: [empty]>");
    }
}
