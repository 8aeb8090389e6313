//! [`Element`]: which Rust type an element of a dtype is; [`Word`]: elements seen as opaque words of a size.
//!
//! Arithmetic kernels are generic over `Element`; kernels that only move data are generic over
//! `Word`, so that one instance serves every dtype of the same size (see [`by_word!`](crate::by_word)).

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::dtype::DType;
use crate::resource::ResourceHandle;
use crate::storage::Storage;
use crate::tstring::TString;
use crate::variant::Variant;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that holds one element of a tensor.
pub trait Element: Clone + Send + Sync + Default + 'static + sealed::Sealed {
    /// The dtype whose elements are of this type.
    const DTYPE: DType;
    #[doc(hidden)]
    fn view(storage: &Storage) -> Option<&[Self]>;
    #[doc(hidden)]
    fn view_mut(storage: &mut Storage) -> Option<&mut [Self]>;
    #[doc(hidden)]
    fn store(values: Vec<Self>) -> Storage;
    #[doc(hidden)]
    fn store_slice(values: &[Self]) -> Storage {
        Self::store(values.to_vec())
    }
}

/// A type that data-moving kernels copy around: every element of a dtype of the same width is one `Word`.
pub trait Word: Clone + Send + Sync + Default + 'static + sealed::Sealed {
    #[doc(hidden)]
    fn holds(dtype: DType) -> bool;
    #[doc(hidden)]
    fn words(storage: &Storage) -> Option<&[Self]>;
    #[doc(hidden)]
    fn words_mut(storage: &mut Storage) -> Option<&mut [Self]>;
}

macro_rules! plain_elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn view(storage: &Storage) -> Option<&[$rust]> {
                bytemuck::try_cast_slice(storage.plain()?).ok()
            }
            fn view_mut(storage: &mut Storage) -> Option<&mut [$rust]> {
                bytemuck::try_cast_slice_mut(storage.plain_mut()?).ok()
            }
            fn store(values: Vec<$rust>) -> Storage {
                Storage::from_plain(bytemuck::cast_slice(&values))
            }
            #[inline]
            fn store_slice(values: &[$rust]) -> Storage {
                Storage::from_plain(bytemuck::cast_slice(values))
            }
        }
    )*};
}

plain_elements! {
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    Complex32 => C64, Complex64 => C128,
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    #[inline]
    fn view(storage: &Storage) -> Option<&[bool]> {
        storage.bools()
    }
    fn view_mut(storage: &mut Storage) -> Option<&mut [bool]> {
        storage.bools_mut()
    }
    fn store(values: Vec<bool>) -> Storage {
        Self::store_slice(&values)
    }
    #[inline]
    fn store_slice(values: &[bool]) -> Storage {
        let mut storage = Storage::plain_given(values.len());
        for (byte, value) in storage.plain_mut().into_iter().flatten().zip(values) {
            *byte = u8::from(*value);
        }
        storage
    }
}

macro_rules! shared_elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            fn view(storage: &Storage) -> Option<&[$rust]> {
                match storage { Storage::$dtype(values) => Some(values), _ => None }
            }
            fn view_mut(storage: &mut Storage) -> Option<&mut [$rust]> {
                match storage { Storage::$dtype(values) => Some(std::sync::Arc::make_mut(values).as_mut_slice()), _ => None }
            }
            fn store(values: Vec<$rust>) -> Storage {
                Storage::$dtype(std::sync::Arc::new(values))
            }
        }
        impl Word for $rust {
            fn holds(dtype: DType) -> bool { dtype == DType::$dtype }
            fn words(storage: &Storage) -> Option<&[$rust]> { <$rust as Element>::view(storage) }
            fn words_mut(storage: &mut Storage) -> Option<&mut [$rust]> { <$rust as Element>::view_mut(storage) }
        }
    )*};
}

shared_elements! { TString => String, ResourceHandle => Resource, Variant => Variant }

impl Word for bool {
    fn holds(dtype: DType) -> bool {
        dtype == DType::Bool
    }
    fn words(storage: &Storage) -> Option<&[bool]> {
        storage.bools()
    }
    fn words_mut(storage: &mut Storage) -> Option<&mut [bool]> {
        storage.bools_mut()
    }
}

macro_rules! plain_words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            // Bools stay apart: only `bool` words may write them, so that none ever holds a 2.
            fn holds(dtype: DType) -> bool {
                dtype != DType::Bool && dtype.size() == Some(size_of::<$word>())
            }
            fn words(storage: &Storage) -> Option<&[$word]> {
                bytemuck::try_cast_slice(storage.plain()?).ok()
            }
            fn words_mut(storage: &mut Storage) -> Option<&mut [$word]> {
                bytemuck::try_cast_slice_mut(storage.plain_mut()?).ok()
            }
        }
    )*};
}

plain_words!(u8, u16, u32, u64, u128);
impl sealed::Sealed for u128 {}

/// Runs the body with a type alias for the elements of a dtype that may not be written as bytes, as not all bytes are values:
/// `by_typed!(dtype, W => clone_rows::<W>(ctx), else plain => move_bytes(ctx, plain.size()))`.
#[macro_export]
macro_rules! by_typed {
    ($dtype:expr, $word:ident => $body:expr, else $plain:ident => $other:expr) => {
        match $dtype {
            $crate::DType::Bool => {
                type $word = bool;
                $body
            }
            $crate::DType::String => {
                type $word = $crate::TString;
                $body
            }
            $crate::DType::Resource => {
                type $word = $crate::ResourceHandle;
                $body
            }
            $crate::DType::Variant => {
                type $word = $crate::Variant;
                $body
            }
            $plain => $other,
        }
    };
}

/// Runs the body with a type alias for the [`Word`] of a dtype:
/// `by_word!(dtype, W => copy_rows::<W>(ctx))`. One instance per element size, not per dtype.
#[macro_export]
macro_rules! by_word {
    ($dtype:expr, $word:ident => $body:expr) => {
        $crate::by_typed!($dtype, $word => $body, else plain => match plain.size() {
            Some(1) => {
                type $word = u8;
                $body
            }
            Some(2) => {
                type $word = u16;
                $body
            }
            Some(4) => {
                type $word = u32;
                $body
            }
            Some(8) => {
                type $word = u64;
                $body
            }
            _ => {
                type $word = u128;
                $body
            }
        })
    };
}
