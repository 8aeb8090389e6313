//! Elementwise functions of one input, in tables by kind.

pub(crate) mod basic;
pub(crate) mod bessel;
pub(crate) mod composition;
pub(crate) mod exponential;
pub(crate) mod hyperbolic;
pub(crate) mod integrals;
pub(crate) mod predicate;
pub(crate) mod special;
pub(crate) mod trigonometric;

use tensorfleet_graph::example::{Data, Lit};
use tensorfleet_graph::{OpDef, infer};

/// `op(x: T) -> y: T`.
pub(crate) const UNARY: OpDef = OpDef {
    inputs: &["x: T"],
    outputs: &["y: T"],
    infer: infer::same_as_first,
    ..OpDef::BLANK
};

pub(crate) const FLOAT: &[&str] = &["T: {bfloat16, half, float, double}"];
pub(crate) const FLOAT_OR_COMPLEX: &[&str] =
    &["T: {bfloat16, half, float, double, complex64, complex128}"];
pub(crate) const SIGNED_NUMBER: &[&str] =
    &["T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"];
pub(crate) const INTEGER: &[&str] =
    &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"];

/// Complex numbers of every complex dtype the argument takes.
pub(crate) const fn complex(dims: &'static [i64], values: &'static [(f64, f64)]) -> Lit {
    Lit {
        dtype: None,
        dims,
        data: Data::C(values),
    }
}
