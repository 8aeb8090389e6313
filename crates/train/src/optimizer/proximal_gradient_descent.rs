//! Proximal gradient descent: a step of gradient descent, then shrinking by l1 and l2 (FOBOS).

use tensorfleet_client::{Graph, Variable};

use super::apply::RuleOptimizer;
use super::hyper::Hyper;
use super::rule::{Input, Recipe, Rule};

/// Gradient descent that drives small weights to exactly zero.
pub type ProximalGradientDescent = RuleOptimizer<ProximalGradientDescentRule>;

/// The rule of [`ProximalGradientDescent`].
pub struct ProximalGradientDescentRule {
    learning_rate: Hyper,
    l1: f64,
    l2: f64,
}

impl ProximalGradientDescent {
    /// With this learning rate and no penalties.
    pub fn new(learning_rate: impl Into<Hyper>) -> ProximalGradientDescent {
        RuleOptimizer::of(ProximalGradientDescentRule {
            learning_rate: learning_rate.into(),
            l1: 0.0,
            l2: 0.0,
        })
    }

    /// The penalties on |w| and w².
    #[must_use]
    pub fn regularization(mut self, l1: f64, l2: f64) -> Self {
        (self.rule.l1, self.rule.l2) = (l1, l2);
        self
    }
}

impl Rule for ProximalGradientDescentRule {
    fn name(&self) -> &'static str {
        "ProximalGradientDescent"
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let inputs = vec![
            Input::Number(self.learning_rate.tensor(g, "learning_rate")),
            Input::Number(g.named_constant("l1_regularization_strength", self.l1 as f32)),
            Input::Number(g.named_constant("l2_regularization_strength", self.l2 as f32)),
            Input::Gradient,
        ];
        Recipe::new("ProximalGradientDescent", inputs)
    }
}
