//! Arithmetic, comparisons, reductions, matrix products, segments.

pub(crate) mod add_n;
mod binary;
mod calculus;
mod check_numerics;
mod compare;
mod complex;
pub(crate) mod elementwise;
mod logical;
mod matmul;
mod reduce;
mod segment;
mod unary;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "math",
    ops: &[
        &binary::next_after::OP,
        &matmul::einsum::OP,
        &matmul::fused::OP,
        &matmul::single::OP,
        &unary::composition::OP,
    ],
    tables: &[
        &add_n::OPS,
        &binary::arithmetic::OPS,
        &binary::bitwise::OPS,
        &binary::division::OPS,
        &binary::gradients::OPS,
        &binary::power::OPS,
        &check_numerics::OPS,
        &compare::OPS,
        &complex::OPS,
        &logical::OPS,
        &matmul::batch::OPS,
        &reduce::arg::OPS,
        &reduce::logical::OPS,
        &reduce::numeric::OPS,
        &reduce::scan::OPS,
        &segment::sorted::OPS,
        &segment::sparse::OPS,
        &segment::sparse_grad::OPS,
        &segment::unsorted::OPS,
        &unary::basic::OPS,
        &unary::exponential::OPS,
        &unary::hyperbolic::OPS,
        &unary::predicate::OPS,
        &unary::special::OPS,
        &unary::trigonometric::OPS,
    ],
};
