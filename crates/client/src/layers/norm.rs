//! Batch normalisation.

use std::sync::Arc;

use tensorfleet_status::Result;

use crate::collection::keys;
use crate::init::{self, Initializer};
use crate::operators::number_like;
use crate::ops;
use crate::output::{Operand, Output};
use crate::variable::Variable;
use crate::variable_scope::Reuse;

use super::common::{Common, Weight, known_dim};

/// Normalises along all axes but the last, then scales by `gamma` and shifts by `beta`.
///
/// Training, it uses the batch's own mean and variance and adds updates of their moving averages to the
/// collection [`UPDATE_OPS`](keys::UPDATE_OPS), which the training op must run too; else it uses the
/// moving averages.
///
/// ```
/// use tensorfleet_client::{DType, Graph, keys, layers};
///
/// let g = Graph::new();
/// let x = g.placeholder(DType::F32, &[-1, 8, 8, 3]);
/// let y = layers::batch_norm(&x).training(true).output();
/// assert_eq!(g.operations_in(keys::UPDATE_OPS).len(), 2);
/// assert_eq!(g.trainable_variables().len(), 2);
/// # g.check()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn batch_norm(input: impl Operand) -> BatchNorm {
    BatchNorm {
        input: input.to_output(),
        training: false,
        momentum: 0.99,
        epsilon: 1e-3,
        center: true,
        scale: true,
        common: Common::new(),
    }
}

/// [`batch_norm`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct BatchNorm {
    input: Output,
    training: bool,
    momentum: f64,
    epsilon: f64,
    center: bool,
    scale: bool,
    common: Common,
}

/// The layer's variables.
struct Variables {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    moving_mean: Variable,
    moving_variance: Variable,
}

impl BatchNorm {
    /// Whether the graph is for training; it is not by default.
    pub fn training(mut self, training: bool) -> Self {
        self.training = training;
        self
    }

    /// How much of a moving average stays at each step; 0.99 by default.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// What keeps the division by the deviation from zero; 0.001 by default.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// Whether `beta` is added; it is by default.
    pub fn center(mut self, center: bool) -> Self {
        self.center = center;
        self
    }

    /// Whether it is multiplied by `gamma`; it is by default.
    pub fn scale(mut self, scale: bool) -> Self {
        self.scale = scale;
        self
    }

    /// The name of its variable scope; by default `batch_normalization` with a number that is free.
    pub fn name(mut self, name: &str) -> Self {
        self.common.name = Some(name.to_owned());
        self
    }

    /// Whether a layer of this name is used again.
    pub fn reuse(mut self, reuse: Reuse) -> Self {
        self.common.reuse = reuse;
        self
    }

    /// Whether optimizers change `gamma` and `beta`; they do by default.
    pub fn trainable(mut self, trainable: bool) -> Self {
        self.common.trainable = trainable;
        self
    }

    /// Adds the layer.
    #[track_caller]
    pub fn output(self) -> Output {
        self.common
            .layer(&self.input, "batch_normalization", || self.add())
    }

    fn add(&self) -> Result<Output> {
        let channels = known_dim("batch_norm", &self.input, -1)?;
        let variables = self.variables(channels);
        let rank = self.input.shape().rank().unwrap_or(0);
        Ok(if rank == 4 {
            self.fused(channels, &variables)
        } else {
            self.plain(rank, &variables)
        })
    }

    fn variables(&self, channels: i64) -> Variables {
        let g = self.input.graph();
        // Statistics of half-precision values are kept in float.
        let like = match self.input.dtype().size() {
            Some(0..=2) => self.input.cast(tensorfleet_tensor::DType::F32),
            _ => self.input.clone(),
        };
        let weight = |name: &str, initializer: Arc<dyn Initializer>| {
            let weight = Weight {
                initializer: Some(initializer),
                regularizer: None,
            };
            self.common.weight(name, &[channels], &weight, &like)
        };
        let moving = |name: &str, value: f64| {
            let builder = g.get_variable(name, &[channels]).dtype(like.dtype());
            let builder = builder.initializer(init::constant(value));
            builder.trainable(false).build()
        };
        Variables {
            gamma: self.scale.then(|| weight("gamma", Arc::new(init::ones()))),
            beta: self.center.then(|| weight("beta", Arc::new(init::zeros()))),
            moving_mean: moving("moving_mean", 0.0),
            moving_variance: moving("moving_variance", 1.0),
        }
    }

    /// Images: one op does it all.
    fn fused(&self, channels: i64, variables: &Variables) -> Output {
        let filled = |value: f64| {
            let g = self.input.graph();
            let value = number_like(variables.moving_mean.snapshot(), value);
            ops::fill(g.constant([channels as i32]), value).output()
        };
        let factor = |variable: &Option<Variable>, otherwise: f64| match variable {
            Some(variable) => variable.to_output(),
            None => filled(otherwise),
        };
        let (gamma, beta) = (factor(&variables.gamma, 1.0), factor(&variables.beta, 0.0));
        // Training, the op finds mean and variance itself and wants none.
        let nothing = || {
            let none = self.input.graph().constant(Vec::<f32>::new());
            none.cast(variables.moving_mean.dtype())
        };
        let (mean, variance) = if self.training {
            (nothing(), nothing())
        } else {
            let Variables {
                moving_mean,
                moving_variance,
                ..
            } = variables;
            (moving_mean.to_output(), moving_variance.to_output())
        };
        let outputs = ops::fused_batch_norm_v3(&self.input, gamma, beta, mean, variance)
            .epsilon(self.epsilon as f32)
            .is_training(self.training)
            .outputs();
        if self.training {
            self.update(&variables.moving_mean, &outputs.batch_mean);
            self.update(&variables.moving_variance, &outputs.batch_variance);
        }
        outputs.y
    }

    fn plain(&self, rank: usize, variables: &Variables) -> Output {
        let x = &self.input;
        let (mean, variance) = if self.training {
            let axes: Vec<i32> = (0..rank.saturating_sub(1) as i32).collect();
            let mean = x.reduce("Mean", &axes, true);
            let variance = x.squared_difference(mean.stop_gradient()).mean(&axes);
            let mean = mean.squeeze(&axes.iter().map(|axis| i64::from(*axis)).collect::<Vec<_>>());
            self.update(&variables.moving_mean, &mean);
            self.update(&variables.moving_variance, &variance);
            (mean, variance)
        } else {
            let Variables {
                moving_mean,
                moving_variance,
                ..
            } = variables;
            (moving_mean.to_output(), moving_variance.to_output())
        };
        let mut factor = (variance + self.epsilon).rsqrt();
        if let Some(gamma) = &variables.gamma {
            factor = factor * gamma;
        }
        let mut shift = -(mean * &factor);
        if let Some(beta) = &variables.beta {
            shift = shift + beta;
        }
        x * factor.cast(x.dtype()) + shift.cast(x.dtype())
    }

    /// Moves an average a little towards the batch's value.
    fn update(&self, moving: &Variable, batch: &Output) {
        let g = self.input.graph();
        let _scope = g.name_scope("AssignMovingAvg");
        let _near = g.colocate_with(&moving.op());
        let batch = batch.cast(moving.dtype());
        let step = (moving.to_output() - batch) * (1.0 - self.momentum);
        g.add_to_collection(keys::UPDATE_OPS, moving.assign_sub(step));
    }
}
