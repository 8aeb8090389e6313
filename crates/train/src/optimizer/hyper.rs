//! [`Hyper`]: a number that steers an optimizer, fixed or a tensor of the graph.

use tensorfleet_client::{Graph, Output};
use tensorfleet_status::{Result, invalid_argument};

/// A learning rate or the like: a number, or a tensor such as a schedule's.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::Momentum;
///
/// let g = Graph::new();
/// let fixed = Momentum::new(0.1, 0.9);
/// let computed = Momentum::new(&(g.constant(0.1f32) * 0.5), 0.9);
/// ```
#[derive(Clone, Debug)]
pub enum Hyper {
    /// Always the same.
    Number(f64),
    /// Computed in every step.
    Tensor(Output),
}

impl Hyper {
    /// As a tensor of `g`. Numbers are floats whatever the variables are, as in TensorFlow.
    pub(crate) fn tensor(&self, g: &Graph, name: &str) -> Output {
        match self {
            Hyper::Number(value) => g.named_constant(name, *value as f32),
            Hyper::Tensor(output) => output.clone(),
        }
    }
}

impl From<f64> for Hyper {
    fn from(value: f64) -> Hyper {
        Hyper::Number(value)
    }
}

impl From<Output> for Hyper {
    fn from(output: Output) -> Hyper {
        Hyper::Tensor(output)
    }
}

impl From<&Output> for Hyper {
    fn from(output: &Output) -> Hyper {
        Hyper::Tensor(output.clone())
    }
}

/// Fails unless a setting is above zero.
pub(crate) fn positive(name: &str, value: f64) -> Result<()> {
    if value > 0.0 {
        return Ok(());
    }
    Err(invalid_argument!("{name} must be positive, not {value}"))
}

/// Fails if a setting is below zero.
pub(crate) fn not_negative(name: &str, value: f64) -> Result<()> {
    if value >= 0.0 {
        return Ok(());
    }
    Err(invalid_argument!(
        "{name} must be positive or zero, not {value}"
    ))
}
