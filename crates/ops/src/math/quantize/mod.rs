//! Floats as they are after being stored in a few bits.

pub(crate) mod fake;
pub(crate) mod stored;
pub(crate) mod there_and_back;

use std::ops::Range;

use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::Tensor;

/// A tensor as `outer` times `count` channels of `inner` elements.
struct Channels {
    outer: usize,
    count: usize,
    inner: usize,
    axis: i64,
}

impl Channels {
    fn of(tensor: &Tensor, axis: i64) -> Result<Channels> {
        ensure!(
            axis >= -1,
            invalid_argument,
            "Axis must be at least -1. Found {axis}"
        );
        if axis == -1 {
            return Ok(Channels {
                outer: 1,
                count: 1,
                inner: tensor.elements(),
                axis,
            });
        }
        let at = axis as usize;
        ensure!(
            at < tensor.rank(),
            invalid_argument,
            "Shape must be at least rank {} but is rank {}",
            axis.saturating_add(1),
            tensor.rank()
        );
        let product = |dims: &[i64]| dims.iter().map(|dim| *dim as usize).product();
        let dims = tensor.shape().dims();
        Ok(Channels {
            outer: product(&dims[..at]),
            count: tensor.shape().dim(at),
            inner: product(&dims[at + 1..]),
            axis,
        })
    }

    /// Where the elements of a channel are.
    fn runs(&self, channel: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (count, inner) = (self.count, self.inner);
        (0..self.outer).map(move |outer| {
            let begin = (outer * count + channel) * inner;
            begin..begin + inner
        })
    }
}

/// Between bounds that may be in the wrong order.
#[inline(always)]
fn clamp(x: f32, min: f32, max: f32) -> f32 {
    let x = if x > max { max } else { x };
    if x < min { min } else { x }
}
