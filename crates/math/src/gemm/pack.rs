//! Panels: operands copied into the order in which register tiles read them.

use super::simd::{Kernels, Real};

/// Packs `used` lines of `depth` elements into a panel `width` wide, zeros behind: `to[p·width + i]`.
///
/// Lines lie `stride` apart and along the depth if `lines`, else side by side with the depth `stride` apart.
pub(crate) fn pack<T: Real>(
    kernels: &Kernels<T>,
    from: &[T],
    stride: usize,
    lines: bool,
    (used, width): (usize, usize),
    depth: usize,
    to: &mut [T],
) {
    if lines && used == width {
        assert!(
            (used - 1) * stride + depth <= from.len() && depth * width + kernels.lanes <= to.len()
        );
        // SAFETY: both lengths were checked just now; the kernels were chosen for this CPU.
        return unsafe { (kernels.pack)(from.as_ptr(), stride, width, depth, to.as_mut_ptr()) };
    }
    if used == width {
        assert!((depth - 1) * stride + used <= from.len() && depth * width <= to.len());
        // SAFETY: both lengths were checked just now; the kernels were chosen for this CPU.
        return unsafe { (kernels.copy)(from.as_ptr(), stride, width, depth, to.as_mut_ptr()) };
    }
    for (p, to) in to.chunks_exact_mut(width).take(depth).enumerate() {
        let (to, pad) = to.split_at_mut(used);
        if lines {
            for (i, to) in to.iter_mut().enumerate() {
                *to = from[i * stride + p];
            }
        } else {
            to.copy_from_slice(&from[p * stride..][..used]);
        }
        pad.fill(T::ZERO);
    }
}
