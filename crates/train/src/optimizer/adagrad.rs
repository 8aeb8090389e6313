//! Adagrad: accum += grad², var -= lr·grad / √accum.

use tensorfleet_client::{Graph, Variable};
use tensorfleet_status::Result;

use super::apply::RuleOptimizer;
use super::hyper::Hyper;
use super::rule::{Input, Recipe, Rule, Slot};

/// A learning rate of its own for every element, smaller the more it has moved. Slot `accumulator`:
/// `w/Adagrad`.
pub type Adagrad = RuleOptimizer<AdagradRule>;

/// The rule of [`Adagrad`].
pub struct AdagradRule {
    learning_rate: Hyper,
    initial_accumulator: f64,
}

impl Adagrad {
    /// With this learning rate.
    pub fn new(learning_rate: impl Into<Hyper>) -> Adagrad {
        RuleOptimizer::of(AdagradRule {
            learning_rate: learning_rate.into(),
            initial_accumulator: 0.1,
        })
    }

    /// What the accumulators begin with, 0.1 by default.
    #[must_use]
    pub fn initial_accumulator(mut self, value: f64) -> Self {
        self.rule.initial_accumulator = value;
        self
    }
}

impl Rule for AdagradRule {
    fn name(&self) -> &'static str {
        "Adagrad"
    }

    fn check(&self) -> Result<()> {
        super::hyper::positive("initial_accumulator", self.initial_accumulator)
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::filled("accumulator", self.initial_accumulator)]
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let inputs = vec![
            Input::Slot("accumulator"),
            Input::Number(self.learning_rate.tensor(g, "learning_rate")),
            Input::Gradient,
        ];
        Recipe::new("Adagrad", inputs)
    }
}
