//! [`Binary`] for integers and booleans.

use super::remainder::of_integers;
use super::{Binary, BinaryElement, Fault};
use crate::num::Int;
use crate::num::isa::{Isa, Kernel2, Map2, kernel2, scalar2};

macro_rules! ops {
    ($($op:ident |$x:ident, $y:ident| $eval:expr;)*) => {$(
        struct $op;
        impl<T: Int> Map2<T> for $op {
            #[inline(always)]
            fn eval<I: Isa>($x: T, $y: T) -> T { $eval }
        }
    )*};
}

ops! {
    Add |x, y| x.add(y);
    BitwiseAnd |x, y| x.bit_and(y);
    BitwiseOr |x, y| x.bit_or(y);
    BitwiseXor |x, y| x.bit_xor(y);
    Div |x, y| x.div(y);
    FloorDiv |x, y| x.floor_div(y);
    FloorMod |x, y| x.floor_mod(y);
    LeftShift |x, y| x.shift_left(y);
    Maximum |x, y| x.larger(y);
    Minimum |x, y| x.smaller(y);
    Mul |x, y| x.mul(y);
    Pow |x, y| x.power(y);
    ReluGrad |dy, x| if x > T::ZERO { dy } else { T::ZERO };
    Relu6Grad |dy, x| if x > T::ZERO && x < T::from_f64(6.0) { dy } else { T::ZERO };
    RightShift |x, y| x.shift_right(y);
    SquaredDifference |x, y| x.sub(y).mul(x.sub(y));
    Sub |x, y| x.sub(y);
    TruncateMod |x, y| x.trunc_mod(y);
}

fn table<T: Int>(op: Binary) -> Option<Kernel2<T>> {
    // 32 and 64 bits are common enough for a copy per instruction set.
    macro_rules! pick {
        ($op:ident) => {
            if const { T::BITS >= 32 } {
                kernel2::<T, T, $op>()
            } else {
                scalar2::<T, T, $op>()
            }
        };
    }
    Some(match op {
        Binary::Add => pick!(Add),
        Binary::BitwiseAnd => scalar2::<T, T, BitwiseAnd>(),
        Binary::BitwiseOr => scalar2::<T, T, BitwiseOr>(),
        Binary::BitwiseXor => scalar2::<T, T, BitwiseXor>(),
        Binary::Div | Binary::TruncateDiv => scalar2::<T, T, Div>(),
        Binary::FloorDiv => scalar2::<T, T, FloorDiv>(),
        Binary::FloorMod => scalar2::<T, T, FloorMod>(),
        Binary::LeftShift => scalar2::<T, T, LeftShift>(),
        Binary::Maximum => pick!(Maximum),
        Binary::Minimum => pick!(Minimum),
        Binary::Mul => pick!(Mul),
        Binary::Pow => scalar2::<T, T, Pow>(),
        Binary::ReluGrad => scalar2::<T, T, ReluGrad>(),
        Binary::Relu6Grad => scalar2::<T, T, Relu6Grad>(),
        Binary::RightShift => scalar2::<T, T, RightShift>(),
        Binary::SquaredDifference => pick!(SquaredDifference),
        Binary::Sub => pick!(Sub),
        Binary::TruncateMod => scalar2::<T, T, TruncateMod>(),
        _ => return None,
    })
}

fn check<T: Int>(op: Binary, y: &[T]) -> Result<(), Fault> {
    use Binary::{Div, FloorDiv, FloorMod, Pow, TruncateDiv, TruncateMod};
    match op {
        Div | FloorDiv | FloorMod | TruncateDiv | TruncateMod if y.contains(&T::ZERO) => {
            Err(Fault::DivisionByZero)
        }
        Pow if T::SIGNED && y.iter().any(|&y| y < T::ZERO) => Err(Fault::NegativeExponent),
        _ => Ok(()),
    }
}

macro_rules! int {
    ($($t:ty: $own:path),*) => {$(
        impl BinaryElement for $t {
            fn supports(op: Binary) -> bool {
                table::<$t>(op).is_some()
            }

            fn check(op: Binary, y: &[Self]) -> Result<(), Fault> {
                check(op, y)
            }

            fn run(op: Binary, x: &[Self], y: &[Self], out: &mut [Self]) {
                if let Some(kernel) = $own(op).or_else(|| table::<$t>(op)) {
                    kernel(x, y, out);
                }
            }
        }
    )*};
}

int!(i8: none, i16: none, i32: of_integers, i64: none, u8: none, u16: none, u32: none, u64: none);

/// Loops of one type's own.
fn none<T>(_: Binary) -> Option<Kernel2<T>> {
    None
}

struct And;
impl Map2<bool> for And {
    #[inline(always)]
    fn eval<I: Isa>(x: bool, y: bool) -> bool {
        x & y
    }
}

struct Or;
impl Map2<bool> for Or {
    #[inline(always)]
    fn eval<I: Isa>(x: bool, y: bool) -> bool {
        x | y
    }
}

impl BinaryElement for bool {
    fn supports(op: Binary) -> bool {
        matches!(op, Binary::LogicalAnd | Binary::LogicalOr)
    }

    fn run(op: Binary, x: &[Self], y: &[Self], out: &mut [Self]) {
        match op {
            Binary::LogicalAnd => scalar2::<_, _, And>()(x, y, out),
            _ => scalar2::<_, _, Or>()(x, y, out),
        }
    }
}
