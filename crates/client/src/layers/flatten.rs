//! Flattening.

use crate::ops;
use crate::output::{Operand, Output};

/// All axes behind the first as one: images as vectors of features.
///
/// ```
/// use tensorfleet_client::{DType, Graph, layers};
///
/// let g = Graph::new();
/// let images = g.placeholder(DType::F32, &[-1, 4, 4, 8]);
/// assert_eq!(layers::flatten(&images).shape().dims(), Some(&[-1, 128][..]));
/// ```
#[track_caller]
pub fn flatten(input: impl Operand) -> Output {
    let input = input.to_output();
    let g = input.graph();
    let _scope = g.name_scope("flatten");
    let shape = input.shape();
    match shape.dims() {
        Some([_, rest @ ..]) if rest.iter().all(|dim| *dim >= 0) => {
            input.reshape(&[-1, rest.iter().product()])
        }
        _ => {
            let parts = [input.shape_tensor().slice(&[0], &[1]), g.constant([-1i32])];
            let dims = ops::concat_v2(&parts, g.constant(0i32)).output();
            let output = ops::reshape(&input, dims).output();
            output.set_shape(&[shape.dim(0).unwrap_or(-1), -1]);
            output
        }
    }
}
