//! [`DType`], every element type of TensorFlow's `DataType`, and [`PortType`], a dtype that may be a ref.

use std::fmt;

use tensorfleet_status::{Result, invalid_argument};

/// An element type. Numbers are those of the wire; ref types are a [`PortType`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // the names say it all
pub enum DType {
    F32 = 1,
    F64 = 2,
    I32 = 3,
    U8 = 4,
    I16 = 5,
    I8 = 6,
    String = 7,
    C64 = 8,
    I64 = 9,
    Bool = 10,
    QI8 = 11,
    QU8 = 12,
    QI32 = 13,
    BF16 = 14,
    QI16 = 15,
    QU16 = 16,
    U16 = 17,
    C128 = 18,
    F16 = 19,
    Resource = 20,
    Variant = 21,
    U32 = 22,
    U64 = 23,
    F8E5M2 = 24,
    F8E4M3Fn = 25,
    F8E4M3Fnuz = 26,
    F8E4M3B11Fnuz = 27,
    F8E5M2Fnuz = 28,
    I4 = 29,
    U4 = 30,
    I2 = 31,
    U2 = 32,
    F4E2M1Fn = 33,
}

/// What the wire adds to a dtype number to make it a ref type.
const REF_OFFSET: i32 = 100;

/// Every dtype, its TensorFlow name and its element size (0 for types without a fixed size).
const TABLE: [(DType, &str, usize); 33] = [
    (DType::F32, "float", 4),
    (DType::F64, "double", 8),
    (DType::I32, "int32", 4),
    (DType::U8, "uint8", 1),
    (DType::I16, "int16", 2),
    (DType::I8, "int8", 1),
    (DType::String, "string", 0),
    (DType::C64, "complex64", 8),
    (DType::I64, "int64", 8),
    (DType::Bool, "bool", 1),
    (DType::QI8, "qint8", 1),
    (DType::QU8, "quint8", 1),
    (DType::QI32, "qint32", 4),
    (DType::BF16, "bfloat16", 2),
    (DType::QI16, "qint16", 2),
    (DType::QU16, "quint16", 2),
    (DType::U16, "uint16", 2),
    (DType::C128, "complex128", 16),
    (DType::F16, "half", 2),
    (DType::Resource, "resource", 0),
    (DType::Variant, "variant", 0),
    (DType::U32, "uint32", 4),
    (DType::U64, "uint64", 8),
    (DType::F8E5M2, "float8_e5m2", 1),
    (DType::F8E4M3Fn, "float8_e4m3fn", 1),
    (DType::F8E4M3Fnuz, "float8_e4m3fnuz", 1),
    (DType::F8E4M3B11Fnuz, "float8_e4m3b11fnuz", 1),
    (DType::F8E5M2Fnuz, "float8_e5m2fnuz", 1),
    (DType::I4, "int4", 1),
    (DType::U4, "uint4", 1),
    (DType::I2, "int2", 1),
    (DType::U2, "uint2", 1),
    (DType::F4E2M1Fn, "float4_e2m1fn", 1),
];

impl DType {
    /// Every dtype in wire order.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|(dtype, ..)| *dtype)
    }

    /// The dtype with this wire number; `None` for ref, invalid and unknown numbers.
    pub fn from_number(number: i32) -> Option<DType> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        TABLE.get(index).map(|(dtype, ..)| *dtype)
    }

    /// The number on the wire.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// TensorFlow's C++ name: `float`, `int32`, `half`, …
    pub fn name(self) -> &'static str {
        TABLE[self as usize - 1].1
    }

    /// Parses a name as C++ (`float`, `DT_FLOAT`) or Python (`float32`) writes it.
    pub fn from_name(name: &str) -> Option<DType> {
        let lower = name
            .strip_prefix("DT_")
            .unwrap_or(name)
            .to_ascii_lowercase();
        let canonical = match lower.as_str() {
            "float32" => "float",
            "float64" => "double",
            "float16" => "half",
            other => other,
        };
        TABLE
            .iter()
            .find(|(_, n, _)| *n == canonical)
            .map(|(dtype, ..)| *dtype)
    }

    /// Bytes per element; `None` for string, resource and variant.
    pub fn size(self) -> Option<usize> {
        Some(TABLE[self as usize - 1].2).filter(|size| *size > 0)
    }

    /// Whether elements are plain bytes that can be copied as such.
    pub fn is_plain(self) -> bool {
        self.size().is_some()
    }

    /// half, bfloat16, float or double.
    pub fn is_floating(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// complex64 or complex128.
    pub fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// A signed or unsigned integer of 8 to 64 bits.
    pub fn is_integer(self) -> bool {
        use DType::*;
        matches!(self, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
    }

    /// Whether gradients flow through tensors of this type.
    pub fn is_differentiable(self) -> bool {
        self.is_floating() || self.is_complex() || self == DType::Variant || self == DType::Resource
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of an input or output of a node: a dtype, by value or by reference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortType {
    /// The element type.
    pub dtype: DType,
    /// Whether the port carries a reference to a mutable tensor.
    pub is_ref: bool,
}

impl PortType {
    /// A reference to a mutable tensor of this dtype.
    pub const fn reference(dtype: DType) -> PortType {
        PortType {
            dtype,
            is_ref: true,
        }
    }

    /// The type with this wire number.
    pub fn from_number(number: i32) -> Result<PortType> {
        let (base, is_ref) = if number > REF_OFFSET {
            (number - REF_OFFSET, true)
        } else {
            (number, false)
        };
        match DType::from_number(base) {
            Some(dtype) => Ok(PortType { dtype, is_ref }),
            None => Err(invalid_argument!("{number} is not a known data type")),
        }
    }

    /// The number on the wire.
    pub fn number(self) -> i32 {
        self.dtype.number() + if self.is_ref { REF_OFFSET } else { 0 }
    }

    /// Whether a tensor of type `self` may feed an input of type `expected` (a ref may feed a value).
    pub fn feeds(self, expected: PortType) -> bool {
        self.dtype == expected.dtype && (self.is_ref || !expected.is_ref)
    }
}

impl From<DType> for PortType {
    fn from(dtype: DType) -> PortType {
        PortType {
            dtype,
            is_ref: false,
        }
    }
}

impl fmt::Display for PortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, if self.is_ref { "_ref" } else { "" })
    }
}

impl fmt::Debug for PortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_wire_order() {
        for (index, (dtype, name, _)) in TABLE.iter().enumerate() {
            assert_eq!(dtype.number() as usize, index + 1);
            assert_eq!(DType::from_number(index as i32 + 1), Some(*dtype));
            assert_eq!(DType::from_name(name), Some(*dtype));
        }
        assert_eq!(DType::from_number(0), None);
        assert_eq!(DType::from_number(34), None);
        assert_eq!(DType::from_name("DT_FLOAT"), Some(DType::F32));
        assert_eq!(DType::from_name("float16"), Some(DType::F16));
    }

    #[test]
    fn ref_types_are_a_hundred_higher() {
        let reference = PortType::from_number(101).unwrap();
        assert_eq!(reference, PortType::reference(DType::F32));
        assert_eq!(reference.number(), 101);
        assert_eq!(reference.to_string(), "float_ref");
        assert!(PortType::from_number(100).is_err());
        assert!(PortType::from_number(134).is_err());
        assert!(reference.feeds(DType::F32.into()));
        assert!(!PortType::from(DType::F32).feeds(reference));
    }
}
