//! Run-time choice between a loop compiled for AVX2 with FMA and the same loop for any machine.
//!
//! A loop is written once as an `#[inline(always)]` function; [`vectorized!`] makes the function to call, which holds both
//! compilations. Results may differ between the two by fused multiply-adds where the body uses `mul_add`, nowhere else.

/// Makes `fn name(…)` that calls `body(…)` compiled for AVX2 and FMA where the machine has them, else compiled for the baseline.
///
/// `vectorized!(pub(crate) fn scale[T: Float][T](x: &mut [T], by: T) = scale_body);`
macro_rules! vectorized {
    (
        $(#[$attr:meta])* $vis:vis fn $name:ident $([$($bounds:tt)*] [$($generics:tt)*])?
        ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:path
    ) => {
        $(#[$attr])*
        #[inline]
        $vis fn $name $(<$($bounds)*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn fast $(<$($bounds)*>)? ($($arg: $ty),*) $(-> $ret)? {
                    $body($($arg),*)
                }
                if $crate::vectorize::has_avx2() {
                    // SAFETY: the machine has the features that `fast` is compiled for.
                    return unsafe { fast $(::<$($generics)*>)? ($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}

pub(crate) use vectorized;

/// Whether loops compiled for AVX2, FMA and F16C may run here.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}
