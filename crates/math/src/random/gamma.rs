//! `RandomGamma` and `RandomPoisson`: rejection samplers in double precision, each output with a run of samples of its own.

use half::{bf16, f16};

use super::normal::box_muller_f64;
use super::philox::{Philox, RESERVED_SAMPLES_PER_OUTPUT};
use super::uniform::unit_f64;
use crate::par::{Par, chunks_mut};

/// Outputs per task: about 20 µs of work.
pub(super) const GRAIN: usize = 256;
/// Attempts after which a Poisson rate that its output type cannot hold gets the largest value, where TensorFlow would go on.
const MAX_ATTEMPTS: usize = 10_000;

/// A type that the samplers can write.
pub trait FromDrawn: Copy + Send {
    /// The largest finite value.
    const HIGHEST: f64;
    /// What an infinite rate gives: infinity, or 0 where there is none.
    const INFINITE: Self;

    /// Rounds the double that was drawn as TensorFlow does, half precision by way of single.
    fn from_drawn(drawn: f64) -> Self;
}

macro_rules! from_drawn {
    ($($ty:ty: $highest:expr, $infinite:expr, $convert:expr;)*) => {
        $(impl FromDrawn for $ty {
            const HIGHEST: f64 = $highest;
            const INFINITE: Self = $infinite;

            fn from_drawn(drawn: f64) -> Self {
                $convert(drawn)
            }
        })*
    };
}

from_drawn! {
    f16: f16::MAX.to_f64_const(), f16::INFINITY, |x| f16::from_f32(x as f32);
    bf16: bf16::MAX.to_f64_const(), bf16::INFINITY, |x| bf16::from_f32(x as f32);
    f32: f32::MAX as f64, f32::INFINITY, |x| x as f32;
    f64: f64::MAX, f64::INFINITY, |x| x;
    i32: i32::MAX as f64, 0, |x| x as i32;
    i64: i64::MAX as f64, 0, |x| x as i64;
}

/// Fills `out` with gamma numbers: element `i` has shape parameter `alphas[i % alphas.len()]`.
///
/// # Panics
/// If `out` is not a whole number of rounds of `alphas`.
pub fn fill_gamma<T: FromDrawn>(par: &dyn Par, philox: Philox, alphas: &[f64], out: &mut [T]) {
    fill_each::<2, _>(par, philox, alphas.len(), out, |parameter, draws| {
        T::from_drawn(gamma(alphas[parameter], draws))
    });
}

/// Fills `out` with Poisson numbers: element `i` has rate `rates[i % rates.len()]`.
///
/// # Panics
/// If `out` is not a whole number of rounds of `rates`.
pub fn fill_poisson<T: FromDrawn>(par: &dyn Par, philox: Philox, rates: &[f64], out: &mut [T]) {
    let thresholds: Vec<f64> = rates.iter().map(|rate| (-rate).exp()).collect();
    fill_each::<4, _>(par, philox, rates.len(), out, |parameter, draws| {
        let rate = rates[parameter];
        if rate < 10.0 {
            T::from_drawn(small_poisson(thresholds[parameter], draws))
        } else if rate.is_finite() {
            T::from_drawn(large_poisson(rate, T::HIGHEST, draws))
        } else if rate.is_nan() {
            T::from_drawn(rate) // TensorFlow would never return
        } else {
            T::INFINITE
        }
    });
}

/// Outputs whose first samples are made together.
const TOGETHER: usize = 32;

/// Fills `out` element by element, each drawn for the parameter of this number; runs of samples are numbered parameter by
/// parameter, outputs lie round by round. The first `READY` samples of many runs are made in vectors.
fn fill_each<const READY: usize, T: Send>(
    par: &dyn Par,
    philox: Philox,
    count: usize,
    out: &mut [T],
    draw: impl Fn(usize, &mut Draws<'_>) -> T + Sync,
) {
    if out.is_empty() {
        return;
    }
    assert!(
        count > 0 && out.len().is_multiple_of(count),
        "{} outputs are no whole number of rounds of {count} parameters",
        out.len()
    );
    let rounds = out.len() / count;
    chunks_mut(par, out, GRAIN, |offset, chunk| {
        let start = |i: usize| {
            let run = (i % count * rounds + i / count) as u64;
            philox.skipped(run * RESERVED_SAMPLES_PER_OUTPUT)
        };
        if count > 1 {
            for (i, out) in (offset..).zip(chunk) {
                *out = draw(i % count, &mut Draws::new(start(i)));
            }
            return;
        }
        let mut ready = [[0u32; 4 * TOGETHER]; READY];
        for (block, out) in chunk.chunks_mut(TOGETHER).enumerate() {
            let first = offset + block * TOGETHER;
            for (sample, words) in ready.iter_mut().enumerate() {
                let words = &mut words[..4 * out.len()];
                let philox = start(first).skipped(sample as u64);
                philox.fill_strided(words, RESERVED_SAMPLES_PER_OUTPUT as u32);
            }
            for (at, out) in out.iter_mut().enumerate() {
                let samples: [[u32; 4]; READY] = std::array::from_fn(|sample| {
                    std::array::from_fn(|word| ready[sample][4 * at + word])
                });
                let philox = start(first + at).skipped(READY as u64);
                *out = draw(0, &mut Draws::after(&samples, philox));
            }
        }
    });
}

/// Doubles from one run of samples: uniforms and normals take whole samples in turn and use their numbers last first.
pub(super) struct Draws<'a> {
    /// Samples that were made before; `philox` goes on behind them.
    ready: &'a [[u32; 4]],
    philox: Philox,
    uniforms: [f64; 2],
    uniforms_left: usize,
    normals: [f64; 2],
    normals_left: usize,
}

