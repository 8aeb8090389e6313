//! [`Unary`] for integers and booleans.

use super::{Unary, UnaryElement};
use crate::num::Int;
use crate::num::isa::{Isa, Kernel1, Map1, kernel1, scalar1};

macro_rules! ops {
    ($($op:ident |$x:ident| $eval:expr;)*) => {$(
        struct $op;
        impl<T: Int> Map1<T> for $op {
            #[inline(always)]
            fn eval<I: Isa>($x: T) -> T { $eval }
        }
    )*};
}

ops! {
    Abs |x| x.abs();
    Invert |x| x.invert();
    Neg |x| x.neg();
    Relu |x| x.larger(T::ZERO);
    Relu6 |x| x.larger(T::ZERO).smaller(T::from_f64(6.0));
    Sign |x| x.signum();
    Square |x| x.mul(x);
}

fn table<T: Int>(op: Unary) -> Option<Kernel1<T>> {
    // 32 and 64 bits are common enough for a copy per instruction set.
    macro_rules! pick {
        ($op:ident) => {
            Some(if const { T::BITS >= 32 } {
                kernel1::<T, T, $op>()
            } else {
                scalar1::<T, T, $op>()
            })
        };
    }
    match op {
        Unary::Abs => pick!(Abs),
        Unary::Invert => pick!(Invert),
        Unary::Neg => pick!(Neg),
        Unary::Relu => pick!(Relu),
        Unary::Relu6 => pick!(Relu6),
        Unary::Round => Some(<[T]>::copy_to),
        Unary::Sign => pick!(Sign),
        Unary::Square => pick!(Square),
        _ => None,
    }
}

trait CopyTo<T> {
    fn copy_to(&self, out: &mut [T]);
}

impl<T: Copy> CopyTo<T> for [T] {
    fn copy_to(&self, out: &mut [T]) {
        out.copy_from_slice(self);
    }
}

macro_rules! int {
    ($($t:ty),*) => {$(
        impl UnaryElement for $t {
            fn supports(op: Unary) -> bool {
                table::<$t>(op).is_some()
            }

            fn run(op: Unary, x: &[Self], out: &mut [Self]) {
                if let Some(kernel) = table::<$t>(op) {
                    kernel(x, out);
                }
            }
        }
    )*};
}

int!(i8, i16, i32, i64, u8, u16, u32, u64);

impl UnaryElement for bool {
    fn supports(op: Unary) -> bool {
        op == Unary::LogicalNot
    }

    fn run(_: Unary, x: &[Self], out: &mut [Self]) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = !x;
        }
    }
}
