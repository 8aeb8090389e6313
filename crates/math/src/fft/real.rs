//! Transforms between real lines and the half of their spectrum that determines the rest.
//!
//! A line of even length is half as many complex numbers, whose transform is taken apart; one of odd length is transformed
//! as complex numbers are.

use num_complex::Complex;

use super::bundle::width;
use super::plan::{Bundle, roots};
use super::{Plan, Real};
use crate::par::{Par, rows_mut};

/// What transforms of real lines of one length need.
pub struct RealPlan<T> {
    len: usize,
    /// Of the half length if the length is even.
    plan: Plan<T>,
    roots: Vec<[T; 2]>,
}

impl<T: Real> RealPlan<T> {
    /// A plan for lines of this length.
    pub fn new(len: usize) -> RealPlan<T> {
        let is_even = len.is_multiple_of(2);
        RealPlan {
            len,
            plan: Plan::new(if is_even { len / 2 } else { len }),
            roots: if is_even {
                roots(len / 2 + 1, len)
            } else {
                Vec::new()
            },
        }
    }

    /// The length of a real line.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether lines have no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of half a spectrum.
    pub fn half(&self) -> usize {
        self.len / 2 + 1
    }
}

/// The first half of the spectrum of each row of `from`; of rows that are longer than the plan the end is not read.
///
/// # Panics
/// If the numbers of rows differ, or rows of `from` are too short.
pub fn real_to_complex<T: Real>(
    par: &dyn Par,
    plan: &RealPlan<T>,
    from: (&[T], usize),
    to: &mut [Complex<T>],
) {
    let (from, from_len) = from;
    let (half, len) = (plan.half(), plan.len);
    if to.is_empty() || len == 0 {
        return;
    }
    let rows = to.len() / half;
    assert!(from.len() == rows * from_len && from_len >= len);
    let most = width(len, rows);
    rows_mut(par, to, half, most, |first, to| {
        let (mut bundle, mut spare) = (Bundle::new(), Bundle::new());
        for (at, to) in to.chunks_mut(half * most).enumerate() {
            let (first, width) = (first + at * most, to.len() / half);
            let line = |line: usize| &from[(first + line) * from_len..][..len];
            load_real(plan, &mut bundle, width, line);
            plan.plan.run(&mut bundle, &mut spare, width);
            for (line, to) in to.chunks_exact_mut(half).enumerate() {
                for (k, value) in to.iter_mut().enumerate() {
                    *value = frequency(plan, &bundle, width, line, k);
                }
            }
        }
    });
}

fn load_real<'a, T: Real>(
    plan: &RealPlan<T>,
    bundle: &mut Bundle<T>,
    width: usize,
    line: impl Fn(usize) -> &'a [T],
) {
    bundle.resize(plan.plan.len() * width);
    for at in 0..width {
        if plan.roots.is_empty() {
            for (j, value) in line(at).iter().enumerate() {
                (bundle.re[j * width + at], bundle.im[j * width + at]) = (*value, T::of(0.0));
            }
        } else {
            for (j, pair) in line(at).chunks_exact(2).enumerate() {
                (bundle.re[j * width + at], bundle.im[j * width + at]) = (pair[0], pair[1]);
            }
        }
    }
}

/// Frequency `k` of a line, out of the transform of its bundle.
#[inline]
fn frequency<T: Real>(
    plan: &RealPlan<T>,
    bundle: &Bundle<T>,
    width: usize,
    line: usize,
    k: usize,
) -> Complex<T> {
    let at = |k: usize| {
        let at = k * width + line;
        [bundle.re[at], bundle.im[at]]
    };
    let Some([cos, sin]) = plan.roots.get(k) else {
        let [re, im] = at(k);
        return Complex::new(re, im);
    };
    let n = plan.plan.len();
    let ([a, b], [c, d]) = (at(k % n), at((n - k) % n));
    // The transform of the even places, and that of the odd ones, twice.
    let ([x, y], [u, v]) = ([a + c, b - d], [b + d, c - a]);
    let half = T::of(0.5);
    Complex::new(
        (x + u * *cos - v * *sin) * half,
        (y + u * *sin + v * *cos) * half,
    )
}

/// Real lines from the first halves of their spectra, in the rows of `from`, multiplied by `scale`; the imaginary parts that
/// a spectrum of real numbers cannot have are not read.
///
/// # Panics
/// If the numbers of rows differ, or rows of `from` are too short.
pub fn complex_to_real<T: Real>(
    par: &dyn Par,
    plan: &RealPlan<T>,
    from: (&[Complex<T>], usize),
    to: &mut [T],
    scale: f64,
) {
    let (from, from_len) = from;
    let (half, len, scale) = (plan.half(), plan.len, T::of(scale));
    if to.is_empty() || len == 0 {
        return;
    }
    let rows = to.len() / len;
    assert!(from.len() == rows * from_len && from_len >= half);
    let most = width(len, rows);
    rows_mut(par, to, len, most, |first, to| {
        let (mut bundle, mut spare) = (Bundle::new(), Bundle::new());
        for (at, to) in to.chunks_mut(len * most).enumerate() {
            let (first, width) = (first + at * most, to.len() / len);
            bundle.resize(plan.plan.len() * width);
            for line in 0..width {
                let from = &from[(first + line) * from_len..][..half];
                load_half(plan, &mut bundle, width, line, from);
            }
            // Inverse.
            bundle.swap();
            plan.plan.run(&mut bundle, &mut spare, width);
            bundle.swap();
            for (line, to) in to.chunks_exact_mut(len).enumerate() {
                if plan.roots.is_empty() {
                    for (j, value) in to.iter_mut().enumerate() {
                        *value = bundle.re[j * width + line] * scale;
                    }
                } else {
                    for (j, pair) in to.chunks_exact_mut(2).enumerate() {
                        pair[0] = bundle.re[j * width + line] * scale;
                        pair[1] = bundle.im[j * width + line] * scale;
                    }
                }
            }
        }
    });
}

/// Puts the spectrum of one line into a bundle: whole, or as that of half as many complex numbers.
fn load_half<T: Real>(
    plan: &RealPlan<T>,
    bundle: &mut Bundle<T>,
    width: usize,
    line: usize,
    from: &[Complex<T>],
) {
    let (len, zero) = (plan.len, T::of(0.0));
    let read = |k: usize| match from[k] {
        value if k == 0 || 2 * k == len => [value.re, zero],
        value => [value.re, value.im],
    };
    let mut store = |k: usize, re: T, im: T| {
        (bundle.re[k * width + line], bundle.im[k * width + line]) = (re, im);
    };
    if plan.roots.is_empty() {
        for k in 0..from.len() {
            let [re, im] = read(k);
            store(k, re, im);
            if k > 0 {
                store(len - k, re, -im);
            }
        }
        return;
    }
    let n = len / 2;
    for k in 0..n {
        let ([a, b], [c, d]) = (read(k), read(n - k));
        let ([x, y], [u, v]) = ([a + c, b - d], [a - c, b + d]);
        // (u + iv) times i times the root of the other direction.
        let [cos, sin] = plan.roots[k];
        store(k, x + u * sin - v * cos, y + u * cos + v * sin);
    }
}
