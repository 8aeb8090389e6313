//! Dropout.

use crate::operators::number_like;
use crate::ops;
use crate::output::{Operand, Output};

use super::training::Training;

/// Sets a fraction `rate` of the values to zero at random while training, and scales the others up so
/// that sums stay the same on average. Not training, it changes nothing.
///
/// ```
/// use tensorfleet_client::{Graph, Session, layers};
///
/// let g = Graph::new();
/// let x = g.constant([1.0f32; 8]);
/// let y = layers::dropout(&x, 0.5).training(true).seed(3).output();
/// let values = Session::new(&g)?.run(&y)?;
/// assert!(values.slice::<f32>()?.iter().all(|value| [0.0, 2.0].contains(value)));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn dropout(input: impl Operand, rate: f64) -> Dropout {
    Dropout {
        input: input.to_output(),
        rate,
        training: Training::Always(false),
        seed: None,
        name: None,
    }
}

/// [`dropout`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct Dropout {
    input: Output,
    rate: f64,
    training: Training,
    seed: Option<i64>,
    name: Option<String>,
}

impl Dropout {
    /// Whether it trains, a `bool` or a bool tensor; it does not by default.
    pub fn training(mut self, training: impl Into<Training>) -> Self {
        self.training = training.into();
        self
    }

    /// A seed of its own, beside the graph's.
    pub fn seed(mut self, seed: i64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The name of its scope.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds the layer.
    #[track_caller]
    pub fn output(self) -> Output {
        let x = &self.input;
        let g = x.graph().clone();
        let _scope = g.name_scope(self.name.as_deref().unwrap_or("dropout"));
        if !(0.0..1.0).contains(&self.rate) {
            return g.fail(tensorfleet_status::invalid_argument!(
                "dropout: the rate must be in [0, 1), it is {}",
                self.rate
            ));
        }
        if self.training.never() || self.rate == 0.0 {
            return x.identity();
        }
        let seeds = g.next_seeds(self.seed);
        self.training.choose(|| self.drop(seeds), || x.identity())
    }

    fn drop(&self, (seed, seed2): (i64, i64)) -> Output {
        let x = &self.input;
        let scaled = x * (1.0 / (1.0 - self.rate));
        let drawn = ops::random_uniform(x.shape_tensor(), x.dtype())
            .seed(seed)
            .seed2(seed2)
            .output();
        let kept = drawn.greater_equal(number_like(&drawn, self.rate));
        ops::select_v2(kept, &scaled, number_like(x, 0.0)).output()
    }
}
