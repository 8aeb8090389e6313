//! Matrix products: one, batches, with a fused ending, and sums over named indices.

pub(crate) mod batch;
pub(crate) mod einsum;
mod einsum_grad;
mod equation;
pub(crate) mod fused;
pub(crate) mod fused_batch;
pub(crate) mod single;

use tensorfleet_math::gemm::Dims;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::Shape;

/// The sizes of the product of two matrices, each perhaps transposed.
pub(crate) fn product_dims(a: &Shape, b: &Shape, transposed: [bool; 2]) -> Result<Dims> {
    if a.rank() != b.rank() {
        return Err(invalid_argument!(
            "In[0] and In[1] has different ndims: {a} vs. {b}"
        ));
    }
    if a.rank() != 2 {
        return Err(invalid_argument!(
            "In[0] and In[1] ndims must be == 2: {}",
            a.rank()
        ));
    }
    inner_dims(a, b, transposed)
}

/// The sizes of the product of the matrices in the last two dimensions.
pub(crate) fn inner_dims(a: &Shape, b: &Shape, transposed: [bool; 2]) -> Result<Dims> {
    let last = |shape: &Shape, back: usize| shape.dim(shape.rank().saturating_sub(back));
    let (m, k) = match transposed[0] {
        false => (last(a, 2), last(a, 1)),
        true => (last(a, 1), last(a, 2)),
    };
    let (inner, n) = match transposed[1] {
        false => (last(b, 2), last(b, 1)),
        true => (last(b, 1), last(b, 2)),
    };
    if k != inner {
        return Err(invalid_argument!(
            "Matrix size-incompatible: In[0]: {a}, In[1]: {b}"
        ));
    }
    Ok(Dims { m, n, k })
}
