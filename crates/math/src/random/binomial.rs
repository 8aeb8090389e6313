//! `StatelessRandomBinomial`, `StatefulRandomBinomial`: counts of successes, each output with a run of samples of its own.

use super::gamma::{Draws, FromDrawn, GRAIN};
use super::philox::{Philox, RESERVED_SAMPLES_PER_OUTPUT};
use crate::par::{Par, chunks_mut};

/// Attempts after which parameters that no draw can meet get what was found last, where TensorFlow would go on.
const MAX_ATTEMPTS: usize = 10_000;

/// How the counts of one pair of parameters are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binomial {
    /// Always this number.
    Constant(f64),
    /// By waiting times, for a mean below ten. The probability is at most one half, else that of failures.
    Waiting {
        /// How many trials there are.
        trials: f64,
        /// Of each trial.
        probability: f64,
        /// Whether failures are counted.
        is_failure: bool,
    },
    /// By rejection, for a mean from ten on.
    Rejection {
        /// How many trials there are.
        trials: f64,
        /// Of each trial.
        probability: f64,
        /// Whether failures are counted.
        is_failure: bool,
    },
}

/// Fills `out`: element `i` is of `kinds[i % kinds.len()]`.
///
/// # Panics
/// If `out` is not a whole number of rounds of `kinds`.
pub fn fill_binomial<T: FromDrawn>(
    par: &dyn Par,
    philox: Philox,
    kinds: &[Binomial],
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let count = kinds.len();
    assert!(count > 0 && out.len().is_multiple_of(count));
    let rounds = out.len() / count;
    chunks_mut(par, out, GRAIN, |offset, chunk| {
        for (i, out) in (offset..).zip(chunk) {
            let run = (i % count * rounds + i / count) as u64;
            *out = T::from_drawn(kinds[i % count].draw(philox, run));
        }
    });
}

impl Binomial {
    fn draw(self, philox: Philox, run: u64) -> f64 {
        // TensorFlow sets aside fewer samples for waiting times.
        const RESERVED_FOR_WAITING: u64 = 42;
        match self {
            Binomial::Constant(value) => value,
            Binomial::Waiting {
                trials,
                probability,
                is_failure,
            } => {
                let philox = philox.skipped(run.wrapping_mul(RESERVED_FOR_WAITING));
                let found = waiting(trials, probability, &mut Draws::new(philox));
                if is_failure { trials - found } else { found }
            }
            Binomial::Rejection {
                trials,
                probability,
                is_failure,
            } => {
                let philox = philox.skipped(run.wrapping_mul(RESERVED_SAMPLES_PER_OUTPUT));
                let found = rejection(trials, probability, &mut Draws::new(philox));
                if is_failure { trials - found } else { found }
            }
        }
    }
}

/// How many waiting times for a success fit into the trials.
fn waiting(trials: f64, probability: f64, draws: &mut Draws) -> f64 {
    let mut passed = 0.0;
    for found in 0..MAX_ATTEMPTS {
        passed += (draws.uniform().ln() / (-probability).ln_1p()).ceil();
        if passed > trials {
            return found as f64;
        }
    }
    trials
}

/// Hörmann's transformed rejection with his constants.
fn rejection(trials: f64, probability: f64, draws: &mut Draws) -> f64 {
    let deviation = (trials * probability * (1.0 - probability)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * probability;
    let c = trials * probability + 0.5;
    let box_height = 0.92 - 4.2 / b;
    let odds = probability / (1.0 - probability);
    let alpha = (2.83 + 5.1 / b) * deviation;
    let mode = ((trials + 1.0) * probability).floor();
    let mut last = 0.0;
    for _ in 0..MAX_ATTEMPTS {
        let (u, v) = (draws.uniform(), draws.uniform());
        let u = u - 0.5;
        let shifted = 0.5 - u.abs();
        let k = ((2.0 * a / shifted + b) * u + c).floor();
        last = k;
        if shifted >= 0.07 && v <= box_height {
            return k;
        }
        if k < 0.0 || k > trials {
            continue;
        }
        let v = (v * alpha / (a / (shifted * shifted) + b)).ln();
        let bound = (mode + 0.5) * ((mode + 1.0) / (odds * (trials - mode + 1.0))).ln()
            + (trials + 1.0) * ((trials - mode + 1.0) / (trials - k + 1.0)).ln()
            + (k + 0.5) * (odds * (trials - k + 1.0) / (k + 1.0)).ln()
            + stirling_rest(mode)
            + stirling_rest(trials - mode)
            - stirling_rest(k)
            - stirling_rest(trials - k);
        if v <= bound {
            return k;
        }
    }
    last
}

/// What Stirling's formula for ln k! lacks: from a table with the digits that TensorFlow has, then by its series.
fn stirling_rest(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.081_061_466_795_327_2,
        0.041_340_695_955_409_2,
        0.027_677_925_684_998_3,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_1,
        0.013_876_128_823_070_7,
        0.011_896_709_945_891_7,
        0.010_411_265_261_972,
        0.009_255_462_182_712_73,
        0.008_330_563_433_362_87,
    ];
    if k <= 9.0 {
        return FIRST[k.max(0.0) as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}
