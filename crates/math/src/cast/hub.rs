//! Conversion by way of a wide type: any source loads into a block of `i32`, `i64`, `u64`, `f32` or `f64` without loss, and any
//! destination stores from it.

use num_complex::Complex;

use super::rules::{self, ToInt};
use super::{Slice, SliceMut};
use crate::num::convert::HalfOrSingle;

/// Elements per block.
pub(super) const BLOCK: usize = 512;

/// A block of the type that a source widens to.
pub(super) struct Hub {
    kind: Kind,
    len: usize,
    ints: [i32; BLOCK],
    longs: [i64; BLOCK],
    floats: [f32; BLOCK],
    doubles: [f64; BLOCK],
}

#[derive(Clone, Copy)]
enum Kind {
    Int,
    Long,
    /// As `Long`, but the sign bit counts up.
    Unsigned,
    Float,
    Double,
}

impl Hub {
    pub(super) fn for_source(x: Slice<'_>) -> Self {
        let kind = match x {
            Slice::Bool(_)
            | Slice::I8(_)
            | Slice::I16(_)
            | Slice::I32(_)
            | Slice::U8(_)
            | Slice::U16(_) => Kind::Int,
            Slice::I64(_) | Slice::U32(_) => Kind::Long,
            Slice::U64(_) => Kind::Unsigned,
            Slice::F16(_) | Slice::BF16(_) | Slice::F32(_) | Slice::C64(_) => Kind::Float,
            Slice::F64(_) | Slice::C128(_) => Kind::Double,
        };
        Self {
            kind,
            len: 0,
            ints: [0; BLOCK],
            longs: [0; BLOCK],
            floats: [0.0; BLOCK],
            doubles: [0.0; BLOCK],
        }
    }

    /// Widens at most [`BLOCK`] elements of the source's type.
    pub(super) fn load(&mut self, x: Slice<'_>) {
        self.len = x.len();
        match x {
            Slice::Bool(x) => map(x, &mut self.ints, i32::from),
            Slice::I8(x) => map(x, &mut self.ints, i32::from),
            Slice::I16(x) => map(x, &mut self.ints, i32::from),
            Slice::I32(x) => map(x, &mut self.ints, |x| x),
            Slice::U8(x) => map(x, &mut self.ints, i32::from),
            Slice::U16(x) => map(x, &mut self.ints, i32::from),
            Slice::U32(x) => map(x, &mut self.longs, i64::from),
            Slice::I64(x) => map(x, &mut self.longs, |x| x),
            Slice::U64(x) => map(x, &mut self.longs, |x| x as i64),
            Slice::F16(x) => HalfOrSingle::widen(x, &mut self.floats[..x.len()]),
            Slice::BF16(x) => HalfOrSingle::widen(x, &mut self.floats[..x.len()]),
            Slice::F32(x) => map(x, &mut self.floats, |x| x),
            Slice::F64(x) => map(x, &mut self.doubles, |x| x),
            Slice::C64(x) => map(x, &mut self.floats, |x| x.re),
            Slice::C128(x) => map(x, &mut self.doubles, |x| x.re),
        }
    }

    /// Narrows what was loaded to the destination's type.
    pub(super) fn store(&mut self, out: SliceMut<'_>, truncate: bool) {
        let n = self.len;
        match self.kind {
            Kind::Int => store_int(&self.ints[..n], &mut self.floats[..n], out),
            Kind::Long => {
                map(&self.longs[..n], &mut self.floats, |x| x as f32);
                store_long(&self.longs[..n], &self.floats[..n], |x| x as f64, out);
            }
            Kind::Unsigned => {
                map(&self.longs[..n], &mut self.floats, |x| x as u64 as f32);
                store_long(
                    &self.longs[..n],
                    &self.floats[..n],
                    |x| x as u64 as f64,
                    out,
                );
            }
            Kind::Float => store_float(&mut self.floats[..n], out, truncate),
            Kind::Double => {
                store_double(&mut self.doubles[..n], &mut self.floats[..n], out, truncate)
            }
        }
    }
}

fn map<S: Copy, D>(x: &[S], out: &mut [D], f: impl Fn(S) -> D) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = f(x);
    }
}

