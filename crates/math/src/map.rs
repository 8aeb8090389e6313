//! Loops over a function of the caller's: [`map`], [`map_in_place`], [`map_pixels`] and [`fill_by`], on all threads and in vectors.
//!
//! For functions with parameters that one op has for itself; what several ops or dtypes share is a [`crate::unary::Unary`]. The
//! function must be small enough to be inlined and free of branches, or its loop is no faster than any other.

use crate::num::isa::multiversion;
use crate::par::{Par, chunks_mut};

/// Elements that are worth a thread of their own.
const GRAIN: usize = 16 << 10;

/// Writes `f(x)` to `out`.
///
/// # Panics
/// If the lengths differ.
pub fn map<T: Copy + Sync, O: Send>(
    par: &dyn Par,
    x: &[T],
    out: &mut [O],
    f: impl Fn(T) -> O + Copy + Sync,
) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    chunks_mut(par, out, GRAIN, |at, out| {
        run(&x[at..at + out.len()], out, f);
    });
}

/// Replaces `x` by `f(x)`.
pub fn map_in_place<T: Copy + Send>(par: &dyn Par, x: &mut [T], f: impl Fn(T) -> T + Copy + Sync) {
    chunks_mut(par, x, GRAIN, |_, x| over(x, f));
}

/// Writes `f(i)` to place `i` of `out`.
pub fn fill_by<O: Send>(par: &dyn Par, out: &mut [O], f: impl Fn(usize) -> O + Copy + Sync) {
    chunks_mut(par, out, GRAIN, |at, out| fill(at, out, f));
}

/// Replaces each pixel of three channels by `f` of it; what is behind the last whole pixel stays.
pub fn map_pixels(
    par: &dyn Par,
    channels: &mut [f32],
    f: impl Fn([f32; 3]) -> [f32; 3] + Copy + Sync,
) {
    chunks_mut(par, channels.as_chunks_mut::<3>().0, GRAIN / 8, |_, x| {
        pixels(x, f);
    });
}

#[inline(always)]
fn run_loop<T: Copy, O, F: Fn(T) -> O>(x: &[T], out: &mut [O], f: F) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = f(*x);
    }
}

#[inline(always)]
fn over_loop<T: Copy, F: Fn(T) -> T>(x: &mut [T], f: F) {
    for x in x {
        *x = f(*x);
    }
}

#[inline(always)]
fn fill_loop<O, F: Fn(usize) -> O>(at: usize, out: &mut [O], f: F) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = f(at + i);
    }
}

/// Pixels are taken apart first, as vectors want channels that lie together.
#[inline(always)]
fn pixels_loop<F: Fn([f32; 3]) -> [f32; 3]>(pixels: &mut [[f32; 3]], f: F) {
    const BLOCK: usize = 64;
    let [mut a, mut b, mut c] = [[0.0f32; BLOCK]; 3];
    for block in pixels.chunks_mut(BLOCK) {
        for (i, pixel) in block.iter().enumerate() {
            [a[i], b[i], c[i]] = *pixel;
        }
        for i in 0..BLOCK {
            [a[i], b[i], c[i]] = f([a[i], b[i], c[i]]);
        }
        for (i, pixel) in block.iter_mut().enumerate() {
            *pixel = [a[i], b[i], c[i]];
        }
    }
}

multiversion! { fn pixels<F: Fn([f32; 3]) -> [f32; 3]>(x: &mut [[f32; 3]], f: F) = pixels_loop; }
multiversion! { fn run<T: Copy, O: Sized, F: Fn(T) -> O>(x: &[T], out: &mut [O], f: F) = run_loop; }
multiversion! { fn over<T: Copy, F: Fn(T) -> T>(x: &mut [T], f: F) = over_loop; }
multiversion! { fn fill<O: Sized, F: Fn(usize) -> O>(at: usize, out: &mut [O], f: F) = fill_loop; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Pool;

    #[test]
    fn every_place_gets_its_own_value() {
        let pool = Pool::new(3);
        for len in [0, 1, 77, 3 * GRAIN + 5] {
            let mut places = vec![0; len];
            fill_by(&pool, &mut places, |i| i as u32);
            assert!(places.iter().enumerate().all(|(i, x)| *x == i as u32));
            let mut halves = vec![0.0; len];
            map(&pool, &places, &mut halves, |x| f64::from(x) / 2.0);
            map_in_place(&pool, &mut halves, |x| (x + 0.5).floor());
            let expected = places.iter().map(|x| f64::from(x.div_ceil(2)));
            assert!(halves.iter().copied().eq(expected));
            let mut turned: Vec<f32> = places.iter().map(|x| *x as f32).collect();
            map_pixels(&pool, &mut turned, |[a, b, c]| [b, c, a + 0.5]);
            for (i, x) in turned.iter().enumerate() {
                let (pixel, channel) = (i / 3 * 3, i % 3);
                let from = match channel {
                    _ if pixel + 3 > len => i as f32,
                    2 => pixel as f32 + 0.5,
                    _ => (i + 1) as f32,
                };
                assert_eq!(*x, from, "{i} of {len}");
            }
        }
    }
}
