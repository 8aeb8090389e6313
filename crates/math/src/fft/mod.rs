//! Discrete Fourier transforms of any length, many lines at a time.
//!
//! A [`Plan`] holds what depends on the length alone and is made once. Real and imaginary parts are kept apart, and short lines
//! are taken sixteen at a time, one in each lane of the vectors, so that every loop runs over neighbours whatever the length is
//! made of; few long lines are taken one by one, and passes run along them. Threads share lines. Lines never mix: what is not finite in one stays there.
//!
//! ```
//! use num_complex::Complex;
//! use tensorfleet_math::fft::{Direction, Plan, lines};
//! use tensorfleet_math::par::Serial;
//! let mut line = [1.0f64, 2.0, 3.0].map(|x| Complex::new(x, 0.0));
//! lines(&Serial, &Plan::new(3), &mut line, 1, Direction::Forward, 1.0);
//! assert_eq!(line[0], Complex::new(6.0, 0.0));
//! lines(&Serial, &Plan::new(3), &mut line, 1, Direction::Inverse, 1.0 / 3.0);
//! assert!((line[2].re - 3.0).abs() < 1e-15);
//! ```

mod bundle;
mod chirp;
mod lanes;
mod passes;
mod plan;
mod real;
mod room;
#[cfg(test)]
mod tests;

use std::ops::{Add, Mul, Neg, Sub};

pub use bundle::lines;
pub use plan::Plan;
pub use real::{RealPlan, complex_to_real, real_to_complex};

/// `f32` or `f64`.
pub trait Real:
    Copy
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + room::Lane
    + 'static
{
    /// The nearest value.
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
}

/// The sign of the exponent: minus for forward transforms, plus for inverse ones, which are not divided by the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From values to frequencies.
    Forward,
    /// From frequencies to values.
    Inverse,
}

/// exp(-2πi·k/n), from an angle of at most 45 degrees so that symmetric roots are the same numbers.
fn root<T: Real>(k: u64, n: u64) -> [T; 2] {
    let (k, n) = (i128::from(k % n), i128::from(n));
    let quarters = (8 * k + n) / (2 * n);
    let rest = (4 * k - quarters * n) as f64 / n as f64;
    let (sin, cos) = (rest * std::f64::consts::FRAC_PI_2).sin_cos();
    let [x, y] = match quarters % 4 {
        0 => [cos, sin],
        1 => [-sin, cos],
        2 => [-cos, -sin],
        _ => [sin, -cos],
    };
    [T::of(x), T::of(-y)]
}
