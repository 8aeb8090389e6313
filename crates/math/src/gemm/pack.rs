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
    for (p, to) in to.chunks_exact_mut(width).take(depth).enumerate() {
        let (to, pad) = to.split_at_mut(used);
        if lines {
            for (i, to) in to.iter_mut().enumerate() {
                *to = from[i * stride + p];
            }
        } else {
            copy(&from[p * stride..][..used], to);
        }
        pad.fill(T::ZERO);
    }
}

/// A copy that is a few vector moves for the usual widths.
#[inline]
fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    fn fixed<T: Copy, const N: usize>(from: &[T], to: &mut [T]) -> bool {
        match (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
            (Some(from), Some(to)) => {
                *to = *from;
                true
            }
            _ => false,
        }
    }
    let done = match from.len() {
        4 => fixed::<T, 4>(from, to),
        5 => fixed::<T, 5>(from, to),
        6 => fixed::<T, 6>(from, to),
        8 => fixed::<T, 8>(from, to),
        14 => fixed::<T, 14>(from, to),
        16 => fixed::<T, 16>(from, to),
        32 => fixed::<T, 32>(from, to),
        _ => false,
    };
    if !done {
        to.copy_from_slice(from);
    }
}
