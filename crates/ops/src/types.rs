//! Lists of dtypes for kernel tables, and macros that pick the Rust type of a dtype.

use tensorfleet_tensor::DType;

/// Several lists of dtypes as one: `dtypes![FLOATS, &[DType::Bool]]`.
macro_rules! dtypes {
    ($($list:expr),+ $(,)?) => {{
        const COUNT: usize = 0 $(+ $list.len())+;
        const ALL: [DType; COUNT] = $crate::types::join(&[$($list),+]);
        &ALL
    }};
}
pub(crate) use dtypes;

/// What [`dtypes!`] stands for; `COUNT` is the sum of the lengths.
pub(crate) const fn join<const COUNT: usize>(lists: &[&[DType]]) -> [DType; COUNT] {
    let mut all = [DType::F32; COUNT];
    let (mut list, mut done) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            all[done] = lists[list][at];
            done += 1;
            at += 1;
        }
        list += 1;
    }
    all
}

/// half, bfloat16, float, double.
pub const FLOATS: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64];

/// int8 to int64.
pub const SIGNED: &[DType] = &[DType::I8, DType::I16, DType::I32, DType::I64];

/// uint8 to uint64.
pub const UNSIGNED: &[DType] = &[DType::U8, DType::U16, DType::U32, DType::U64];

/// int8 to int64, uint8 to uint64.
pub const INTEGERS: &[DType] = dtypes![SIGNED, UNSIGNED];

/// complex64, complex128.
pub const COMPLEX: &[DType] = &[DType::C64, DType::C128];

/// Floats and integers.
pub const REAL_NUMBERS: &[DType] = dtypes![FLOATS, INTEGERS];

/// Floats, integers and complex numbers.
pub const NUMBERS: &[DType] = dtypes![REAL_NUMBERS, COMPLEX];

/// Numbers and bool: what takes a fixed number of bytes, but for the quantized types.
pub const PLAIN: &[DType] = dtypes![NUMBERS, &[DType::Bool]];

/// Numbers, bool and string.
pub const VALUES: &[DType] = dtypes![PLAIN, &[DType::String]];

/// The quantized types.
pub const QUANTIZED: &[DType] = &[
    DType::QI8,
    DType::QU8,
    DType::QI32,
    DType::QI16,
    DType::QU16,
];

/// The floats of eight bits that have kernels.
pub const FLOATS8: &[DType] = &[DType::F8E5M2, DType::F8E4M3Fn];

/// The integers of four bits, each in a byte of its own.
pub const INTEGERS4: &[DType] = &[DType::I4, DType::U4];

/// Everything that only data movement can handle as well: [`VALUES`], resource, variant, and the
/// quantized, eight-bit float and four-bit integer types as storage.
pub const MOVABLE: &[DType] = dtypes![
    VALUES,
    &[DType::Resource, DType::Variant],
    QUANTIZED,
    FLOATS8,
    INTEGERS4,
];

/// Floats and complex numbers.
pub const FLOATS_AND_COMPLEX: &[DType] = dtypes![FLOATS, COMPLEX];

/// Floats, int8 to int64 and complex numbers: what has a sign.
pub const SIGNED_NUMBERS: &[DType] = dtypes![FLOATS, SIGNED, COMPLEX];

/// float, double.
pub const SINGLE_AND_DOUBLE: &[DType] = &[DType::F32, DType::F64];

/// int32, int64.
pub const INDEX: &[DType] = &[DType::I32, DType::I64];

/// Runs the body with a type alias for a float dtype; `else` is for all others:
/// `by_float!(dtype, T => run::<T>(ctx), else => Err(...))`.
#[macro_export]
macro_rules! by_float {
    ($dtype:expr, $t:ident => $body:expr, else => $other:expr) => {
        match $dtype {
            tensorfleet_tensor::DType::F32 => {
                type $t = f32;
                $body
            }
            tensorfleet_tensor::DType::F64 => {
                type $t = f64;
                $body
            }
            tensorfleet_tensor::DType::F16 => {
                type $t = tensorfleet_tensor::f16;
                $body
            }
            tensorfleet_tensor::DType::BF16 => {
                type $t = tensorfleet_tensor::bf16;
                $body
            }
            _ => $other,
        }
    };
}

/// Like [`by_float!`] for the integers.
#[macro_export]
macro_rules! by_integer {
    ($dtype:expr, $t:ident => $body:expr, else => $other:expr) => {
        match $dtype {
            tensorfleet_tensor::DType::I8 => {
                type $t = i8;
                $body
            }
            tensorfleet_tensor::DType::I16 => {
                type $t = i16;
                $body
            }
            tensorfleet_tensor::DType::I32 => {
                type $t = i32;
                $body
            }
            tensorfleet_tensor::DType::I64 => {
                type $t = i64;
                $body
            }
            tensorfleet_tensor::DType::U8 => {
                type $t = u8;
                $body
            }
            tensorfleet_tensor::DType::U16 => {
                type $t = u16;
                $body
            }
            tensorfleet_tensor::DType::U32 => {
                type $t = u32;
                $body
            }
            tensorfleet_tensor::DType::U64 => {
                type $t = u64;
                $body
            }
            _ => $other,
        }
    };
}

/// Like [`by_float!`] for the complex numbers.
#[macro_export]
macro_rules! by_complex {
    ($dtype:expr, $t:ident => $body:expr, else => $other:expr) => {
        match $dtype {
            tensorfleet_tensor::DType::C64 => {
                type $t = tensorfleet_tensor::Complex32;
                $body
            }
            tensorfleet_tensor::DType::C128 => {
                type $t = tensorfleet_tensor::Complex64;
                $body
            }
            _ => $other,
        }
    };
}

/// Like [`by_float!`] for floats and integers.
#[macro_export]
macro_rules! by_real {
    ($dtype:expr, $t:ident => $body:expr, else => $other:expr) => {
        $crate::by_float!($dtype, $t => $body, else => $crate::by_integer!($dtype, $t => $body, else => $other))
    };
}

/// Like [`by_float!`] for the types that `comparable` converts to: enough for what only depends on the order of numbers.
#[macro_export]
macro_rules! by_order {
    ($dtype:expr, $t:ident => $body:expr, else => $other:expr) => {
        match $dtype {
            tensorfleet_tensor::DType::F32 => {
                type $t = f32;
                $body
            }
            tensorfleet_tensor::DType::F64 => {
                type $t = f64;
                $body
            }
            tensorfleet_tensor::DType::I32 => {
                type $t = i32;
                $body
            }
            tensorfleet_tensor::DType::I64 => {
                type $t = i64;
                $body
            }
            tensorfleet_tensor::DType::U64 => {
                type $t = u64;
                $body
            }
            _ => $other,
        }
    };
}

/// Like [`by_float!`] for floats, integers and complex numbers.
#[macro_export]
macro_rules! by_number {
    ($dtype:expr, $t:ident => $body:expr, else => $other:expr) => {
        $crate::by_real!($dtype, $t => $body, else => $crate::by_complex!($dtype, $t => $body, else => $other))
    };
}
