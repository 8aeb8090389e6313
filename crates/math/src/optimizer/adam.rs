//! Adam and its relatives.

use super::apply::Rule;
use super::weight::{RealWide, Wide};

/// Adam. Slots: `m`, `v`. Make it with [`Adam::new`].
#[derive(Clone, Copy, Debug)]
pub struct Adam<W> {
    alpha: W,
    beta1: W,
    beta2: W,
    epsilon: W,
    use_nesterov: bool,
}

/// The scalar inputs of `ApplyAdam`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct AdamInputs<W> {
    pub beta1_power: W,
    pub beta2_power: W,
    pub lr: W,
    pub beta1: W,
    pub beta2: W,
    pub epsilon: W,
}

impl<W: Wide> AdamInputs<W> {
    /// The learning rate corrected for the bias of young averages.
    fn alpha(&self) -> W {
        let one = W::of(1.0);
        self.lr * (one - self.beta2_power).sqrt() / (one - self.beta1_power)
    }
}

impl<W: Wide> Adam<W> {
    /// Works out what all elements share.
    pub fn new(inputs: AdamInputs<W>, use_nesterov: bool) -> Self {
        Self {
            alpha: inputs.alpha(),
            beta1: inputs.beta1,
            beta2: inputs.beta2,
            epsilon: inputs.epsilon,
            use_nesterov,
        }
    }
}

impl<W: Wide> Rule<W, 2> for Adam<W> {
    #[inline(always)]
    fn step(self, var: W, [m, v]: [W; 2], grad: W) -> (W, [W; 2]) {
        let rest = W::of(1.0) - self.beta1;
        let m = m + (grad - m) * rest;
        let v = v + (grad * grad - v) * (W::of(1.0) - self.beta2);
        let direction = if self.use_nesterov {
            grad * rest + self.beta1 * m
        } else {
            m
        };
        let step = direction * self.alpha / (v.sqrt() + self.epsilon);
        (var - step, [m, v])
    }
}

/// Adam with a second moment that never shrinks. Slots: `m`, `v`, `vhat`. Make it with [`AdamWithAmsgrad::new`].
#[derive(Clone, Copy, Debug)]
pub struct AdamWithAmsgrad<W> {
    adam: Adam<W>,
}

impl<W: RealWide> AdamWithAmsgrad<W> {
    /// Works out what all elements share.
    pub fn new(inputs: AdamInputs<W>) -> Self {
        Self {
            adam: Adam::new(inputs, false),
        }
    }
}

impl<W: RealWide> Rule<W, 3> for AdamWithAmsgrad<W> {
    #[inline(always)]
    fn step(self, var: W, [m, v, vhat]: [W; 3], grad: W) -> (W, [W; 3]) {
        let adam = self.adam;
        let m = m + (grad - m) * (W::of(1.0) - adam.beta1);
        let v = v + (grad * grad - v) * (W::of(1.0) - adam.beta2);
        let vhat = vhat.max(v);
        let step = m * adam.alpha / (vhat.sqrt() + adam.epsilon);
        (var - step, [m, v, vhat])
    }
}

/// AdaMax. Slots: `m`, `v`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct AdaMax<W> {
    pub beta1_power: W,
    pub lr: W,
    pub beta1: W,
    pub beta2: W,
    pub epsilon: W,
}

impl<W: RealWide> Rule<W, 2> for AdaMax<W> {
    #[inline(always)]
    fn step(self, var: W, [m, v]: [W; 2], grad: W) -> (W, [W; 2]) {
        let one = W::of(1.0);
        let m = m + (grad - m) * (one - self.beta1);
        let v = (self.beta2 * v).max(grad.abs());
        let step = self.lr / (one - self.beta1_power) * (m / (v + self.epsilon));
        (var - step, [m, v])
    }
}
