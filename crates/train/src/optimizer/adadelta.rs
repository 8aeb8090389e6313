//! Adadelta: steps as long as recent steps, over as large as recent gradients.

use tensorfleet_client::{Graph, Variable};

use super::apply::RuleOptimizer;
use super::hyper::Hyper;
use super::rule::{Input, Recipe, Rule, Slot};

/// Adadelta. Slots `accum` and `accum_update`: `w/Adadelta`, `w/Adadelta_1`.
pub type Adadelta = RuleOptimizer<AdadeltaRule>;

/// The rule of [`Adadelta`].
pub struct AdadeltaRule {
    learning_rate: Hyper,
    rho: Hyper,
    epsilon: Hyper,
}

impl Adadelta {
    /// With this learning rate, rho 0.95 and epsilon 1e-8.
    pub fn new(learning_rate: impl Into<Hyper>) -> Adadelta {
        RuleOptimizer::of(AdadeltaRule {
            learning_rate: learning_rate.into(),
            rho: 0.95.into(),
            epsilon: 1e-8.into(),
        })
    }

    /// How slowly averages forget.
    #[must_use]
    pub fn rho(mut self, rho: impl Into<Hyper>) -> Self {
        self.rule.rho = rho.into();
        self
    }

    /// What keeps the first steps from being zero.
    #[must_use]
    pub fn epsilon(mut self, epsilon: impl Into<Hyper>) -> Self {
        self.rule.epsilon = epsilon.into();
        self
    }
}

impl Rule for AdadeltaRule {
    fn name(&self) -> &'static str {
        "Adadelta"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("accum"), Slot::zeros("accum_update")]
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let inputs = vec![
            Input::Slot("accum"),
            Input::Slot("accum_update"),
            Input::Number(self.learning_rate.tensor(g, "lr")),
            Input::Number(self.rho.tensor(g, "rho")),
            Input::Number(self.epsilon.tensor(g, "epsilon")),
            Input::Gradient,
        ];
        Recipe::new("Adadelta", inputs)
    }
}
