//! Arithmetic, comparisons, reductions, matrix products, segments.

pub(crate) mod add_n;
mod binary;
mod bucketize;
pub(crate) mod calculus;
pub(crate) mod cast;
mod cast_stored;
mod check_numerics;
mod clip_by_value;
mod compare;
mod complex;
mod cross;
pub(crate) mod elementwise;
mod histogram;
mod isotonic;
mod lin_space;
mod logical;
pub(crate) mod matmul;
mod quantize;
mod reduce;
mod segment;
pub(crate) mod special;
pub(crate) mod unary;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "math",
    ops: &[
        &binary::next_after::OP,
        &bucketize::OP,
        &cast::OP,
        &clip_by_value::OP,
        &cross::OP,
        &histogram::OP,
        &isotonic::OP,
        &lin_space::OP,
        &matmul::einsum::OP,
        &matmul::fused::OP,
        &matmul::fused_batch::OP,
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
        &quantize::fake::OPS,
        &quantize::stored::OPS,
        &quantize::there_and_back::OPS,
        &reduce::arg::OPS,
        &reduce::logical::OPS,
        &reduce::numeric::OPS,
        &reduce::scan::OPS,
        &segment::sorted::OPS,
        &segment::sparse::OPS,
        &segment::sparse_grad::OPS,
        &segment::unsorted::OPS,
        &special::OPS,
        &unary::basic::OPS,
        &unary::bessel::OPS,
        &unary::exponential::OPS,
        &unary::hyperbolic::OPS,
        &unary::integrals::OPS,
        &unary::predicate::OPS,
        &unary::special::OPS,
        &unary::trigonometric::OPS,
    ],
};
