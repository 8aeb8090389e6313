//! Follow the regularised leader.

use super::apply::Rule;
use super::weight::RealWide;

/// FTRL-proximal; `ApplyFtrl` is `ApplyFtrlV2` without shrinkage. Slots: `accum`, `linear`.
///
/// TensorFlow's sparse kernel gives NaN where a weight without any history or l2 has nothing to be divided by; this gives 0
/// there, as TensorFlow's dense kernel does.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct Ftrl<W> {
    pub lr: W,
    pub l1: W,
    pub l2: W,
    pub l2_shrinkage: W,
    pub lr_power: W,
    pub multiply_linear_by_lr: bool,
}

impl<W: RealWide> Ftrl<W> {
    /// The accumulator to the power that the learning rate falls with; mostly a square root.
    #[inline(always)]
    fn power(self, accum: W) -> W {
        if self.lr_power == W::of(-0.5) {
            accum.sqrt()
        } else {
            accum.pow(-self.lr_power)
        }
    }
}

impl<W: RealWide> Rule<W, 2> for Ftrl<W> {
    #[inline(always)]
    fn step(self, var: W, [accum, linear]: [W; 2], grad: W) -> (W, [W; 2]) {
        let two = W::of(2.0);
        let shrunk = grad + two * self.l2_shrinkage * var;
        let new_accum = accum + grad * grad;
        let power = self.power(new_accum);
        let gain = power - self.power(accum);
        let (linear, l1, y) = if self.multiply_linear_by_lr {
            let linear = linear + (shrunk * self.lr - gain * var);
            (linear, self.l1 * self.lr, power + two * self.l2 * self.lr)
        } else {
            let linear = linear + (shrunk - gain / self.lr * var);
            (linear, self.l1, power / self.lr + two * self.l2)
        };
        let var = if linear.abs() > l1 {
            (l1 * linear.sign() - linear) / y
        } else {
            W::default()
        };
        (var, [new_accum, linear])
    }
}
