//! [`Signature`]: the inputs, outputs and attributes of an op or function, parsed.

mod literal;
mod parse;
mod resolve;

use std::sync::Arc;

use tensorfleet_kernel::AttrValue;
use tensorfleet_status::{Result, Status};
use tensorfleet_tensor::DType;

use crate::def::OpDef;

pub use literal::parse_attr_value;
pub use resolve::port_types;

/// The inputs, outputs and attributes of an op or function.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// Inputs in order.
    pub inputs: Vec<ArgDef>,
    /// Outputs in order.
    pub outputs: Vec<ArgDef>,
    /// Attributes in order.
    pub attrs: Vec<AttrDef>,
}

/// One input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgDef {
    /// Its name.
    pub name: Arc<str>,
    /// What it takes.
    pub kind: ArgKind,
    /// Whether it is a reference to a mutable tensor.
    pub is_ref: bool,
}

/// How many tensors of which type an argument stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgKind {
    /// One tensor.
    Single(TypeOf),
    /// As many as the int attribute `number` says, all of one type.
    Repeated {
        /// The name of the int attribute.
        number: Arc<str>,
        /// The type of each.
        of: TypeOf,
    },
    /// One tensor for each entry of a `list(type)` attribute.
    TypeList(Arc<str>),
}

/// The type of an argument: fixed, or given by a type attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeOf {
    /// This dtype.
    Fixed(DType),
    /// The dtype in this attribute.
    Attr(Arc<str>),
}

/// One attribute.
#[derive(Clone, Debug)]
pub struct AttrDef {
    /// Its name.
    pub name: Arc<str>,
    /// What it takes.
    pub kind: AttrKind,
    /// The value if a node does not give one.
    pub default: Option<AttrValue>,
    /// The least value of an int, or the least length of a list.
    pub minimum: Option<i64>,
    /// The allowed values of a type or string, or of a list's entries; empty for all.
    pub allowed: Allowed,
}

/// Allowed values of an attribute.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Allowed {
    /// All.
    #[default]
    Any,
    /// These dtypes.
    Types(Vec<DType>),
    /// These strings.
    Strings(Vec<Arc<str>>),
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Scalar {
    String,
    Int,
    Float,
    Bool,
    Type,
    Shape,
    Tensor,
    Func,
}

impl Scalar {
    /// The type with this name in the attr language.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Some(match name {
            "string" => Scalar::String,
            "int" => Scalar::Int,
            "float" => Scalar::Float,
            "bool" => Scalar::Bool,
            "type" => Scalar::Type,
            "shape" => Scalar::Shape,
            "tensor" => Scalar::Tensor,
            "func" => Scalar::Func,
            _ => return None,
        })
    }
}

/// The type of an attribute, or a list of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrKind {
    /// The type of the value or of a list's entries.
    pub scalar: Scalar,
    /// Whether it is a list.
    pub is_list: bool,
}

impl AttrKind {
    /// The name in the attr language: `int`, `list(type)`, …
    pub fn name(self) -> &'static str {
        match (self.scalar, self.is_list) {
            (Scalar::String, false) => "string",
            (Scalar::Int, false) => "int",
            (Scalar::Float, false) => "float",
            (Scalar::Bool, false) => "bool",
            (Scalar::Type, false) => "type",
            (Scalar::Shape, false) => "shape",
            (Scalar::Tensor, false) => "tensor",
            (Scalar::Func, false) => "func",
            (Scalar::String, true) => "list(string)",
            (Scalar::Int, true) => "list(int)",
            (Scalar::Float, true) => "list(float)",
            (Scalar::Bool, true) => "list(bool)",
            (Scalar::Type, true) => "list(type)",
            (Scalar::Shape, true) => "list(shape)",
            (Scalar::Tensor, true) => "list(tensor)",
            (Scalar::Func, true) => "list(func)",
        }
    }
}

impl Signature {
    /// Parses the texts of an op definition.
    pub fn of(def: &OpDef) -> Result<Signature> {
        let in_op = |status: Status| status.context(format!("op {}", def.name));
        Signature::parse(def.inputs, def.outputs, def.attrs).map_err(in_op)
    }

    /// Parses lists of arguments and attributes.
    pub fn parse<S: AsRef<str>>(inputs: &[S], outputs: &[S], attrs: &[S]) -> Result<Signature> {
        let args = |texts: &[S]| {
            texts
                .iter()
                .map(|text| parse::arg(text.as_ref()))
                .collect::<Result<Vec<_>>>()
        };
        let mut signature = Signature {
            inputs: args(inputs)?,
            outputs: args(outputs)?,
            attrs: attrs
                .iter()
                .map(|text| parse::attr(text.as_ref()))
                .collect::<Result<_>>()?,
        };
        parse::settle_lists(&mut signature.inputs, &signature.attrs);
        parse::settle_lists(&mut signature.outputs, &signature.attrs);
        Ok(signature)
    }

    /// Parses one argument such as `x: T`.
    pub fn parse_arg(text: &str) -> Result<ArgDef> {
        parse::arg(text)
    }

    /// Parses one attribute such as `N: int >= 1`.
    pub fn parse_attr(text: &str) -> Result<AttrDef> {
        parse::attr(text)
    }

    /// The attribute with this name.
    pub fn attr(&self, name: &str) -> Option<&AttrDef> {
        self.attrs.iter().find(|attr| attr.name.as_ref() == name)
    }
}

#[cfg(test)]
mod tests;
