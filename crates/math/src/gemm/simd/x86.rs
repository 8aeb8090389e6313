//! AVX2+FMA and AVX-512 instantiations.
//!
//! 6 rows by 2 vectors fill 12 of AVX2's 16 registers; 14 by 2 fill 28 of AVX-512's 32. The rest hold the right-hand vectors and
//! one broadcast.

use super::tile::kernels;

macro_rules! vector_ops {
    ($module:ident, $t:ty, $v:ident, $lanes:literal, $feature:literal,
     $zero:ident, $splat:ident, $load:ident, $store:ident, $fma:ident, $mul:ident, $add:ident, $pack:ident) => {
        mod $module {
            use std::arch::x86_64::{$add, $fma, $load, $mul, $splat, $store, $zero};

            pub(super) type T = $t;
            pub(super) type V = std::arch::x86_64::$v;
            pub(super) const LANES: usize = $lanes;
            pub(super) use crate::gemm::simd::pack_x86::$pack as pack;

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn zero() -> V {
                $zero()
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn splat(x: T) -> V {
                $splat(x)
            }

            /// # Safety
            /// `LANES` elements are readable at `p`.
            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn load(p: *const T) -> V {
                // SAFETY: the caller's contract; the load has no alignment.
                unsafe { $load(p) }
            }

            /// # Safety
            /// `LANES` elements are writable at `p`.
            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn store(p: *mut T, v: V) {
                // SAFETY: the caller's contract; the store has no alignment.
                unsafe { $store(p, v) };
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn fma(x: V, y: V, z: V) -> V {
                $fma(x, y, z)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn mul(x: V, y: V) -> V {
                $mul(x, y)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn add(x: V, y: V) -> V {
                $add(x, y)
            }

            #[inline(always)]
            #[expect(
                clippy::pointers_in_nomem_asm_block,
                reason = "the pointer is passed through, not followed"
            )]
            pub(super) fn opaque(mut p: *const T) -> *const T {
                // SAFETY: no instruction at all.
                unsafe {
                    std::arch::asm!("/* {p} */", p = inout(reg) p, options(pure, nomem, nostack, preserves_flags));
                }
                p
            }

            #[inline(always)]
            pub(super) fn prefetch(p: *const T) {
                // SAFETY: a prefetch reads nothing the program can see and may point anywhere.
                unsafe { std::arch::x86_64::_mm_prefetch::<3>(p.cast()) };
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn sum(x: V) -> T {
                let mut lanes = [0.0; LANES];
                // SAFETY: `lanes` has `LANES` elements.
                unsafe { $store(lanes.as_mut_ptr(), x) };
                lanes.iter().sum()
            }
        }
    };
}

vector_ops!(
    f32x8,
    f32,
    __m256,
    8,
    "avx2,fma",
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    _mm256_mul_ps,
    _mm256_add_ps,
    pack_f32
);
vector_ops!(
    f64x4,
    f64,
    __m256d,
    4,
    "avx2,fma",
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_mul_pd,
    _mm256_add_pd,
    pack_f64
);
vector_ops!(
    f32x16,
    f32,
    __m512,
    16,
    "avx512f",
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_mul_ps,
    _mm512_add_ps,
    pack_f32
);
vector_ops!(
    f64x8,
    f64,
    __m512d,
    8,
    "avx512f",
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_mul_pd,
    _mm512_add_pd,
    pack_f64
);

kernels!(
    AVX2_F32,
    avx2_f32,
    super::f32x8,
    [target_feature(enable = "avx2,fma")],
    [1, 2, 3, 4, 5, 6]
);
kernels!(
    AVX2_F64,
    avx2_f64,
    super::f64x4,
    [target_feature(enable = "avx2,fma")],
    [1, 2, 3, 4, 5, 6]
);
kernels!(
    AVX512_F32,
    avx512_f32,
    super::f32x16,
    [target_feature(enable = "avx512f")],
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
);
kernels!(
    AVX512_F64,
    avx512_f64,
    super::f64x8,
    [target_feature(enable = "avx512f")],
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
);
