//! Attribute values of nodes, in our own types: `proto` stays out of signatures above `graph`.

use std::sync::Arc;

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Bytes, DType, PartialShape, PortType, Tensor};

/// One attribute value.
#[derive(Clone, Debug)]
pub enum AttrValue {
    /// `string`: any bytes.
    S(Bytes),
    /// `int`.
    I(i64),
    /// `float`.
    F(f32),
    /// `bool`.
    B(bool),
    /// `type`; a ref type only inside type lists of functions.
    Type(PortType),
    /// `shape`.
    Shape(PartialShape),
    /// `tensor`.
    Tensor(Tensor),
    /// `func`.
    Func(FuncRef),
    /// `list(...)`.
    List(AttrList),
    /// A parameter of the function body that this node is in, replaced at instantiation.
    Placeholder(String),
}

/// A list value. The wire does not say what an empty list is a list of.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub enum AttrList {
    #[default]
    Empty,
    S(Vec<Bytes>),
    I(Vec<i64>),
    F(Vec<f32>),
    B(Vec<bool>),
    Type(Vec<PortType>),
    Shape(Vec<PartialShape>),
    Tensor(Vec<Tensor>),
    Func(Vec<FuncRef>),
}

impl AttrList {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            AttrList::Empty => 0,
            AttrList::S(v) => v.len(),
            AttrList::I(v) => v.len(),
            AttrList::F(v) => v.len(),
            AttrList::B(v) => v.len(),
            AttrList::Type(v) => v.len(),
            AttrList::Shape(v) => v.len(),
            AttrList::Tensor(v) => v.len(),
            AttrList::Func(v) => v.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A function named by an attribute, with its own attributes.
#[derive(Clone, Debug, Default)]
pub struct FuncRef {
    /// The function's name in the library.
    pub name: Arc<str>,
    /// Attributes for its body.
    pub attrs: Attrs,
}

/// The attributes of a node, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Attrs(Vec<(Arc<str>, AttrValue)>);

impl Attrs {
    /// No attributes.
    pub fn new() -> Attrs {
        Attrs::default()
    }

    /// The value of an attribute, if present.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        let index = self
            .0
            .binary_search_by(|(key, _)| key.as_ref().cmp(name))
            .ok()?;
        Some(&self.0[index].1)
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: AttrValue) {
        let name = name.into();
        match self.0.binary_search_by(|(key, _)| key.cmp(&name)) {
            Ok(index) => self.0[index].1 = value,
            Err(index) => self.0.insert(index, (name, value)),
        }
    }

    /// Removes an attribute.
    pub fn remove(&mut self, name: &str) -> Option<AttrValue> {
        let index = self
            .0
            .binary_search_by(|(key, _)| key.as_ref().cmp(name))
            .ok()?;
        Some(self.0.remove(index).1)
    }

    /// All attributes in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &AttrValue)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// The number of attributes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident, $list:ident: $variant:ident => $type:ty, $kind:literal;)*) => {
        impl Attrs {$(
            $(#[$doc])*
            pub fn $name(&self, name: &str) -> Result<&$type> {
                match self.get(name) {
                    Some(AttrValue::$variant(value)) => Ok(value),
                    other => Err(mismatch(name, $kind, other)),
                }
            }

            /// The list attribute of this type.
            pub fn $list(&self, name: &str) -> Result<&[$type]> {
                match self.get(name) {
                    Some(AttrValue::List(AttrList::$variant(values))) => Ok(values),
                    Some(AttrValue::List(AttrList::Empty)) => Ok(&[]),
                    other => Err(mismatch(name, concat!("list(", $kind, ")"), other)),
                }
            }
        )*}
    };
}

getters! {
    /// A string attribute as bytes.
    bytes, bytes_list: S => Bytes, "string";
    /// An int attribute.
    int_ref, ints: I => i64, "int";
    /// A float attribute.
    float_ref, floats: F => f32, "float";
    /// A bool attribute.
    bool_ref, bools: B => bool, "bool";
    /// A type attribute, ref or not.
    port_type, port_types: Type => PortType, "type";
    /// A shape attribute.
    shape, shapes: Shape => PartialShape, "shape";
    /// A tensor attribute.
    tensor, tensors: Tensor => Tensor, "tensor";
    /// A function attribute.
    func, funcs: Func => FuncRef, "func";
}

impl Attrs {
    /// An int attribute.
    pub fn int(&self, name: &str) -> Result<i64> {
        self.int_ref(name).copied()
    }

    /// A float attribute.
    pub fn float(&self, name: &str) -> Result<f32> {
        self.float_ref(name).copied()
    }

    /// A bool attribute.
    pub fn bool(&self, name: &str) -> Result<bool> {
        self.bool_ref(name).copied()
    }

    /// A type attribute.
    pub fn dtype(&self, name: &str) -> Result<DType> {
        self.port_type(name).map(|port| port.dtype)
    }

    /// A list of types.
    pub fn dtypes(&self, name: &str) -> Result<Vec<DType>> {
        Ok(self
            .port_types(name)?
            .iter()
            .map(|port| port.dtype)
            .collect())
    }

    /// A string attribute as text.
    pub fn str(&self, name: &str) -> Result<&str> {
        std::str::from_utf8(self.bytes(name)?)
            .map_err(|_| invalid_argument!("attr '{name}' is not UTF-8"))
    }
}

macro_rules! conversions {
    ($($type:ty => |$value:ident| $make:expr;)*) => {$(
        impl From<$type> for AttrValue {
            fn from($value: $type) -> AttrValue {
                $make
            }
        }
    )*};
}

conversions! {
    bool => |value| AttrValue::B(value);
    i64 => |value| AttrValue::I(value);
    f32 => |value| AttrValue::F(value);
    &str => |value| AttrValue::S(Bytes::copy_from_slice(value.as_bytes()));
    String => |value| AttrValue::S(value.into());
    DType => |value| AttrValue::Type(value.into());
    PortType => |value| AttrValue::Type(value);
    PartialShape => |value| AttrValue::Shape(value);
    Tensor => |value| AttrValue::Tensor(value);
    FuncRef => |value| AttrValue::Func(value);
    Vec<i64> => |value| AttrValue::List(AttrList::I(value));
    Vec<DType> => |value| AttrValue::List(AttrList::Type(value.into_iter().map(PortType::from).collect()));
    Vec<PartialShape> => |value| AttrValue::List(AttrList::Shape(value));
}

#[cold]
fn mismatch(name: &str, wanted: &str, found: Option<&AttrValue>) -> tensorfleet_status::Status {
    match found {
        None => invalid_argument!("no attr named '{name}' in node"),
        Some(value) => invalid_argument!(
            "attr '{name}' has value {value:?} where a value of type '{wanted}' was expected"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attrs_stay_sorted_and_typed() {
        let mut attrs = Attrs::new();
        attrs.set("b", AttrValue::I(2));
        attrs.set("a", AttrValue::B(true));
        attrs.set("b", AttrValue::I(3));
        assert_eq!(attrs.int("b").unwrap(), 3);
        assert!(attrs.int("a").is_err());
        assert!(
            attrs
                .int("c")
                .unwrap_err()
                .message()
                .contains("no attr named 'c'")
        );
        attrs.set("e", AttrValue::List(AttrList::Empty));
        assert!(attrs.ints("e").unwrap().is_empty());
        let names: Vec<_> = attrs.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["a", "b", "e"]);
    }
}
