//! The rules, named as TensorFlow's `Apply…` ops; fields are the ops' scalar inputs, slots are in the order of the ops' inputs.

use super::apply::Rule;
use super::weight::{RealWide, Wide};

/// `var -= lr·grad`. No slots.
#[derive(Clone, Copy, Debug)]
pub struct GradientDescent<W> {
    /// `alpha` of the op.
    pub lr: W,
}

impl<W: Wide> Rule<W, 0> for GradientDescent<W> {
    #[inline(always)]
    fn step(self, var: W, _: [W; 0], grad: W) -> (W, [W; 0]) {
        (var - grad * self.lr, [])
    }
}

/// Gradient descent with l1 and l2 regularisation (FOBOS). No slots.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct ProximalGradientDescent<W> {
    pub lr: W,
    pub l1: W,
    pub l2: W,
}

impl<W: RealWide> Rule<W, 0> for ProximalGradientDescent<W> {
    #[inline(always)]
    fn step(self, var: W, _: [W; 0], grad: W) -> (W, [W; 0]) {
        (
            proximal(var - grad * self.lr, self.lr, self.l1, self.l2),
            [],
        )
    }
}

/// Shrinks towards zero by l1, scales down by l2.
#[inline(always)]
fn proximal<W: RealWide>(var: W, lr: W, l1: W, l2: W) -> W {
    let shrunk = if l1 > W::default() {
        var.sign() * (var.abs() - lr * l1).max(W::default())
    } else {
        var
    };
    shrunk / (W::of(1.0) + l2 * lr)
}

/// Momentum. Slots: `accum`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct Momentum<W> {
    pub lr: W,
    pub momentum: W,
    pub use_nesterov: bool,
}

impl<W: Wide> Rule<W, 1> for Momentum<W> {
    #[inline(always)]
    fn step(self, var: W, [accum]: [W; 1], grad: W) -> (W, [W; 1]) {
        let accum = accum * self.momentum + grad;
        let step = if self.use_nesterov {
            grad * self.lr + accum * self.momentum * self.lr
        } else {
            accum * self.lr
        };
        (var - step, [accum])
    }
}

/// Momentum whose accumulator has the learning rate in it. Slots: `accum`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct KerasMomentum<W> {
    pub lr: W,
    pub momentum: W,
    pub use_nesterov: bool,
}

impl<W: Wide> Rule<W, 1> for KerasMomentum<W> {
    #[inline(always)]
    fn step(self, var: W, [accum]: [W; 1], grad: W) -> (W, [W; 1]) {
        let accum = accum * self.momentum - grad * self.lr;
        let step = if self.use_nesterov {
            accum * self.momentum - grad * self.lr
        } else {
            accum
        };
        (var + step, [accum])
    }
}

/// Adagrad. Slots: `accum`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct Adagrad<W> {
    pub lr: W,
    pub update_slots: bool,
}

impl<W: Wide> Rule<W, 1> for Adagrad<W> {
    #[inline(always)]
    fn step(self, var: W, [accum]: [W; 1], grad: W) -> (W, [W; 1]) {
        let accum = accumulated(accum, grad, self.update_slots);
        (var - grad * self.lr * accum.rsqrt(), [accum])
    }
}

/// Adagrad with an epsilon. Slots: `accum`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct AdagradV2<W> {
    pub lr: W,
    pub epsilon: W,
    pub update_slots: bool,
}

impl<W: Wide> Rule<W, 1> for AdagradV2<W> {
    #[inline(always)]
    fn step(self, var: W, [accum]: [W; 1], grad: W) -> (W, [W; 1]) {
        let accum = accumulated(accum, grad, self.update_slots);
        let step = grad * self.lr / (accum.sqrt() + self.epsilon);
        (var - step, [accum])
    }
}

#[inline(always)]
fn accumulated<W: Wide>(accum: W, grad: W, update: bool) -> W {
    if update { accum + grad * grad } else { accum }
}

/// Adagrad with l1 and l2 regularisation (FOBOS). Slots: `accum`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct ProximalAdagrad<W> {
    pub lr: W,
    pub l1: W,
    pub l2: W,
}

impl<W: RealWide> Rule<W, 1> for ProximalAdagrad<W> {
    #[inline(always)]
    fn step(self, var: W, [accum]: [W; 1], grad: W) -> (W, [W; 1]) {
        let accum = accum + grad * grad;
        let lr = self.lr * accum.rsqrt();
        (proximal(var - grad * lr, lr, self.l1, self.l2), [accum])
    }
}

