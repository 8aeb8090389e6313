//! Optimizer updates: TensorFlow's `Apply…` and `SparseApply…` kernels, each one fused pass.
//!
//! A [`Rule`] says how one weight and its slots change by one element of a gradient; its fields are the op's scalar inputs in the
//! type that is computed in ([`Weight::Wide`]: `f32` for halves). [`apply`] runs it over whole weights, [`apply_sparse`] over
//! the rows that indices name, a row named twice being updated twice in order. Slots are passed in the order of the op's inputs.
//! Rules that need an order are for real numbers only.
//!
//! ```
//! use tensorfleet_math::optimizer::{Adagrad, apply, apply_sparse};
//! use tensorfleet_math::par::Serial;
//! let (mut var, mut accum) = ([1.0_f32; 4], [0.1; 4]);
//! let rule = Adagrad { lr: 0.5, update_slots: true };
//! apply(&Serial, rule, &mut var, [&mut accum], &[0.0, 1.0, -1.0, 2.0]);
//! // Row 1 of two rows of two elements.
//! apply_sparse(&Serial, rule, 2, &mut var, [&mut accum], &[1], &[0.5, 0.5]).unwrap();
//! ```
//!
//! Rules: [`GradientDescent`], [`ProximalGradientDescent`], [`Momentum`], [`KerasMomentum`], [`Adagrad`], [`AdagradV2`],
//! [`ProximalAdagrad`], [`AdagradDa`], [`Adadelta`], [`RmsProp`], [`CenteredRmsProp`], [`AddSign`], [`PowerSign`], [`Adam`],
//! [`AdamWithAmsgrad`], [`AdaMax`], [`Ftrl`].

mod adam;
mod apply;
mod ftrl;
mod rules;
#[cfg(test)]
mod tests;
mod weight;

pub use adam::{AdaMax, Adam, AdamInputs, AdamWithAmsgrad};
pub use apply::{Rule, apply, apply_sparse};
pub use ftrl::Ftrl;
pub use rules::{
    Adadelta, Adagrad, AdagradDa, AdagradV2, AddSign, CenteredRmsProp, GradientDescent,
    KerasMomentum, Momentum, PowerSign, ProximalAdagrad, ProximalGradientDescent, RmsProp,
};
pub use weight::{RealWide, Weight, Wide};
