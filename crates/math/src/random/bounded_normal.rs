//! `ParameterizedTruncatedNormal`: normal numbers between bounds of their own, by three kinds of rejection.
//!
//! The stream runs through all outputs, as in TensorFlow when one thread makes them.

use half::f16;

use super::normal::{Normal, fill_normal};
use super::philox::Philox;
use super::uniform::{UniformFloat, fill_uniform};
use crate::num::Float;
use crate::par::Serial;

/// Attempts for one output after which TensorFlow gives up.
const MAX_ATTEMPTS: usize = 1000;

/// The parameters of some outputs.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<T> {
    /// Of the distribution without bounds.
    pub mean: T,
    /// Of the distribution without bounds.
    pub deviation: T,
    /// The lower bound.
    pub least: T,
    /// The upper bound.
    pub most: T,
}

/// Why nothing was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The deviation is not positive, the bounds are in the wrong order or both infinite.
    Parameters,
    /// No attempt by this method was good.
    Attempts(&'static str),
}

/// A type that bounded normal numbers are drawn in.
pub trait BoundedNormal: Normal + UniformFloat + Float {
    /// How many numbers a sample makes.
    const PER_SAMPLE: usize;
}

impl BoundedNormal for f16 {
    const PER_SAMPLE: usize = 4;
}

impl BoundedNormal for f32 {
    const PER_SAMPLE: usize = 4;
}

impl BoundedNormal for f64 {
    const PER_SAMPLE: usize = 2;
}

/// A bounded normal distribution in units of its deviation, ready to draw from.
pub struct Sampler<T> {
    mean: T,
    deviation: T,
    least: T,
    most: T,
    way: Way<T>,
}

enum Way<T> {
    /// Normal numbers that lie inside.
    Normal,
    /// Uniform numbers between the bounds.
    Uniform { width: T, above: T },
    /// Exponential numbers from the lower bound on.
    Exponential { alpha: T },
}

/// `f` of a number, computed in a type that has it and rounded back.
fn through<T: Float>(x: T, f: impl Fn(f64) -> f64, single: impl Fn(f32) -> f32) -> T {
    // TensorFlow computes half precision by way of single.
    if size_of::<T>() == 8 {
        T::from_f64(f(x.to_f64()))
    } else {
        T::from_f32(single(x.to_f32()))
    }
}

fn sqrt<T: Float>(x: T) -> T {
    through(x, f64::sqrt, f32::sqrt)
}

fn exp<T: Float>(x: T) -> T {
    through(x, f64::exp, f32::exp)
}

fn ln<T: Float>(x: T) -> T {
    through(x, f64::ln, f32::ln)
}

impl<T: BoundedNormal> Sampler<T> {
    /// Checks the parameters and picks the way that rejects least.
    pub fn new(bounds: Bounds<T>) -> Result<Sampler<T>, Refused> {
        let Bounds {
            mean,
            mut deviation,
            mut least,
            mut most,
        } = bounds;
        let zero = T::ZERO;
        let is_finite = |x: T| x.to_f64().is_finite();
        if !(deviation > zero && least < most && (is_finite(least) || is_finite(most))) {
            return Err(Refused::Parameters);
        }
        let value = T::from_f64;
        if least == value(f64::NEG_INFINITY) || most < mean {
            (least, most) = (most, least);
            deviation = zero.sub(deviation);
        }
        let least = least.sub(mean).div(deviation);
        let most = most.sub(mean).div(deviation);
        let root = sqrt(least.mul(least).add(value(4.0)));
        let growth = value(0.5).add(least.mul(least.sub(root)).div(value(4.0)));
        let cutoff = value(2.0).mul(exp(growth)).div(least.add(root));
        let width = most.sub(least);
        let enough = value(1.3);
        let is_normal =
            (least < zero.sub(enough) && most >= zero) || (most > enough && least <= zero);
        let way = if is_normal {
            Way::Normal
        } else if width < cutoff {
            let above = if least < zero { zero } else { least.mul(least) };
            Way::Uniform { width, above }
        } else {
            let alpha = least.add(sqrt(least.mul(least).add(value(4.0))));
            Way::Exponential {
                alpha: alpha.div(value(2.0)),
            }
        };
        Ok(Sampler {
            mean,
            deviation,
            least,
            most,
            way,
        })
    }

    /// Calls `put` with `count` numbers; `philox` moves on past what was used.
    pub fn draw(
        &self,
        philox: &mut Philox,
        count: usize,
        mut put: impl FnMut(usize, T),
    ) -> Result<(), Refused> {
        let (mut done, mut failed) = (0, 0);
        while done < count {
            let mut first = [T::ZERO; 4];
            let first = &mut first[..T::PER_SAMPLE];
            let mut second = [T::ZERO; 4];
            let second = &mut second[..T::PER_SAMPLE];
            let half = T::from_f64(2.0);
            match &self.way {
                Way::Normal => fill_normal(&Serial, *philox, first),
                _ => fill_uniform(&Serial, *philox, first),
            }
            philox.skip(1);
            if let Way::Uniform { .. } = self.way {
                fill_uniform(&Serial, *philox, second);
                philox.skip(1);
            }
            let step = if let Way::Exponential { .. } = self.way {
                2
            } else {
                1
            };
            for at in (0..first.len()).step_by(step) {
                let (number, is_good) = match self.way {
                    Way::Normal => (first[at], first[at] >= self.least && first[at] <= self.most),
                    Way::Uniform { width, above } => {
                        let z = first[at].mul(width).add(self.least);
                        let g = above.sub(z.mul(z)).div(half);
                        (z, second[at] <= exp(g))
                    }
                    Way::Exponential { alpha } => {
                        let z = T::ZERO.sub(ln(first[at])).div(alpha).add(self.least);
                        let x = match self.least < alpha {
                            true => alpha.sub(z),
                            false => self.least.sub(alpha),
                        };
                        let g = exp(T::ZERO.sub(x).mul(x).div(half));
                        (z, first[at + 1] <= g && z < self.most)
                    }
                };
                if is_good {
                    put(done, number.mul(self.deviation).add(self.mean));
                    done += 1;
                    failed = 0;
                    if done == count {
                        break;
                    }
                } else {
                    failed += 1;
                    if failed >= MAX_ATTEMPTS {
                        return Err(Refused::Attempts(self.name()));
                    }
                }
            }
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self.way {
            Way::Normal => "randn rejection",
            Way::Uniform { .. } => "uniform rejection",
            Way::Exponential { .. } => "exponential distribution rejection",
        }
    }
}