impl<'a> Draws<'a> {
    pub(super) fn new(philox: Philox) -> Self {
        Self::after(&[], philox)
    }

    fn after(ready: &'a [[u32; 4]], philox: Philox) -> Self {
        Self {
            ready,
            philox,
            uniforms: [0.0; 2],
            uniforms_left: 0,
            normals: [0.0; 2],
            normals_left: 0,
        }
    }

    #[inline]
    fn sample(&mut self) -> [u32; 4] {
        match self.ready.split_first() {
            Some((sample, rest)) => {
                self.ready = rest;
                *sample
            }
            None => self.philox.next_sample(),
        }
    }

    pub(super) fn uniform(&mut self) -> f64 {
        if self.uniforms_left == 0 {
            let [a, b, c, d] = self.sample();
            self.uniforms = [unit_f64(a, b), unit_f64(c, d)];
            self.uniforms_left = 2;
        }
        self.uniforms_left -= 1;
        self.uniforms[self.uniforms_left]
    }

    fn normal(&mut self) -> f64 {
        if self.normals_left == 0 {
            self.normals = box_muller_f64(self.sample());
            self.normals_left = 2;
        }
        self.normals_left -= 1;
        self.normals[self.normals_left]
    }
}

/// Marsaglia and Tsang's method; below one the parameter is raised by one and the result scaled by a power of a uniform.
fn gamma(alpha: f64, draws: &mut Draws<'_>) -> f64 {
    if alpha == 1.0 {
        return -(-draws.uniform()).ln_1p();
    }
    let below_one = alpha < 1.0;
    let d = alpha + if below_one { 2.0 / 3.0 } else { -1.0 / 3.0 };
    let c = 1.0 / 3.0 / d.sqrt();
    loop {
        let x = draws.normal();
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = draws.uniform();
        if u < 1.0 - 0.0331 * (x * x) * (x * x) || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            let scale = if below_one {
                draws.uniform().powf(1.0 / alpha)
            } else {
                1.0
            };
            return d * v * scale;
        }
    }
}

/// Knuth's method: counts uniforms until their product falls to e^-rate, the threshold.
fn small_poisson(threshold: f64, draws: &mut Draws<'_>) -> f64 {
    let mut product = 1.0;
    let mut count = 0.0;
    loop {
        product *= draws.uniform();
        if product <= threshold {
            return count;
        }
        count += 1.0;
    }
}

/// Hörmann's transformed rejection with his constants.
fn large_poisson(rate: f64, highest: f64, draws: &mut Draws<'_>) -> f64 {
    let ln_rate = rate.ln();
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    for _ in 0..MAX_ATTEMPTS {
        let u = draws.uniform() - 0.5;
        let v = draws.uniform();
        let shifted = 0.5 - u.abs();
        let k = ((2.0 * a / shifted + b) * u + rate + 0.43).floor();
        if k > highest {
            continue;
        }
        if shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0) {
            return k;
        }
        if k < 0.0 || (shifted < 0.013 && v > shifted) {
            continue;
        }
        let s = (v * inverse_alpha / (a / (shifted * shifted) + b)).ln();
        if s <= -rate + k * ln_rate - ln_gamma(k + 1.0) {
            return k;
        }
    }
    highest
}

/// ln Γ(x) for x ≥ 1, by the C library where there is one.
fn ln_gamma(x: f64) -> f64 {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            fn lgamma_r(x: f64, sign: *mut std::ffi::c_int) -> f64;
        }
        let mut sign = 0;
        // SAFETY: the pointer is to a live local; this variant touches no global state.
        unsafe { lgamma_r(x, &raw mut sign) }
    }
    #[cfg(not(unix))]
    {
        // Stirling's series, exact to a double's precision once the argument is moved above ten.
        let (mut x, mut shift) = (x, 0.0);
        while x < 10.0 {
            shift += x.ln();
            x += 1.0;
        }
        let y = 1.0 / (x * x);
        let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
        (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
    }
}
