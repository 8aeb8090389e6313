//! Penalties on weights.
//!
//! ```
//! use tensorfleet_client::{Graph, Session, init, keys, regularizers};
//!
//! let g = Graph::new();
//! let w = g.get_variable("w", &[2, 2]).initializer(init::ones()).regularizer(regularizers::l2(0.5)).build();
//! let penalty = &g.outputs_in(keys::REGULARIZATION_LOSSES)[0];
//! let session = Session::new(&g)?;
//! session.run(w.initializer())?;
//! assert_eq!(session.run(penalty)?.to_scalar::<f32>()?, 1.0); // 0.5 · ½ · Σ w²
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```

use std::sync::Arc;

use crate::collection::keys;
use crate::ops;
use crate::output::Output;
use crate::variable::Variable;

/// Makes the penalty on a weight, a scalar. Any `Fn(&Output) -> Output` does.
pub trait Regularizer: Send + Sync {
    /// The penalty.
    fn penalty(&self, weight: &Output) -> Output;
}

impl<F: Fn(&Output) -> Output + Send + Sync> Regularizer for F {
    fn penalty(&self, weight: &Output) -> Output {
        self(weight)
    }
}

impl Regularizer for Arc<dyn Regularizer> {
    fn penalty(&self, weight: &Output) -> Output {
        (**self).penalty(weight)
    }
}

/// `scale · Σ |w|`.
pub fn l1(scale: f64) -> impl Regularizer + Clone {
    move |weight: &Output| weight.abs().sum(&[]) * scale
}

/// `scale · ½ · Σ w²`.
pub fn l2(scale: f64) -> impl Regularizer + Clone {
    move |weight: &Output| ops::l2_loss(weight).output() * scale
}

/// The sum of [`l1`] and [`l2`].
pub fn l1_l2(scale_l1: f64, scale_l2: f64) -> impl Regularizer + Clone {
    let (l1, l2) = (l1(scale_l1), l2(scale_l2));
    move |weight: &Output| l1.penalty(weight) + l2.penalty(weight)
}

impl Variable {
    /// Adds the penalty on the variable to the regularization losses.
    pub(crate) fn regularize(&self, regularizer: &dyn Regularizer) {
        let g = self.graph();
        let _near = g.colocate_with(&self.op());
        let _scope = g.name_scope(&format!("{}/Regularizer/", self.name()));
        let penalty = regularizer.penalty(self.snapshot());
        g.add_to_collection(keys::REGULARIZATION_LOSSES, penalty);
    }
}
