//! Optimizer updates: weights and their slots change by a gradient, whole or by rows.
//!
//! A file is one optimizer in up to four forms: variables by reference or by handle, gradients for all elements or for
//! some rows. All forms share one rule from [`tensorfleet_math::optimizer`]; `apply` does the rest.

mod ada_max;
mod adadelta;
mod adagrad;
mod adagrad_da;
mod adagrad_v2;
mod adam;
mod adam_with_amsgrad;
mod add_sign;
mod apply;
mod centered_rms_prop;
mod ftrl;
mod ftrl_v2;
mod gradient_descent;
mod keras_momentum;
mod momentum;
mod power_sign;
mod proximal_adagrad;
mod proximal_gradient_descent;
mod rms_prop;
mod signature;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "training",
    ops: &[],
    tables: &[
        &ada_max::OPS,
        &adadelta::OPS,
        &adagrad::OPS,
        &adagrad_da::OPS,
        &adagrad_v2::OPS,
        &adam::OPS,
        &adam_with_amsgrad::OPS,
        &add_sign::OPS,
        &centered_rms_prop::OPS,
        &ftrl::OPS,
        &ftrl_v2::OPS,
        &gradient_descent::OPS,
        &keras_momentum::OPS,
        &momentum::OPS,
        &power_sign::OPS,
        &proximal_adagrad::OPS,
        &proximal_gradient_descent::OPS,
        &rms_prop::OPS,
    ],
};
