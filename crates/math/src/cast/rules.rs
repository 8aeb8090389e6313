//! Conversions of single values where Rust's `as` is not what TensorFlow does.

/// Float to integer.
pub(super) trait ToInt<D> {
    fn to_int(self) -> D;
}

macro_rules! to_int {
    ($($f:ty),*) => {$(
        impl ToInt<i32> for $f {
            #[inline(always)]
            fn to_int(self) -> i32 {
                // `as` saturates; the processor's conversion gives the lowest value for all that does not fit.
                if (-2_147_483_648.0..2_147_483_648.0).contains(&self) { self as i32 } else { i32::MIN }
            }
        }

        impl ToInt<i64> for $f {
            #[inline(always)]
            fn to_int(self) -> i64 {
                let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&self);
                if fits { self as i64 } else { i64::MIN }
            }
        }

        impl ToInt<u64> for $f {
            #[inline(always)]
            fn to_int(self) -> u64 {
                let high = (9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0).contains(&self);
                if high { self as u64 } else { ToInt::<i64>::to_int(self) as u64 }
            }
        }

        impl ToInt<u32> for $f {
            #[inline(always)]
            fn to_int(self) -> u32 {
                ToInt::<i64>::to_int(self) as u32
            }
        }

        to_int!(@small $f: i8, i16, u8, u16);
    )*};
    (@small $f:ty: $($d:ty),*) => {$(
        impl ToInt<$d> for $f {
            #[inline(always)]
            fn to_int(self) -> $d {
                ToInt::<i32>::to_int(self).clamp(<$d>::MIN as i32, <$d>::MAX as i32) as $d
            }
        }
    )*};
}

to_int!(f32, f64);

/// Drops the low bits that `bf16` has no room for, keeping NaN.
#[inline(always)]
pub(super) fn f32_bits_of_bf16(x: f32) -> f32 {
    let quiet = if x.is_nan() { 0x0040_0000 } else { 0 };
    f32::from_bits(x.to_bits() & 0xffff_0000 | quiet)
}

/// Drops the low bits that `f16` has no room for, keeping NaN.
#[inline(always)]
pub(super) fn f32_bits_of_f16(x: f32) -> f32 {
    if x.is_nan() {
        x
    } else {
        f32::from_bits(x.to_bits() & 0xffff_e000)
    }
}

/// Drops the low bits that `f32` has no room for, keeping NaN.
#[inline(always)]
pub(super) fn f64_bits_of_f32(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else {
        f64::from_bits(x.to_bits() & 0xffff_ffff_e000_0000)
    }
}

/// Drops the low bits that `f16` has no room for, keeping NaN.
#[inline(always)]
pub(super) fn f64_bits_of_f16(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else {
        f64::from_bits(x.to_bits() & 0xffff_fc00_0000_0000)
    }
}
