//! Batch normalisation.

use std::sync::Arc;

use tensorfleet_status::Result;

use crate::collection::keys;
use crate::init::{self, Initializer};
use crate::operators::number_like;
use crate::ops;
use crate::output::{Operand, Output};
use crate::variable::Variable;

use super::common::{Common, Weight, known_dim};
use super::training::Training;

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
        training: Training::Always(false),
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
    training: Training,
    momentum: f64,
    epsilon: f64,
    center: bool,
    scale: bool,
    common: Common,
}

super::common::common_options!(BatchNorm);

/// The layer's variables.
struct Variables {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    moving_mean: Variable,
    moving_variance: Variable,
}

impl BatchNorm {
    /// Whether it trains, a `bool` or a bool tensor; it does not by default.
    pub fn training(mut self, training: impl Into<Training>) -> Self {
        self.training = training.into();
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
        let (y, mean, variance) = if rank == 4 {
            self.fused(channels, &variables)
        } else {
            self.plain(rank, &variables)
        };
        if !self.training.never() {
            self.update(&variables.moving_mean, &mean);
            self.update(&variables.moving_variance, &variance);
        }
        Ok(y)
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

    /// Images: one op does it all. The result, and the mean and variance that it used.
    fn fused(&self, channels: i64, variables: &Variables) -> (Output, Output, Output) {
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
        let normalise = |mean: Output, variance: Output, training: bool| {
            ops::fused_batch_norm_v3(&self.input, &gamma, &beta, mean, variance)
                .epsilon(self.epsilon as f32)
                .is_training(training)
                .outputs()
        };
        // Training, the op finds mean and variance itself and wants none.
        let nothing = || {
            let none = self.input.graph().constant(Vec::<f32>::new());
            none.cast(variables.moving_mean.dtype())
        };
        self.choose(
            variables,
            || {
                let outputs = normalise(nothing(), nothing(), true);
                (outputs.y, outputs.batch_mean, outputs.batch_variance)
            },
            |mean, variance| normalise(mean, variance, false).y,
        )
    }

    /// All else: the result, and the mean and variance that it used.
    fn plain(&self, rank: usize, variables: &Variables) -> (Output, Output, Output) {
        let x = &self.input;
        let (gamma, beta) = (read(&variables.gamma), read(&variables.beta));
        let normalise = |mean: &Output, variance: &Output| {
            let mut factor = (variance + self.epsilon).rsqrt();
            if let Some(gamma) = &gamma {
                factor = factor * gamma;
            }
            let mut shift = -(mean * &factor);
            if let Some(beta) = &beta {
                shift = shift + beta;
            }
            x * factor.cast(x.dtype()) + shift.cast(x.dtype())
        };
        let axes: Vec<i32> = (0..rank.saturating_sub(1) as i32).collect();
        self.choose(
            variables,
            || {
                let mean = x.reduce("Mean", &axes, true);
                let variance = x.squared_difference(mean.stop_gradient()).mean(&axes);
                let axes: Vec<i64> = axes.iter().map(|axis| i64::from(*axis)).collect();
                let mean = mean.squeeze(&axes);
                (normalise(&mean, &variance), mean, variance)
            },
            |mean, variance| normalise(&mean, &variance),
        )
    }

    /// The result with the batch's mean and variance, or with the moving ones.
    fn choose(
        &self,
        variables: &Variables,
        of_batch: impl FnOnce() -> (Output, Output, Output),
        with: impl FnOnce(Output, Output) -> Output,
    ) -> (Output, Output, Output) {
        if let Training::Always(true) = self.training {
            return of_batch();
        }
        // Read out here: a reference variable has no place inside a conditional.
        let mean = variables.moving_mean.to_output();
        let variance = variables.moving_variance.to_output();
        self.training.choose(of_batch, || {
            let y = with(mean.clone(), variance.clone());
            (y, mean.identity(), variance.identity())
        })
    }

    /// Moves an average a little towards the batch's value, and not at all in a run that does not train.
    fn update(&self, moving: &Variable, batch: &Output) {
        let g = self.input.graph();
        let _scope = g.name_scope("AssignMovingAvg");
        let _near = g.colocate_with(&moving.op());
        let batch = batch.cast(moving.dtype());
        let rate = number_like(moving.snapshot(), 1.0 - self.momentum);
        let rate = match &self.training {
            Training::Always(_) => rate,
            Training::Decided(decides) => {
                ops::select_v2(decides, &rate, number_like(moving.snapshot(), 0.0)).output()
            }
        };
        let step = (moving.to_output() - batch) * rate;
        g.add_to_collection(keys::UPDATE_OPS, moving.assign_sub(step));
    }
}

fn read(variable: &Option<Variable>) -> Option<Output> {
    variable.as_ref().map(Operand::to_output)
}
