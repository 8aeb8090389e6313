//! Which instruction set the running machine has, found once, and element loops compiled for each.
//!
//! A loop is written once over a zero-sized [`Map1`] or [`Map2`] whose `eval` is generic in an [`Isa`]; [`kernel1`] and
//! [`kernel2`] compile it for each level and pick the one this machine runs. Nothing here is hand-vectorised.

use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction-set level, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What the compilation target guarantees.
    Portable = 1,
    /// 256-bit vectors with fused multiply-add.
    Avx2 = 2,
    /// 512-bit vectors.
    Avx512 = 3,
}

/// The best level of the running machine; cached after the first call.
#[inline]
pub fn level() -> Level {
    static CACHED: AtomicU8 = AtomicU8::new(0);
    match CACHED.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => {
            let found = detect();
            CACHED.store(found as u8, Ordering::Relaxed);
            found
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

/// What lane functions may assume about the instruction set they are compiled for.
pub trait Isa: Copy + 'static {
    /// Whether `mul_add` is one instruction; without it, it would be a slow library call.
    const FMA: bool;
}

/// Target defaults only.
#[derive(Clone, Copy, Debug)]
pub struct Portable;
/// Fused multiply-add is there.
#[derive(Clone, Copy, Debug)]
pub struct Fused;

impl Isa for Portable {
    const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
}
impl Isa for Fused {
    const FMA: bool = true;
}

/// `a * b + c`, fused where that is cheap.
#[inline(always)]
pub(crate) fn fma<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `a * b + c` in double precision, fused where that is cheap.
#[inline(always)]
pub(crate) fn fma64<I: Isa>(a: f64, b: f64, c: f64) -> f64 {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Compiles an always-inlined loop body for each level and calls the right one.
///
/// `multiversion! { fn name<T: Bound>(args) -> ret = body; }` for an `#[inline(always)]` function `body::<T>`, or
/// `= body with isa;` for a `body::<T, I>` whose last parameter is the [`Isa`]; the caller gets a plain safe function.
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $name:ident $(<$($g:ident : $bound:path),*>)? ($($arg:ident : $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $body:ident with isa;) => {
        $crate::num::isa::multiversion! {
            @make ($(#[$doc])* $vis) $name [$($($g : $bound),*)?] ($($arg : $ty),*) [$($ret)?]
            $body [$crate::num::isa::Portable] [$crate::num::isa::Fused]
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident $(<$($g:ident : $bound:path),*>)? ($($arg:ident : $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $body:ident;) => {
        $crate::num::isa::multiversion! {
            @make ($(#[$doc])* $vis) $name [$($($g : $bound),*)?] ($($arg : $ty),*) [$($ret)?] $body [] []
        }
    };
    (@make ($($head:tt)*) $name:ident [$($g:ident : $bound:path),*] ($($arg:ident : $ty:ty),*) [$($ret:ty)?]
        $body:ident [$($portable:ty)?] [$($fused:ty)?]) => {
        $($head)* fn $name<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
                $body::<$($g,)* $($fused)?>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx512<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
                $body::<$($g,)* $($fused)?>($($arg),*)
            }
            match $crate::num::isa::level() {
                // SAFETY: the level says that this machine has the features.
                #[cfg(target_arch = "x86_64")]
                $crate::num::isa::Level::Avx512 => unsafe { avx512::<$($g),*>($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::num::isa::Level::Avx2 => unsafe { avx2::<$($g),*>($($arg),*) },
                _ => $body::<$($g,)* $($portable)?>($($arg),*),
            }
        }
    };
}
pub(crate) use multiversion;

/// A function of one lane.
pub(crate) trait Map1<T, O = T>: 'static {
    /// Whether `is_hard` can be true; loops then look once per block.
    const HAS_HARD: bool = false;
    fn eval<I: Isa>(x: T) -> O;
    /// Whether `eval` is not good for `x`, and `slow` is needed.
    #[inline(always)]
    fn is_hard(_x: T) -> bool {
        false
    }
    #[inline(always)]
    fn slow<I: Isa>(x: T) -> O {
        Self::eval::<I>(x)
    }
}

/// A function of two lanes.
pub(crate) trait Map2<T, O = T>: 'static {
    fn eval<I: Isa>(x: T, y: T) -> O;
}

/// An element loop over one input, as long as the shorter slice.
pub(crate) type Kernel1<T, O = T> = fn(&[T], &mut [O]);
/// An element loop over two inputs, as long as the shortest slice.
pub(crate) type Kernel2<T, O = T> = fn(&[T], &[T], &mut [O]);
/// An element loop that writes over its first input, as long as the shorter slice.
pub(crate) type Over2<T> = fn(&mut [T], &[T]);

// Indices compile much faster than zipped iterators, and there are hundreds of these loops.
#[inline(always)]
fn loop1<T: Copy, O: Copy, M: Map1<T, O>, I: Isa>(x: &[T], out: &mut [O]) {
    let n = x.len().min(out.len());
    let (mut x, mut out) = (&x[..n], &mut out[..n]);
    if const { !M::HAS_HARD } {
        for i in 0..n {
            out[i] = M::eval::<I>(x[i]);
        }
        return;
    }
    while !x.is_empty() {
        let n = x.len().min(256);
        let (head, tail) = x.split_at(n);
        let (to, rest) = out.split_at_mut(n);
        let mut hard = false;
        for i in 0..n {
            to[i] = M::eval::<I>(head[i]);
            hard |= M::is_hard(head[i]);
        }
        if hard {
            for i in 0..n {
                to[i] = if M::is_hard(head[i]) {
                    M::slow::<I>(head[i])
                } else {
                    to[i]
                };
            }
        }
        (x, out) = (tail, rest);
    }
}

#[inline(always)]
fn loop2<T: Copy, O: Copy, M: Map2<T, O>, I: Isa>(x: &[T], y: &[T], out: &mut [O]) {
    let n = x.len().min(y.len()).min(out.len());
    let (x, y, out) = (&x[..n], &y[..n], &mut out[..n]);
    for i in 0..n {
        out[i] = M::eval::<I>(x[i], y[i]);
    }
}

#[inline(always)]
fn over2<T: Copy, M: Map2<T>, I: Isa>(x: &mut [T], y: &[T]) {
    let n = x.len().min(y.len());
    let (x, y) = (&mut x[..n], &y[..n]);
    for i in 0..n {
        x[i] = M::eval::<I>(x[i], y[i]);
    }
}

/// The loop for the running machine, for types and functions that vectorise; 512 bits for 32-bit types only.
pub(crate) fn kernel1<T: Copy, O: Copy, M: Map1<T, O>>() -> Kernel1<T, O> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2<T: Copy, O: Copy, M: Map1<T, O>>(x: &[T], out: &mut [O]) {
            loop1::<T, O, M, Fused>(x, out);
        }
        #[target_feature(
            enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
        )]
        fn avx512<T: Copy, O: Copy, M: Map1<T, O>>(x: &[T], out: &mut [O]) {
            loop1::<T, O, M, Fused>(x, out);
        }
        if const { size_of::<T>() == 4 } && level() == Level::Avx512 {
            // SAFETY: the level says that this machine has the features.
            return |x, out| unsafe { avx512::<T, O, M>(x, out) };
        }
        if level() >= Level::Avx2 {
            // SAFETY: as above.
            return |x, out| unsafe { avx2::<T, O, M>(x, out) };
        }
    }
    loop1::<T, O, M, Portable>
}

/// As [`kernel1`] for functions that do not vectorise: one copy, built with the target's defaults.
pub(crate) fn scalar1<T: Copy, O: Copy, M: Map1<T, O>>() -> Kernel1<T, O> {
    loop1::<T, O, M, Portable>
}

/// The loop for the running machine, for types and functions that vectorise; 512 bits for 32-bit types only.
pub(crate) fn kernel2<T: Copy, O: Copy, M: Map2<T, O>>() -> Kernel2<T, O> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2<T: Copy, O: Copy, M: Map2<T, O>>(x: &[T], y: &[T], out: &mut [O]) {
            loop2::<T, O, M, Fused>(x, y, out);
        }
        #[target_feature(
            enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
        )]
        fn avx512<T: Copy, O: Copy, M: Map2<T, O>>(x: &[T], y: &[T], out: &mut [O]) {
            loop2::<T, O, M, Fused>(x, y, out);
        }
        if const { size_of::<T>() == 4 } && level() == Level::Avx512 {
            // SAFETY: the level says that this machine has the features.
            return |x, y, out| unsafe { avx512::<T, O, M>(x, y, out) };
        }
        if level() >= Level::Avx2 {
            // SAFETY: as above.
            return |x, y, out| unsafe { avx2::<T, O, M>(x, y, out) };
        }
    }
    loop2::<T, O, M, Portable>
}

/// As [`kernel2`] for functions that do not vectorise: one copy, built with the target's defaults.
pub(crate) fn scalar2<T: Copy, O: Copy, M: Map2<T, O>>() -> Kernel2<T, O> {
    loop2::<T, O, M, Portable>
}

/// As [`kernel2`], writing over the first input.
pub(crate) fn kernel2_over<T: Copy, M: Map2<T>>() -> Over2<T> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2<T: Copy, M: Map2<T>>(x: &mut [T], y: &[T]) {
            over2::<T, M, Fused>(x, y);
        }
        // No wider one: these loops wait for memory.
        if level() >= Level::Avx2 {
            // SAFETY: the level says that this machine has the features.
            return |x, y| unsafe { avx2::<T, M>(x, y) };
        }
    }
    over2::<T, M, Portable>
}

/// The function with its arguments exchanged.
pub(crate) struct Swapped<M>(std::marker::PhantomData<M>);

impl<T, M: Map2<T>> Map2<T> for Swapped<M> {
    #[inline(always)]
    fn eval<I: Isa>(x: T, y: T) -> T {
        M::eval::<I>(y, x)
    }
}
