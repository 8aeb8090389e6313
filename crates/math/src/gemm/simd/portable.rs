//! The kernels on plain arrays: the scalar twin of the vector ones, and what machines without them run.

use super::tile::kernels;

macro_rules! array_ops {
    ($module:ident, $t:ty, $lanes:literal) => {
        mod $module {
            pub(super) type T = $t;
            pub(super) const LANES: usize = $lanes;
            pub(super) type V = [T; LANES];

            #[inline(always)]
            pub(super) fn zero() -> V {
                [0.0; LANES]
            }

            #[inline(always)]
            pub(super) fn splat(x: T) -> V {
                [x; LANES]
            }

            /// # Safety
            /// `LANES` elements are readable at `p`.
            #[inline(always)]
            pub(super) unsafe fn load(p: *const T) -> V {
                // SAFETY: the caller's contract; arrays of `T` need no more alignment than `T`.
                unsafe { *p.cast() }
            }

            /// # Safety
            /// `LANES` elements are writable at `p`.
            #[inline(always)]
            pub(super) unsafe fn store(p: *mut T, v: V) {
                // SAFETY: the caller's contract; arrays of `T` need no more alignment than `T`.
                unsafe { *p.cast() = v };
            }

            /// The first `n` elements, zeros behind.
            ///
            /// # Safety
            /// `n` elements, fewer than `LANES`, are readable at `p`.
            #[inline(always)]
            pub(super) unsafe fn load_first(p: *const T, n: usize) -> V {
                let mut v = zero();
                // SAFETY: the caller's contract.
                v[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(p, n) });
                v
            }

            /// # Safety
            /// `n` elements, fewer than `LANES`, are writable at `p`.
            #[inline(always)]
            pub(super) unsafe fn store_first(p: *mut T, v: V, n: usize) {
                // SAFETY: the caller's contract.
                unsafe { std::slice::from_raw_parts_mut(p, n) }.copy_from_slice(&v[..n]);
            }

            /// Two roundings: a fused one is a library call where the machine has none.
            #[inline(always)]
            pub(super) fn fma(x: V, y: V, z: V) -> V {
                std::array::from_fn(|i| x[i] * y[i] + z[i])
            }

            #[inline(always)]
            pub(super) fn mul(x: V, y: V) -> V {
                std::array::from_fn(|i| x[i] * y[i])
            }

            #[inline(always)]
            pub(super) fn add(x: V, y: V) -> V {
                std::array::from_fn(|i| x[i] + y[i])
            }

            #[inline(always)]
            pub(super) fn sum(x: V) -> T {
                x.iter().sum()
            }

            #[inline(always)]
            pub(super) fn opaque(p: *const T) -> *const T {
                p
            }

            #[inline(always)]
            pub(super) fn prefetch(_: *const T) {}

            /// # Safety
            /// See `PackFn`.
            pub(super) unsafe fn pack(
                src: *const T,
                stride: usize,
                width: usize,
                depth: usize,
                dst: *mut T,
            ) {
                for i in 0..width {
                    for p in 0..depth {
                        // SAFETY: the caller's contract.
                        let x = unsafe { *src.wrapping_add(i * stride + p) };
                        // SAFETY: the caller's contract.
                        unsafe { *dst.wrapping_add(p * width + i) = x };
                    }
                }
            }
        }
    };
}

array_ops!(f32x4, f32, 4);
array_ops!(f64x2, f64, 2);
kernels!(F32, f32_table, super::f32x4, [], [1, 2, 3, 4, 5, 6]);
kernels!(F64, f64_table, super::f64x2, [], [1, 2, 3, 4, 5, 6]);

// The shape of the AVX-512 tables, for machines that cannot run them.
#[cfg(test)]
array_ops!(f32x16, f32, 16);
#[cfg(test)]
kernels!(
    WIDE_F32,
    wide_f32_table,
    super::f32x16,
    [],
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
);
