//! Proximal Adagrad: a step of Adagrad, then shrinking by l1 and l2 (FOBOS).

use tensorfleet_client::{Graph, Variable};
use tensorfleet_status::Result;

use super::apply::RuleOptimizer;
use super::hyper::{self, Hyper};
use super::rule::{Input, Recipe, Rule, Slot};

/// Adagrad that drives small weights to exactly zero. Slot `accumulator`: `w/ProximalAdagrad`.
pub type ProximalAdagrad = RuleOptimizer<ProximalAdagradRule>;

/// The rule of [`ProximalAdagrad`].
pub struct ProximalAdagradRule {
    learning_rate: Hyper,
    initial_accumulator: f64,
    l1: f64,
    l2: f64,
}

impl ProximalAdagrad {
    /// With this learning rate and no penalties.
    pub fn new(learning_rate: impl Into<Hyper>) -> ProximalAdagrad {
        RuleOptimizer::of(ProximalAdagradRule {
            learning_rate: learning_rate.into(),
            initial_accumulator: 0.1,
            l1: 0.0,
            l2: 0.0,
        })
    }

    /// What the accumulators begin with, 0.1 by default.
    #[must_use]
    pub fn initial_accumulator(mut self, value: f64) -> Self {
        self.rule.initial_accumulator = value;
        self
    }

    /// The penalties on |w| and w².
    #[must_use]
    pub fn regularization(mut self, l1: f64, l2: f64) -> Self {
        (self.rule.l1, self.rule.l2) = (l1, l2);
        self
    }
}

impl Rule for ProximalAdagradRule {
    fn name(&self) -> &'static str {
        "ProximalAdagrad"
    }

    fn check(&self) -> Result<()> {
        hyper::positive("initial_accumulator", self.initial_accumulator)
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::filled("accumulator", self.initial_accumulator)]
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let inputs = vec![
            Input::Slot("accumulator"),
            Input::Number(self.learning_rate.tensor(g, "learning_rate")),
            Input::Number(g.named_constant("l1_regularization_strength", self.l1 as f32)),
            Input::Number(g.named_constant("l2_regularization_strength", self.l2 as f32)),
            Input::Gradient,
        ];
        Recipe::new("ProximalAdagrad", inputs)
    }
}