fn store_int(x: &[i32], floats: &mut [f32], out: SliceMut<'_>) {
    match out {
        SliceMut::Bool(out) => map(x, out, |x| x != 0),
        SliceMut::I8(out) => map(x, out, |x| x as i8),
        SliceMut::I16(out) => map(x, out, |x| x as i16),
        SliceMut::I32(out) => map(x, out, |x| x),
        SliceMut::I64(out) => map(x, out, i64::from),
        SliceMut::U8(out) => map(x, out, |x| x as u8),
        SliceMut::U16(out) => map(x, out, |x| x as u16),
        SliceMut::U32(out) => map(x, out, |x| x as u32),
        SliceMut::U64(out) => map(x, out, |x| x as u64),
        SliceMut::F64(out) => map(x, out, f64::from),
        SliceMut::C128(out) => map(x, out, |x| f64::from(x).into()),
        out => {
            map(x, floats, |x| x as f32);
            store_rounded(floats, out);
        }
    }
}

/// Stores 64-bit integers, of which `floats` holds the values as `f32` already.
fn store_long(x: &[i64], floats: &[f32], double: impl Fn(i64) -> f64, out: SliceMut<'_>) {
    match out {
        SliceMut::Bool(out) => map(x, out, |x| x != 0),
        SliceMut::I8(out) => map(x, out, |x| x as i8),
        SliceMut::I16(out) => map(x, out, |x| x as i16),
        SliceMut::I32(out) => map(x, out, |x| x as i32),
        SliceMut::I64(out) => map(x, out, |x| x),
        SliceMut::U8(out) => map(x, out, |x| x as u8),
        SliceMut::U16(out) => map(x, out, |x| x as u16),
        SliceMut::U32(out) => map(x, out, |x| x as u32),
        SliceMut::U64(out) => map(x, out, |x| x as u64),
        SliceMut::F64(out) => map(x, out, double),
        SliceMut::C128(out) => map(x, out, |x| double(x).into()),
        out => store_rounded(floats, out),
    }
}

/// Stores to the float types that `f32` rounds to.
fn store_rounded(x: &[f32], out: SliceMut<'_>) {
    match out {
        SliceMut::F16(out) => HalfOrSingle::narrow(x, out),
        SliceMut::BF16(out) => HalfOrSingle::narrow(x, out),
        SliceMut::F32(out) => out.copy_from_slice(x),
        SliceMut::C64(out) => map(x, out, Complex::from),
        _ => unreachable!("other types are stored without rounding"),
    }
}

fn store_float(x: &mut [f32], out: SliceMut<'_>, truncate: bool) {
    if truncate {
        match out {
            SliceMut::F16(_) => x.iter_mut().for_each(|x| *x = rules::f32_bits_of_f16(*x)),
            SliceMut::BF16(_) => x.iter_mut().for_each(|x| *x = rules::f32_bits_of_bf16(*x)),
            _ => {}
        }
    }
    match out {
        SliceMut::Bool(out) => map(x, out, |x| x != 0.0),
        SliceMut::I8(out) => map(x, out, ToInt::to_int),
        SliceMut::I16(out) => map(x, out, ToInt::to_int),
        SliceMut::I32(out) => map(x, out, ToInt::to_int),
        SliceMut::I64(out) => map(x, out, ToInt::to_int),
        SliceMut::U8(out) => map(x, out, ToInt::to_int),
        SliceMut::U16(out) => map(x, out, ToInt::to_int),
        SliceMut::U32(out) => map(x, out, ToInt::to_int),
        SliceMut::U64(out) => map(x, out, ToInt::to_int),
        SliceMut::F64(out) => map(x, out, f64::from),
        SliceMut::C128(out) => map(x, out, |x| f64::from(x).into()),
        out => store_rounded(x, out),
    }
}

fn store_double(x: &mut [f64], floats: &mut [f32], out: SliceMut<'_>, truncate: bool) {
    if truncate {
        match out {
            SliceMut::F16(_) => x.iter_mut().for_each(|x| *x = rules::f64_bits_of_f16(*x)),
            SliceMut::F32(_) => x.iter_mut().for_each(|x| *x = rules::f64_bits_of_f32(*x)),
            _ => {}
        }
    }
    match out {
        SliceMut::Bool(out) => map(x, out, |x| x != 0.0),
        SliceMut::I8(out) => map(x, out, ToInt::to_int),
        SliceMut::I16(out) => map(x, out, ToInt::to_int),
        SliceMut::I32(out) => map(x, out, ToInt::to_int),
        SliceMut::I64(out) => map(x, out, ToInt::to_int),
        SliceMut::U8(out) => map(x, out, ToInt::to_int),
        SliceMut::U16(out) => map(x, out, ToInt::to_int),
        SliceMut::U32(out) => map(x, out, ToInt::to_int),
        SliceMut::U64(out) => map(x, out, ToInt::to_int),
        SliceMut::F64(out) => out.copy_from_slice(x),
        SliceMut::C128(out) => map(x, out, Complex::from),
        out => {
            map(x, floats, |x| x as f32);
            store_rounded(floats, out);
        }
    }
}
