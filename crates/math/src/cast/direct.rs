//! Loops of their own for the pairs that programs use most, and copies.

use num_complex::Complex;

use super::rules::ToInt;
use super::{Slice, SliceMut};
use crate::num::convert::HalfOrSingle;
use crate::num::isa::{Isa, Kernel1, Map1, kernel1};
#[cfg(target_arch = "x86_64")]
use crate::num::isa::{Level, level};

/// Converts if the pair is one of the common ones; says whether it was.
pub(super) fn run(x: Slice<'_>, out: &mut SliceMut<'_>, truncate: bool) -> bool {
    /// One arm per pair: a copy, or the loop of a lane type.
    macro_rules! pairs {
        ($($from:ident $to:ident $how:expr;)*) => {
            match (x, out) {
                $((Slice::$from(x), SliceMut::$to(out)) => $how(x, out),)*
                // Halves round; truncation goes by the slow way.
                (Slice::F32(x), SliceMut::F16(out)) if !truncate => HalfOrSingle::narrow(x, out),
                (Slice::F32(x), SliceMut::BF16(out)) if !truncate => HalfOrSingle::narrow(x, out),
                (Slice::F64(x), SliceMut::F32(out)) if !truncate => kernel1::<f64, f32, As>()(x, out),
                _ => return false,
            }
        };
    }
    pairs! {
        Bool Bool copy;
        I8 I8 copy;
        I16 I16 copy;
        I32 I32 copy;
        I64 I64 copy;
        U8 U8 copy;
        U16 U16 copy;
        U32 U32 copy;
        U64 U64 copy;
        F16 F16 copy;
        BF16 BF16 copy;
        F32 F32 copy;
        F64 F64 copy;
        C64 C64 copy;
        C128 C128 copy;
        C64 C128 kernel1::<Complex<f32>, Complex<f64>, As>();
        C128 C64 kernel1::<Complex<f64>, Complex<f32>, As>();
        F16 F32 HalfOrSingle::widen;
        BF16 F32 HalfOrSingle::widen;
        Bool F32 kernel1::<bool, f32, As>();
        U8 F32 kernel1::<u8, f32, As>();
        I32 F32 kernel1::<i32, f32, As>();
        I64 F32 kernel1::<i64, f32, As>();
        F64 I32 kernel1::<f64, i32, As>();
        F32 I32 f32_to_i32();
        F32 I64 f32_to_i64();
        F32 U8 f32_to_u8();
        F32 F64 kernel1::<f32, f64, As>();
        F32 Bool kernel1::<f32, bool, As>();
        I32 F64 kernel1::<i32, f64, As>();
        I32 I64 kernel1::<i32, i64, As>();
        I64 I32 kernel1::<i64, i32, As>();
        Bool I32 kernel1::<bool, i32, As>();
        Bool I64 kernel1::<bool, i64, As>();
        I32 Bool kernel1::<i32, bool, As>();
    }
    true
}

fn copy<T: Copy>(x: &[T], out: &mut [T]) {
    out.copy_from_slice(x);
}

/// The processor's conversions do what [`ToInt`] spells out, which the compiler does not see.
fn f32_to_i32() -> Kernel1<f32, i32> {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the level says that this machine has AVX2.
        return |x, out| unsafe { super::avx2::to_i32(x, out) };
    }
    kernel1::<f32, i32, As>()
}

fn f32_to_i64() -> Kernel1<f32, i64> {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx512 {
        // SAFETY: the level says that this machine has AVX-512.
        return |x, out| unsafe { super::avx2::to_i64(x, out) };
    }
    kernel1::<f32, i64, As>()
}

fn f32_to_u8() -> Kernel1<f32, u8> {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: as above.
        return |x, out| unsafe { super::avx2::to_u8(x, out) };
    }
    kernel1::<f32, u8, As>()
}

struct As;

macro_rules! lanes {
    ($($from:ty, $to:ty, |$x:ident| $eval:expr;)*) => {$(
        impl Map1<$from, $to> for As {
            #[inline(always)]
            fn eval<I: Isa>($x: $from) -> $to {
                $eval
            }
        }
    )*};
}

lanes! {
    Complex<f32>, Complex<f64>, |x| Complex::new(x.re.into(), x.im.into());
    Complex<f64>, Complex<f32>, |x| Complex::new(x.re as f32, x.im as f32);
    bool, f32, |x| f32::from(u8::from(x));
    bool, i32, |x| i32::from(x);
    bool, i64, |x| i64::from(x);
    u8, f32, |x| f32::from(x);
    i32, f32, |x| x as f32;
    i32, f64, |x| f64::from(x);
    i32, i64, |x| i64::from(x);
    i32, bool, |x| x != 0;
    i64, f32, |x| x as f32;
    i64, i32, |x| x as i32;
    f32, i32, |x| x.to_int();
    f32, i64, |x| x.to_int();
    f32, u8, |x| x.to_int();
    f32, f64, |x| f64::from(x);
    f32, bool, |x| x != 0.0;
    f64, f32, |x| x as f32;
    f64, i32, |x| x.to_int();
}