/// Adagrad with dual averaging. Slots: `gradient_accumulator`, `gradient_squared_accumulator`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct AdagradDa<W> {
    pub lr: W,
    pub l1: W,
    pub l2: W,
    pub global_step: W,
}

impl<W: RealWide> Rule<W, 2> for AdagradDa<W> {
    #[inline(always)]
    fn step(self, _: W, [sum, squares]: [W; 2], grad: W) -> (W, [W; 2]) {
        let sum = sum + grad;
        let squares = squares + grad * grad;
        let shrunk = if self.l1 > W::default() {
            sum.sign() * (sum.abs() - self.global_step * self.l1).max(W::default())
        } else {
            sum
        };
        let scale = self.l2 * (self.global_step * self.lr) + squares.sqrt();
        (-(self.lr * shrunk) / scale, [sum, squares])
    }
}

/// Adadelta. Slots: `accum`, `accum_update`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct Adadelta<W> {
    pub lr: W,
    pub rho: W,
    pub epsilon: W,
}

impl<W: Wide> Rule<W, 2> for Adadelta<W> {
    #[inline(always)]
    fn step(self, var: W, [accum, accum_update]: [W; 2], grad: W) -> (W, [W; 2]) {
        let rest = W::of(1.0) - self.rho;
        let accum = accum * self.rho + grad * grad * rest;
        let update = (accum_update + self.epsilon).sqrt() * (accum + self.epsilon).rsqrt() * grad;
        let accum_update = accum_update * self.rho + update * update * rest;
        (var - update * self.lr, [accum, accum_update])
    }
}

/// RMSProp. Slots: `ms`, `mom`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct RmsProp<W> {
    pub lr: W,
    pub rho: W,
    pub momentum: W,
    pub epsilon: W,
}

impl<W: Wide> Rule<W, 2> for RmsProp<W> {
    #[inline(always)]
    fn step(self, var: W, [ms, mom]: [W; 2], grad: W) -> (W, [W; 2]) {
        let ms = ms + (grad * grad - ms) * (W::of(1.0) - self.rho);
        let mom = mom * self.momentum + (grad * self.lr) / (ms + self.epsilon).sqrt();
        (var - mom, [ms, mom])
    }
}

/// RMSProp with a centred second moment. Slots: `mg`, `ms`, `mom`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct CenteredRmsProp<W> {
    pub lr: W,
    pub rho: W,
    pub momentum: W,
    pub epsilon: W,
}

impl<W: Wide> Rule<W, 3> for CenteredRmsProp<W> {
    #[inline(always)]
    fn step(self, var: W, [mg, ms, mom]: [W; 3], grad: W) -> (W, [W; 3]) {
        let rest = W::of(1.0) - self.rho;
        let ms = ms + (grad * grad - ms) * rest;
        let mg = mg + (grad - mg) * rest;
        let denominator = (ms - mg * mg) + self.epsilon;
        let mom = mom * self.momentum + (grad * self.lr) / denominator.sqrt();
        (var - mom, [mg, ms, mom])
    }
}

/// AddSign. Slots: `m`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct AddSign<W> {
    pub lr: W,
    pub alpha: W,
    pub sign_decay: W,
    pub beta: W,
}

impl<W: RealWide> Rule<W, 1> for AddSign<W> {
    #[inline(always)]
    fn step(self, var: W, [m]: [W; 1], grad: W) -> (W, [W; 1]) {
        let m = m * self.beta + grad * (W::of(1.0) - self.beta);
        let agreement = grad.sign() * m.sign();
        let step = self.lr * (self.alpha + self.sign_decay * agreement) * grad;
        (var - step, [m])
    }
}

/// PowerSign. Slots: `m`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct PowerSign<W> {
    pub lr: W,
    pub logbase: W,
    pub sign_decay: W,
    pub beta: W,
}

impl<W: RealWide> Rule<W, 1> for PowerSign<W> {
    #[inline(always)]
    fn step(self, var: W, [m]: [W; 1], grad: W) -> (W, [W; 1]) {
        let m = m * self.beta + grad * (W::of(1.0) - self.beta);
        let agreement = grad.sign() * m.sign();
        let scale = (self.logbase * self.sign_decay * agreement).exp();
        (var - self.lr * scale * grad, [m])
    }
}
